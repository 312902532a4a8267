"""Fetch issues and review threads with their comments, many at a time, into the journal.

Each is fetched once. Issues are requested by number, since a change may refer to a number that is a pull request or
does not exist; this is recorded, too. Threads are requested by id. Further pages of comments are fetched at once, so
that the journal holds complete discussions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from miner.github.api import RATE_LIMIT_FIELDS, GitHubApi
from miner.github.journal import CrawlJournal, MergedPull
from miner.github.page_size import AdaptivePageSize
from miner.github.queries import load_query
from miner.github.responses import RETRY_ADVICE, GitHubNotFoundError, PageTooLargeError

MAX_NODES = 349
"""Connections per request: the most that cost three points and are answered in time."""
_OF_ISSUE, _OF_THREAD, _IDS = 2, 1, 100
_PERMANENT_TYPES = ("NOT_FOUND", "FORBIDDEN")
_ISSUE_REFERENCE = re.compile(r"^(?P<owner>[\w-]+)/(?P<name>[\w.-]+)#(?P<number>\d+)$")

MISSING_NODE: dict[str, Any] = {"__typename": "Missing"}


def build_issue_key(issue: str) -> str:
    """Build the journal's key of `owner/name#12`."""
    return f"issue:{issue.lower()}"


def build_thread_key(node_id: str) -> str:
    """Build the journal's key of a review thread."""
    return f"thread:{node_id}"


