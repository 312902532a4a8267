"""GitHub's REST API in so far as a miner of pull requests asks it. `ROUTES` is the list of what is answered."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.github.answers import Answer, Ask, as_json, message
from tests.github.apps import App, issue_token
from tests.github.bodies import Bodies
from tests.github.budget import Books, Clock, Token
from tests.github.git_reader import GitReader
from tests.github.repository_fields import matches
from tests.github.world import Issue, PullRequest, Repository, World

DIFF_TYPES = re.compile(r"application/vnd\.github\.(?:[\w-]+\.)?(?:diff|patch)\b")
LARGEST_DIFF_FILES, LARGEST_DIFF_LINES = 300, 20_000
SEARCH_RESULTS = 1000


class Rest:
    """The endpoint. `answer` answers one request that was found within its limits."""

    def __init__(self, world: World, books: Books, clock: Clock, tokens: dict[str, Token], app: App | None) -> None:
        self.world = world
        self.books = books
        self.clock = clock
        self.tokens = tokens
        self.app = app

    def answer(self, ask: Ask) -> Answer:
        for method, pattern, handler in ROUTES:
            found = re.fullmatch(pattern, ask.path)
            if found and method == ask.method.replace("HEAD", "GET"):
                return _with_etag(ask, handler(self, ask, *found.groups()))
        self.books.blame(ask.number, ask.token, "unanswered", f"{ask.method} {ask.path}")
        return message(404, "Not Found")

    def bodies(self, ask: Ask) -> Bodies:
        return Bodies(self.world, ask.root, ask.api)

    # ---- the handlers: (request, parts of the path) -> answer

    def repository(self, ask: Ask, name: str) -> Answer:
        def of(found: Repository) -> Answer:
            return as_json(200, self.bodies(ask).full_repository(found))

        return self._in(ask, name, of)

    def repository_by_id(self, ask: Ask, number: str, below: str) -> Answer:
        """`/repositories/{id}/...` is `/repos/{owner}/{name}/...` of the repository's present name."""
        found = self.world.repositories.get(int(number))
        if not found or not ask.sees(found):
            return message(404, "Not Found")
        ask.path = f"/repos/{found.full_name}{below}"
        return self.answer(ask)

    def languages(self, ask: Ask, name: str) -> Answer:
        return self._in(ask, name, lambda found: as_json(200, found.languages))

    def pulls(self, ask: Ask, name: str) -> Answer:
        def of(found: Repository) -> Answer:
            rows: list[Any] = _by_state(found.pulls.values(), ask.query.get("state", "open"))
            if "base" in ask.query:
                rows = [p for p in rows if p.base_ref == ask.query["base"]]
            return self._page(ask, _ordered(ask, rows), lambda p: self.bodies(ask).pull(found, p))

        return self._in(ask, name, of)

    def pull(self, ask: Ask, name: str, number: str) -> Answer:
        def of(found: Repository, pull: PullRequest) -> Answer:
            if DIFF_TYPES.search(ask.headers.get("accept", "")):
                return _diff(found, pull)
            return as_json(200, self.bodies(ask).pull(found, pull, whole=True))

        return self._in_pull(ask, name, number, of)

    def files(self, ask: Ask, name: str, number: str) -> Answer:
        def of(found: Repository, pull: PullRequest) -> Answer:
            url = f"{ask.root}/{found.full_name}"
            rows = GitReader(found.git_dir).files_of(pull)[:3000]
            return self._page(ask, rows, lambda f: {
                "sha": None, "filename": f.path, "status": {"DELETED": "removed"}.get(f.change, f.change.lower()),
                "additions": f.additions, "deletions": f.deletions, "changes": f.additions + f.deletions,
                "blob_url": f"{url}/blob/{pull.head_sha}/{f.path}", "raw_url": f"{url}/raw/{pull.head_sha}/{f.path}",
                "contents_url": f"{self.bodies(ask).url(found)}/contents/{f.path}?ref={pull.head_sha}",
            } | ({"previous_filename": f.previous} if f.previous else {}))  # fmt: skip

        return self._in_pull(ask, name, number, of)

    def pull_comments(self, ask: Ask, name: str, number: str) -> Answer:
        return self._in_pull(ask, name, number, lambda found, pull: self._review_comments(ask, found, [pull]))

    def all_pull_comments(self, ask: Ask, name: str) -> Answer:
        return self._in(ask, name, lambda found: self._review_comments(ask, found, list(found.pulls.values())))

    def _review_comments(self, ask: Ask, found: Repository, pulls: Sequence[PullRequest]) -> Answer:
        rows = [(pull, thread, c) for pull in pulls for thread in pull.threads for c in thread.comments]
        rows = [row for row in rows if row[2].updated_at >= ask.query.get("since", "")]
        key = {"updated": "updated_at"}.get(ask.query.get("sort", ""), "created_at")
        rows.sort(key=lambda row: (getattr(row[2], key), row[2].id), reverse=ask.query.get("direction") == "desc")
        return self._page(ask, rows, lambda row: self.bodies(ask).review_comment(found, *row))

    def issues(self, ask: Ask, name: str) -> Answer:
        def of(found: Repository) -> Answer:
            everything = [*found.issues.values(), *found.pulls.values()]
            rows = _by_state(everything, ask.query.get("state", "open"))
            rows = [i for i in rows if i.updated_at >= ask.query.get("since", "")]
            return self._page(ask, _ordered(ask, rows), lambda i: self.bodies(ask).issue(found, i))

        return self._in(ask, name, of)

    def issue(self, ask: Ask, name: str, number: str) -> Answer:
        def of(found: Repository, thing: Issue | PullRequest) -> Answer:
            return as_json(200, self.bodies(ask).issue(found, thing))

        return self._in_issue(ask, name, number, of)

    def issue_comments(self, ask: Ask, name: str, number: str) -> Answer:
        def of(found: Repository, thing: Issue | PullRequest) -> Answer:
            rows = [c for c in thing.comments if c.updated_at >= ask.query.get("since", "")]
            return self._page(ask, rows, lambda c: self.bodies(ask).comment(found, thing, c))

        return self._in_issue(ask, name, number, of)

    def all_issue_comments(self, ask: Ask, name: str) -> Answer:
        def of(found: Repository) -> Answer:
            things = [*found.issues.values(), *found.pulls.values()]
            rows = [(t, c) for t in things for c in t.comments if c.updated_at >= ask.query.get("since", "")]
            key = {"updated": "updated_at"}.get(ask.query.get("sort", ""), "created_at")
            rows.sort(key=lambda row: (getattr(row[1], key), row[1].id), reverse=ask.query.get("direction") == "desc")
            return self._page(ask, rows, lambda row: self.bodies(ask).comment(found, *row))

        return self._in(ask, name, of)

    def rate_limit(self, ask: Ask) -> Answer:
        """Free of charge, and answered when nothing remains."""
        resources = {}
        for resource in ("core", "search", "graphql"):
            told = self.books.headers(ask.token, resource)
            names = ("Limit", "Remaining", "Used", "Reset")
            resources[resource] = {n.lower(): int(told[f"X-RateLimit-{n}"]) for n in names} | {"resource": resource}
        return as_json(200, {"resources": resources, "rate": resources["core"]})

    def user(self, ask: Ask) -> Answer:
        if not ask.token:
            return message(401, "Requires authentication")
        if ask.token.installation:
            return message(403, "Resource not accessible by integration")
        return as_json(200, self.bodies(ask).viewer(self.world.actor(ask.token.login)))

    def access_token(self, ask: Ask, installation: str) -> Answer:
        return issue_token(self.app, int(installation), ask, self.clock, self.tokens)

    def search(self, ask: Ask) -> Answer:
        words = ask.query.get("q", "").lower().split()
        if not words:
            return message(422, "Validation Failed", errors=[{"resource": "Search", "field": "q", "code": "missing"}])
        found = [r for r in self.world if ask.sees(r) and matches(r, words)]
        found.sort(key=lambda r: (-r.stars, r.id))
        answer = self._page(ask, found[:SEARCH_RESULTS], lambda r: self.bodies(ask).repository(r) | {"score": 1.0})
        if answer.status != 200:
            return answer
        head = b'{"total_count":%d,"incomplete_results":false,"items":' % len(found)
        answer.body = head + answer.body + b"}"
        return answer

    # ---- what they share

    def _in(self, ask: Ask, name: str, of: Callable[[Repository], Answer]) -> Answer:
        """The answer about a repository: 301 to its id for a former name, 404, 451, or `of(it)`."""
        found = self.world.find(name)
        if not found or not ask.sees(found):
            return message(404, "Not Found")
        if found.full_name.lower() != name.lower():
            below = ask.path.removeprefix(f"/repos/{name}")
            url = f"{ask.api}/repositories/{found.id}{below}"  # the query is not in it, as on GitHub
            moved = as_json(
                301, {"message": "Moved Permanently", "url": url, "documentation_url": "https://docs.github.com"}
            )
            moved.headers["Location"] = url
            return moved
        if found.blocked:
            block = {"reason": "dmca", "created_at": found.created_at, "html_url": f"{ask.root}/dmca"}
            return message(451, "Repository access blocked", block=block)
        return of(found)

    def _in_issue(self, ask: Ask, name: str, number: str, of: Callable[[Repository, Any], Answer]) -> Answer:
        def inner(found: Repository) -> Answer:
            thing = found.issues.get(int(number)) or found.pulls.get(int(number))
            return of(found, thing) if thing else message(404, "Not Found")

        return self._in(ask, name, inner)

    def _in_pull(self, ask: Ask, name: str, number: str, of: Callable[[Repository, PullRequest], Answer]) -> Answer:
        def inner(found: Repository) -> Answer:
            pull = found.pulls.get(int(number))
            return of(found, pull) if pull else message(404, "Not Found")

        return self._in(ask, name, inner)

    def _page(self, ask: Ask, rows: Sequence[Any], body: Callable[[Any], Any]) -> Answer:
        """One page of a list, with the Link header that leads through the others."""
        try:
            size = min(100, max(1, int(ask.query.get("per_page", "30"))))
            number = max(1, int(ask.query.get("page", "1")))
        except ValueError:
            return message(422, "Validation Failed")
        last = max(1, -(-len(rows) // size))
        answer = as_json(200, [body(row) for row in rows[(number - 1) * size : number * size]])
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


def _by_state(things: Any, state: str) -> list[Any]:
    return [t for t in list(things) if state == "all" or (state == "closed") == (t.closed_at is not None)]


def _ordered(ask: Ask, rows: list[Any]) -> list[Any]:
    """By `sort` and `direction`; newest first unless asked otherwise."""
    key = {"updated": "updated_at"}.get(ask.query.get("sort", "created"), "created_at")
    down = ask.query.get("direction", "desc") == "desc"
    return sorted(rows, key=lambda t: (getattr(t, key), t.number), reverse=down)


def _diff(found: Repository, pull: PullRequest) -> Answer:
    """The diff of a pull request, refused when it is too large for GitHub."""
    diff = GitReader(found.git_dir).diff_of(pull)
    for name, count, most in (
        ("files", len(re.findall(rb"^diff --git ", diff, re.MULTILINE)), LARGEST_DIFF_FILES),
        ("lines", diff.count(b"\n"), LARGEST_DIFF_LINES),
    ):
        if count > most:
            text = f"Sorry, the diff exceeded the maximum number of {name} ({most})."
            wrong = [{"resource": "PullRequest", "field": "diff", "code": "too_large"}]
            return message(406, text, errors=wrong)
    return Answer(200, diff, {"Content-Type": "application/vnd.github.v3.diff; charset=utf-8"})


def _with_etag(ask: Ask, answer: Answer) -> Answer:
    """Mark a good answer with its ETag; 304, free of charge, when the client has it."""
    if answer.status != 200 or ask.method != "GET" or "ETag" in answer.headers:
        return answer
    etag = f'W/"{hashlib.sha256(answer.body).hexdigest()}"'
    answer.headers |= {"ETag": etag, "Cache-Control": "private, max-age=60, s-maxage=60"}
    if ask.headers.get("if-none-match") == etag:
        return Answer(304, headers={"ETag": etag}, points=0 if ask.token else 1)
    return answer


REPO = r"/repos/([\w.-]+/[\w.-]+)"
ROUTES: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
    ("GET", REPO, Rest.repository),
    ("GET", r"/repositories/(\d+)(/.*)?", lambda rest, ask, n, below: rest.repository_by_id(ask, n, below or "")),
    ("GET", REPO + r"/languages", Rest.languages),
    ("GET", REPO + r"/pulls", Rest.pulls),
    ("GET", REPO + r"/pulls/comments", Rest.all_pull_comments),
    ("GET", REPO + r"/pulls/(\d+)", Rest.pull),
    ("GET", REPO + r"/pulls/(\d+)/files", Rest.files),
    ("GET", REPO + r"/pulls/(\d+)/comments", Rest.pull_comments),
    ("GET", REPO + r"/issues", Rest.issues),
    ("GET", REPO + r"/issues/comments", Rest.all_issue_comments),
    ("GET", REPO + r"/issues/(\d+)", Rest.issue),
    ("GET", REPO + r"/issues/(\d+)/comments", Rest.issue_comments),
    ("GET", r"/rate_limit", Rest.rate_limit),
    ("GET", r"/user", Rest.user),
    ("POST", r"/app/installations/(\d+)/access_tokens", Rest.access_token),
    ("GET", r"/search/repositories", Rest.search),
)
