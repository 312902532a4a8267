"""What people said: issues with their comments, review threads with theirs, fetched many at a time into the journal.

Each is asked for once. Issues go by their number, for a change may speak of one that is a pull request, or is not
there; that, too, is an answer. Threads go by id. Whatever has more than a page of comments gets the rest at once, so
that what is kept is whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from miner.github.api import RATE, Api
from miner.github.pace import Pace
from miner.github.queries import load
from miner.github.replies import AGAIN, Gone, TooMuch
from taskdb.journal import Journal, Pull

BUDGET = 349
"""Connections of one request: the most that cost three points, and few enough to be answered in time."""
_OF_ISSUE, _OF_THREAD, _IDS = 2, 1, 100
_FINAL = ("NOT_FOUND", "FORBIDDEN")
_ISSUE = re.compile(r"^(?P<owner>[\w-]+)/(?P<name>[\w.-]+)#(?P<number>\d+)$")

MISSING: dict[str, Any] = {"__typename": "Missing"}


def issue_key(issue: str) -> str:
    """The journal's key of `owner/name#12`."""
    return f"issue:{issue.lower()}"


def thread_key(node_id: str) -> str:
    """The journal's key of a review thread."""
    return f"thread:{node_id}"


@dataclass
class Talk:
    """Fetches what was said in one repository. `name`: what it is called now, to be seen to exist with each request."""

    api: Api
    journal: Journal
    name: str

    def __post_init__(self) -> None:
        self.pace = Pace.of(self.journal.get("talk_pace"), BUDGET)

    def closing(self, pull: Pull) -> list[str]:
        """`owner/name#12` of the issues that GitHub itself says the pull request closes."""
        nodes = self._all(pull, "closingIssuesReferences", "closing", "more_closing")
        return [f"{node['repository']['nameWithOwner']}#{node['number']}" for node in nodes if node]

    def threads(self, pull: Pull) -> list[str]:
        """Ids of the review threads of a pull request."""
        return [node["id"] for node in self._all(pull, "reviewThreads", "threads", "more_threads") if node]

    def fetch(self, issues: Iterable[str], threads: Iterable[str]) -> None:
        """Have all these in the journal: issues as `owner/name#12`, threads as ids.

        Raises:
            Gone: the repository vanished.
            InputError, MachineError, Transient: as in `Api.graphql`.
        """
        wanted = {issue_key(issue): issue for issue in issues} | {thread_key(one): one for one in threads}
        known = self.journal.known_answers(wanted)
        left = [one for key, one in wanted.items() if key not in known]
        while left:
            answers, asked = self.pace.ask(
                partial(self._asked, left), sleep=self.api.pool.pause, pause=self.api.first_pause
            )
            self.journal.add_answers(answers)
            self.journal.put(talk_pace=self.pace.kept())
            left = left[asked:]

    def _asked(self, left: Sequence[str], size: int) -> tuple[dict[str, Any], int]:
        """The answers for as many of the first as go into a request, and how many those are."""
        asked, spent = 0, 0
        for one in left:
            spent += _OF_ISSUE if "#" in one else _OF_THREAD
            if asked and spent > size:
                break
            asked += 1
        part = left[:asked]
        issues, threads = [one for one in part if "#" in one], [one for one in part if "#" not in one]
        return self._issues_and_threads(issues, threads), asked

    def _issues_and_threads(self, issues: Sequence[str], threads: Sequence[str]) -> dict[str, Any]:
        owner, _, name = self.name.partition("/")
        rows = [f"own: repository(owner: {json.dumps(owner)}, name: {json.dumps(name)}) {{ id }}"]
        rows += [_issue_row(place, issue) for place, issue in enumerate(issues)]
        parts = [threads[at : at + _IDS] for at in range(0, len(threads), _IDS)]
        rows += [
            f"t{at}: nodes(ids: {json.dumps(list(part))}) {{ ... on PullRequestReviewThread {{ ...Thread }} }}"
            for at, part in enumerate(parts)
        ]
        query = f"query Talk {{ {RATE}\n" + "\n".join(rows) + "\n}\n" + _fragments(bool(issues), bool(threads))
        answer = self.api.graphql(query, what=f"github:{self.name}")
        if not answer.data.get("own"):
            raise Gone(f"github:{self.name}: it is not there any more", advice="it was deleted or made private")
        if any(missing.type not in _FINAL for missing in answer.missing):
            raise TooMuch(f"github:{self.name}: {answer.missing[0].message}", advice=AGAIN)
        found: dict[str, Any] = {}
        for place, issue in enumerate(issues):
            said = ((answer.data.get(f"i{place}") or {}).get("issueOrPullRequest")) or MISSING
            found[issue_key(issue)] = self._whole(said, "more_comments")
        for at, part in enumerate(parts):
            nodes = answer.data.get(f"t{at}") or [None] * len(part)
            for node_id, node in zip(part, nodes, strict=True):
                found[thread_key(node_id)] = self._whole(node or MISSING, "more_replies")
        return found

    def _whole(self, said: dict[str, Any], query: str) -> dict[str, Any]:
        """The same with all its comments."""
        if comments := said.get("comments"):
            said["comments"] = [*comments["nodes"], *self._more(said["id"], comments["pageInfo"], query)]
        return said

    def _all(self, pull: Pull, field: str, kind: str, query: str) -> list[Any]:
        """A list of the pull request's: the page's own part, and the rest, which is asked for once."""
        part = pull.body[field]
        if not part["pageInfo"]["hasNextPage"]:
            return list(part["nodes"])
        key = f"{kind}:{pull.number}"
        if not self.journal.known_answers([key]):
            self.journal.add_answers({key: self._more(pull.body["id"], part["pageInfo"], query)})
        return [*part["nodes"], *self.journal.answers([key])[key]]

    def _more(self, node_id: str, page: dict[str, Any], query: str) -> list[Any]:
        """What comes behind a page."""
        text, found = load(query).replace("{RATE}", RATE), list[Any]()
        while page["hasNextPage"]:
            variables = {"id": node_id, "after": page["endCursor"]}
            more = self.api.graphql(text, variables, what=f"github:{self.name}").data["node"]["more"]
            found += more["nodes"]
            page = more["pageInfo"]
        return found


def _issue_row(place: int, issue: str) -> str:
    found = _ISSUE.match(issue)
    if not found:
        raise ValueError(f"{issue!r} is no issue")
    return (
        f"i{place}: repository(owner: {json.dumps(found['owner'])}, name: {json.dumps(found['name'])}) "
        f"{{ issueOrPullRequest(number: {found['number']}) {{ __typename ...Issue ...Pull }} }}"
    )


def _fragments(issues: bool, threads: bool) -> str:
    """Those fragments that are used: GraphQL refuses others."""
    parts = re.split(r"(?m)^(?=fragment )", load("talk"))
    used = ["Issue", "Pull"] * issues + ["Thread"] * threads
    return "".join(part for part in parts if any(part.startswith(f"fragment {name} on ") for name in used))