@dataclass
class DiscussionFetcher:
    """Fetcher of discussions of a repository. `name` is its current name, whose existence each request checks."""

    api: GitHubApi
    journal: CrawlJournal
    name: str

    def __post_init__(self) -> None:
        self.pace = AdaptivePageSize.from_state(self.journal.get_state("talk_pace"), MAX_NODES)

    def list_closed_issues(self, pull: MergedPull) -> list[str]:
        """List `owner/name#12` of the issues that the pull request closes according to GitHub."""
        nodes = self._list_all(pull, "closingIssuesReferences", "closing", "more_closing")
        return [f"{node['repository']['nameWithOwner']}#{node['number']}" for node in nodes if node]

    def list_threads(self, pull: MergedPull) -> list[str]:
        """List the ids of the review threads of a pull request."""
        return [node["id"] for node in self._list_all(pull, "reviewThreads", "threads", "more_threads") if node]

    def fetch(self, issues: Iterable[str], threads: Iterable[str]) -> None:
        """Fetch those issues (`owner/name#12`) and threads (ids) that the journal lacks.

        Raises:
            GitHubNotFoundError: the repository was deleted.
            InputError, MachineError, Transient: as in `GitHubApi.query_graphql`.
        """
        wanted = {build_issue_key(issue): issue for issue in issues} | {
            build_thread_key(thread): thread for thread in threads
        }
        known = self.journal.find_known_keys(wanted)
        left = [item for key, item in wanted.items() if key not in known]
        while left:
            answers, n_fetched = self.pace.request(
                partial(self._fetch_some, left), sleep=self.api.pool.pause, pause=self.api.first_pause
            )
            self.journal.add_answers(answers)
            self.journal.put_state(talk_pace=self.pace.to_state())
            left = left[n_fetched:]

    def _fetch_some(self, left: Sequence[str], size: int) -> tuple[dict[str, Any], int]:
        """Fetch as many of the first keys as fit into a single request; return the answers and their number."""
        n_fetched, spent = 0, 0
        for item in left:
            spent += _OF_ISSUE if "#" in item else _OF_THREAD
            if n_fetched and spent > size:
                break
            n_fetched += 1
        part = left[:n_fetched]
        issues, threads = [key for key in part if "#" in key], [key for key in part if "#" not in key]
        return self._query_issues_and_threads(issues, threads), n_fetched

    def _query_issues_and_threads(self, issues: Sequence[str], threads: Sequence[str]) -> dict[str, Any]:
        owner, _, name = self.name.partition("/")
        rows = [f"own: repository(owner: {json.dumps(owner)}, name: {json.dumps(name)}) {{ id }}"]
        rows += [_build_issue_field(place, issue) for place, issue in enumerate(issues)]
        parts = [threads[at : at + _IDS] for at in range(0, len(threads), _IDS)]
        rows += [
            f"t{at}: nodes(ids: {json.dumps(list(part))}) {{ ... on PullRequestReviewThread {{ ...Thread }} }}"
            for at, part in enumerate(parts)
        ]
        query = (
            f"query Discussions {{ {RATE_LIMIT_FIELDS}\n"
            + "\n".join(rows)
            + "\n}\n"
            + _select_fragments(bool(issues), bool(threads))
        )
        answer = self.api.query_graphql(query, what=f"github:{self.name}")
        if not answer.data.get("own"):
            raise GitHubNotFoundError(
                f"github:{self.name}: it does not exist any more", advice="it was deleted or made private"
            )
        if any(missing.type not in _PERMANENT_TYPES for missing in answer.missing):
            raise PageTooLargeError(f"github:{self.name}: {answer.missing[0].message}", advice=RETRY_ADVICE)
        answers: dict[str, Any] = {}
        for place, issue in enumerate(issues):
            node = ((answer.data.get(f"i{place}") or {}).get("issueOrPullRequest")) or MISSING_NODE
            answers[build_issue_key(issue)] = self._complete_comments(node, "more_comments")
        for at, part in enumerate(parts):
            nodes = answer.data.get(f"t{at}") or [None] * len(part)
            for node_id, node in zip(part, nodes, strict=True):
                answers[build_thread_key(node_id)] = self._complete_comments(node or MISSING_NODE, "more_replies")
        return answers

    def _complete_comments(self, node: dict[str, Any], query: str) -> dict[str, Any]:
        """Return the node with all its comments."""
        if comments := node.get("comments"):
            node["comments"] = [*comments["nodes"], *self._fetch_rest(node["id"], comments["pageInfo"], query)]
        return node

    def _list_all(self, pull: MergedPull, field: str, kind: str, query: str) -> list[Any]:
        """List a field of the pull request: the part on its page, and the rest, which is fetched once."""
        part = pull.body[field]
        if not part["pageInfo"]["hasNextPage"]:
            return list(part["nodes"])
        key = f"{kind}:{pull.number}"
        if not self.journal.find_known_keys([key]):
            self.journal.add_answers({key: self._fetch_rest(pull.body["id"], part["pageInfo"], query)})
        return [*part["nodes"], *self.journal.get_answers([key])[key]]

    def _fetch_rest(self, node_id: str, page: dict[str, Any], query: str) -> list[Any]:
        """Fetch the items after a page."""
        text, rows = load_query(query).replace("{RATE}", RATE_LIMIT_FIELDS), list[Any]()
        while page["hasNextPage"]:
            variables = {"id": node_id, "after": page["endCursor"]}
            more = self.api.query_graphql(text, variables, what=f"github:{self.name}").data["node"]["more"]
            rows += more["nodes"]
            page = more["pageInfo"]
        return rows


def _build_issue_field(place: int, issue: str) -> str:
    match = _ISSUE_REFERENCE.match(issue)
    if not match:
        raise ValueError(f"{issue!r} is no issue")
    return (
        f"i{place}: repository(owner: {json.dumps(match['owner'])}, name: {json.dumps(match['name'])}) "
        f"{{ issueOrPullRequest(number: {match['number']}) {{ __typename ...Issue ...Pull }} }}"
    )


def _select_fragments(issues: bool, threads: bool) -> str:
    """Return the fragments that the query uses: GraphQL rejects unused fragments."""
    parts = re.split(r"(?m)^(?=fragment )", load_query("discussions"))
    used = ["Issue", "Pull"] * issues + ["Thread"] * threads
    return "".join(part for part in parts if any(part.startswith(f"fragment {name} on ") for name in used))
