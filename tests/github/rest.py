"""The part of GitHub's REST API that a miner of pull requests uses. `ROUTES` lists all answered requests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.github.answers import ApiRequest, ApiResponse, make_error_response, make_json_response
from tests.github.apps import ServerApp, issue_token
from tests.github.git_reader import GitReader
from tests.github.rate_limits import AccessToken, RateLimitLedger, ServerClock
from tests.github.repository_fields import matches_search
from tests.github.response_bodies import ResponseBodies
from tests.github.world import Issue, ServerPullRequest, ServerRepository, World

DIFF_TYPES = re.compile(r"application/vnd\.github\.(?:[\w-]+\.)?(?:diff|patch)\b")
LARGEST_DIFF_FILES, LARGEST_DIFF_LINES = 300, 20_000
SEARCH_RESULTS = 1000


class RestEndpoint:
    """The endpoint: answers one request that is within its limits."""

    def __init__(
        self,
        world: World,
        books: RateLimitLedger,
        clock: ServerClock,
        tokens: dict[str, AccessToken],
        app: ServerApp | None,
    ) -> None:
        self.world = world
        self.books = books
        self.clock = clock
        self.tokens = tokens
        self.app = app

    def answer(self, ask: ApiRequest) -> ApiResponse:
        for method, pattern, handler in ROUTES:
            match = re.fullmatch(pattern, ask.path)
            if match and method == ask.method.replace("HEAD", "GET"):
                return _add_etag(ask, handler(self, ask, *match.groups()))
        self.books.add_violation(ask.number, ask.token, "unanswered", f"{ask.method} {ask.path}")
        return make_error_response(404, "Not Found")

    def bodies(self, ask: ApiRequest) -> ResponseBodies:
        return ResponseBodies(self.world, ask.root, ask.api)

    # ---- the handlers: (request, parts of the path) -> answer

    def repository(self, ask: ApiRequest, name: str) -> ApiResponse:
        def of(repo: ServerRepository) -> ApiResponse:
            return make_json_response(200, self.bodies(ask).full_repository(repo))

        return self._with_repository(ask, name, of)

    def repository_by_id(self, ask: ApiRequest, number: str, below: str) -> ApiResponse:
        """`/repositories/{id}/...` is `/repos/{owner}/{name}/...` of the repository's present name."""
        repo = self.world.repositories.get(int(number))
        if not repo or not ask.can_read(repo):
            return make_error_response(404, "Not Found")
        ask.path = f"/repos/{repo.full_name}{below}"
        return self.answer(ask)

    def languages(self, ask: ApiRequest, name: str) -> ApiResponse:
        return self._with_repository(ask, name, lambda repo: make_json_response(200, repo.languages))

    def pulls(self, ask: ApiRequest, name: str) -> ApiResponse:
        def of(repo: ServerRepository) -> ApiResponse:
            rows: list[Any] = _filter_by_state(repo.pulls.values(), ask.query.get("state", "open"))
            if "base" in ask.query:
                rows = [p for p in rows if p.base_ref == ask.query["base"]]
            return self._paginate(ask, _sort_rows(ask, rows), lambda p: self.bodies(ask).pull(repo, p))

        return self._with_repository(ask, name, of)

    def pull(self, ask: ApiRequest, name: str, number: str) -> ApiResponse:
        def of(repo: ServerRepository, pull: ServerPullRequest) -> ApiResponse:
            if DIFF_TYPES.search(ask.headers.get("accept", "")):
                return _make_diff_response(repo, pull)
            return make_json_response(200, self.bodies(ask).pull(repo, pull, whole=True))

        return self._with_pull(ask, name, number, of)

    def files(self, ask: ApiRequest, name: str, number: str) -> ApiResponse:
        def of(repo: ServerRepository, pull: ServerPullRequest) -> ApiResponse:
            url = f"{ask.root}/{repo.full_name}"
            rows = GitReader(repo.git_dir).list_files(pull)[:3000]
            return self._paginate(
                ask,
                rows,
                lambda f: (
                    {
                        "sha": None,
                        "filename": f.path,
                        "status": {"DELETED": "removed"}.get(f.change, f.change.lower()),
                        "additions": f.additions,
                        "deletions": f.deletions,
                        "changes": f.additions + f.deletions,
                        "blob_url": f"{url}/blob/{pull.head_sha}/{f.path}",
                        "raw_url": f"{url}/raw/{pull.head_sha}/{f.path}",
                        "contents_url": f"{self.bodies(ask).url(repo)}/contents/{f.path}?ref={pull.head_sha}",
                    }
                    | ({"previous_filename": f.previous} if f.previous else {})
                ),
            )

        return self._with_pull(ask, name, number, of)

    def pull_comments(self, ask: ApiRequest, name: str, number: str) -> ApiResponse:
        return self._with_pull(ask, name, number, lambda repo, pull: self._review_comments(ask, repo, [pull]))

    def all_pull_comments(self, ask: ApiRequest, name: str) -> ApiResponse:
        return self._with_repository(
            ask, name, lambda repo: self._review_comments(ask, repo, list(repo.pulls.values()))
        )

    def _review_comments(
        self, ask: ApiRequest, repo: ServerRepository, pulls: Sequence[ServerPullRequest]
    ) -> ApiResponse:
        rows = [(pull, thread, c) for pull in pulls for thread in pull.threads for c in thread.comments]
        rows = [row for row in rows if row[2].updated_at >= ask.query.get("since", "")]
        key = {"updated": "updated_at"}.get(ask.query.get("sort", ""), "created_at")
        rows.sort(key=lambda row: (getattr(row[2], key), row[2].id), reverse=ask.query.get("direction") == "desc")
        return self._paginate(ask, rows, lambda row: self.bodies(ask).review_comment(repo, *row))

    def issues(self, ask: ApiRequest, name: str) -> ApiResponse:
        def of(repo: ServerRepository) -> ApiResponse:
            everything = [*repo.issues.values(), *repo.pulls.values()]
            rows = _filter_by_state(everything, ask.query.get("state", "open"))
            rows = [i for i in rows if i.updated_at >= ask.query.get("since", "")]
            return self._paginate(ask, _sort_rows(ask, rows), lambda i: self.bodies(ask).issue(repo, i))

        return self._with_repository(ask, name, of)

    def issue(self, ask: ApiRequest, name: str, number: str) -> ApiResponse:
        def of(repo: ServerRepository, thing: Issue | ServerPullRequest) -> ApiResponse:
            return make_json_response(200, self.bodies(ask).issue(repo, thing))

        return self._with_issue(ask, name, number, of)

    def issue_comments(self, ask: ApiRequest, name: str, number: str) -> ApiResponse:
        def of(repo: ServerRepository, thing: Issue | ServerPullRequest) -> ApiResponse:
            rows = [c for c in thing.comments if c.updated_at >= ask.query.get("since", "")]
            return self._paginate(ask, rows, lambda c: self.bodies(ask).comment(repo, thing, c))

        return self._with_issue(ask, name, number, of)

    def all_issue_comments(self, ask: ApiRequest, name: str) -> ApiResponse:
        def of(repo: ServerRepository) -> ApiResponse:
            things = [*repo.issues.values(), *repo.pulls.values()]
            rows = [(t, c) for t in things for c in t.comments if c.updated_at >= ask.query.get("since", "")]
            key = {"updated": "updated_at"}.get(ask.query.get("sort", ""), "created_at")
            rows.sort(key=lambda row: (getattr(row[1], key), row[1].id), reverse=ask.query.get("direction") == "desc")
            return self._paginate(ask, rows, lambda row: self.bodies(ask).comment(repo, *row))

        return self._with_repository(ask, name, of)

    def rate_limit(self, ask: ApiRequest) -> ApiResponse:
        """Free of charge, and answered even when no budget remains."""
        resources = {}
        for resource in ("core", "search", "graphql"):
            result = self.books.make_headers(ask.token, resource)
            names = ("Limit", "Remaining", "Used", "Reset")
            resources[resource] = {n.lower(): int(result[f"X-RateLimit-{n}"]) for n in names} | {"resource": resource}
        return make_json_response(200, {"resources": resources, "rate": resources["core"]})

    def user(self, ask: ApiRequest) -> ApiResponse:
        if not ask.token:
            return make_error_response(401, "Requires authentication")
        if ask.token.installation:
            return make_error_response(403, "Resource not accessible by integration")
        return make_json_response(200, self.bodies(ask).viewer(self.world.actor(ask.token.login)))

    def access_token(self, ask: ApiRequest, installation: str) -> ApiResponse:
        return issue_token(self.app, int(installation), ask, self.clock, self.tokens)

    def search(self, ask: ApiRequest) -> ApiResponse:
        words = ask.query.get("q", "").lower().split()
        if not words:
            return make_error_response(
                422, "Validation Failed", errors=[{"resource": "Search", "field": "q", "code": "missing"}]
            )
        repositories = [r for r in self.world if ask.can_read(r) and matches_search(r, words)]
        repositories.sort(key=lambda r: (-r.stars, r.id))
        answer = self._paginate(
            ask, repositories[:SEARCH_RESULTS], lambda r: self.bodies(ask).repository(r) | {"score": 1.0}
        )
        if answer.status != 200:
            return answer
        head = b'{"total_count":%d,"incomplete_results":false,"items":' % len(repositories)
        answer.body = head + answer.body + b"}"
        return answer

    # ---- shared by the handlers

    def _with_repository(
        self, ask: ApiRequest, name: str, of: Callable[[ServerRepository], ApiResponse]
    ) -> ApiResponse:
        """Answer about a repository: 301 to its id for a former name, 404, 451, or `of(it)`."""
        known = self.world.find(name)
        if not known or not ask.can_read(known):
            return make_error_response(404, "Not Found")
        if known.full_name.lower() != name.lower():
            below = ask.path.removeprefix(f"/repos/{name}")
            url = f"{ask.api}/repositories/{known.id}{below}"  # without the query, as on GitHub
            moved = make_json_response(
                301, {"message": "Moved Permanently", "url": url, "documentation_url": "https://docs.github.com"}
            )
            moved.headers["Location"] = url
            return moved
        if known.blocked:
            block = {"reason": "dmca", "created_at": known.created_at, "html_url": f"{ask.root}/dmca"}
            return make_error_response(451, "Repository access blocked", block=block)
        return of(known)

    def _with_issue(
        self, ask: ApiRequest, name: str, number: str, of: Callable[[ServerRepository, Any], ApiResponse]
    ) -> ApiResponse:
        def inner(repo: ServerRepository) -> ApiResponse:
            thing = repo.issues.get(int(number)) or repo.pulls.get(int(number))
            return of(repo, thing) if thing else make_error_response(404, "Not Found")

        return self._with_repository(ask, name, inner)

    def _with_pull(
        self, ask: ApiRequest, name: str, number: str, of: Callable[[ServerRepository, ServerPullRequest], ApiResponse]
    ) -> ApiResponse:
        def inner(repo: ServerRepository) -> ApiResponse:
            pull = repo.pulls.get(int(number))
            return of(repo, pull) if pull else make_error_response(404, "Not Found")

        return self._with_repository(ask, name, inner)

    def _paginate(self, ask: ApiRequest, rows: Sequence[Any], body: Callable[[Any], Any]) -> ApiResponse:
        """Return one page of a list, with the Link header to the others."""
        try:
            size = min(100, max(1, int(ask.query.get("per_page", "30"))))
            number = max(1, int(ask.query.get("page", "1")))
        except ValueError:
            return make_error_response(422, "Validation Failed")
        last = max(1, -(-len(rows) // size))
        answer = make_json_response(200, [body(row) for row in rows[(number - 1) * size : number * size]])
        others = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
        if number == 1:
            others = {name: others[name] for name in ("next", "last")}
        elif number >= last:
            others = {name: others[name] for name in ("prev", "first")}
        if last > 1:
            url = f"{ask.api}{ask.path}"
            answer.headers["Link"] = ", ".join(
                f'<{url}?{urlencode(ask.query | {"page": page})}>; rel="{name}"' for name, page in others.items()
            )
        return answer


def _filter_by_state(things: Any, state: str) -> list[Any]:
    return [t for t in list(things) if state == "all" or (state == "closed") == (t.closed_at is not None)]


def _sort_rows(ask: ApiRequest, rows: list[Any]) -> list[Any]:
    """Sort by `sort` and `direction`; newest first by default."""
    key = {"updated": "updated_at"}.get(ask.query.get("sort", "created"), "created_at")
    down = ask.query.get("direction", "desc") == "desc"
    return sorted(rows, key=lambda t: (getattr(t, key), t.number), reverse=down)


def _make_diff_response(repo: ServerRepository, pull: ServerPullRequest) -> ApiResponse:
    """Return the diff of a pull request, or a rejection if it is too large for GitHub."""
    diff = GitReader(repo.git_dir).read_diff(pull)
    for name, count, most in (
        ("files", len(re.findall(rb"^diff --git ", diff, re.MULTILINE)), LARGEST_DIFF_FILES),
        ("lines", diff.count(b"\n"), LARGEST_DIFF_LINES),
    ):
        if count > most:
            text = f"Sorry, the diff exceeded the maximum number of {name} ({most})."
            wrong = [{"resource": "PullRequest", "field": "diff", "code": "too_large"}]
            return make_error_response(406, text, errors=wrong)
    return ApiResponse(200, diff, {"Content-Type": "application/vnd.github.v3.diff; charset=utf-8"})


def _add_etag(ask: ApiRequest, answer: ApiResponse) -> ApiResponse:
    """Add an ETag to a successful answer; 304, free of charge, when the client has it."""
    if answer.status != 200 or ask.method != "GET" or "ETag" in answer.headers:
        return answer
    etag = f'W/"{hashlib.sha256(answer.body).hexdigest()}"'
    answer.headers |= {"ETag": etag, "Cache-Control": "private, max-age=60, s-maxage=60"}
    if ask.headers.get("if-none-match") == etag:
        return ApiResponse(304, headers={"ETag": etag}, points=0 if ask.token else 1)
    return answer


REPO = r"/repos/([\w.-]+/[\w.-]+)"
ROUTES: tuple[tuple[str, str, Callable[..., ApiResponse]], ...] = (
    ("GET", REPO, RestEndpoint.repository),
    ("GET", r"/repositories/(\d+)(/.*)?", lambda rest, ask, n, below: rest.repository_by_id(ask, n, below or "")),
    ("GET", REPO + r"/languages", RestEndpoint.languages),
    ("GET", REPO + r"/pulls", RestEndpoint.pulls),
    ("GET", REPO + r"/pulls/comments", RestEndpoint.all_pull_comments),
    ("GET", REPO + r"/pulls/(\d+)", RestEndpoint.pull),
    ("GET", REPO + r"/pulls/(\d+)/files", RestEndpoint.files),
    ("GET", REPO + r"/pulls/(\d+)/comments", RestEndpoint.pull_comments),
    ("GET", REPO + r"/issues", RestEndpoint.issues),
    ("GET", REPO + r"/issues/comments", RestEndpoint.all_issue_comments),
    ("GET", REPO + r"/issues/(\d+)", RestEndpoint.issue),
    ("GET", REPO + r"/issues/(\d+)/comments", RestEndpoint.issue_comments),
    ("GET", r"/rate_limit", RestEndpoint.rate_limit),
    ("GET", r"/user", RestEndpoint.user),
    ("POST", r"/app/installations/(\d+)/access_tokens", RestEndpoint.access_token),
    ("GET", r"/search/repositories", RestEndpoint.search),
)
