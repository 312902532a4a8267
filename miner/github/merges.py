"""How merged pull requests stand in the clone: merge commit, base, shape, and the commits of their branches.

The forge names the merge commit, the clone tells the rest. The base is the first parent of a merge or squash commit. Of
a rebase merge the forge names the last commit, and the base is what the first of them stands on; they are recognised as
the branch's own by author, date and subject, which a rebase leaves as they were, or by patch id. Where the forge names
no commit, or one that the clone has not, the default line is searched for the pull request's number, for its tip, and
for what a rebase made of its tip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from backends.git import EMPTY_TREE, Repository
from miner.changes import Reason
from miner.git import messages
from miner.git.log import Commit, commits_of
from miner.git.rebases import patch_ids
from miner.github.graph import Graph
from taskdb.journal import Pull
from taskdb.records import Shape

_NEAR = 7 * 24 * 3600
"""Seconds between the merge and a commit that bears the number: a fork keeps its parent's numbers, years apart."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A pull request as it stands in the clone. With a `fault` it is none of the default line, or not there at all."""

    pull: Pull
    base: str
    merge: str
    shape: Shape
    head: str | None
    """Tip of its branch, where the clone has it."""
    commits: tuple[Commit, ...] = ()
    """What the branch adds to its base, newest first; of a squash, the commits before they became one."""
    fault: tuple[Reason, str] | None = None

    @property
    def first_commit_at(self) -> str | None:
        """When the first of its commits was made, ISO 8601 in UTC."""
        made = [int(commit.authored) for commit in self.commits]
        return datetime.fromtimestamp(min(made), UTC).isoformat(timespec="seconds") if made else None


class _Place(NamedTuple):
    """A pull request whose merge commit was found, before any commit is read."""

    pull: Pull
    merge: str
    parents: tuple[str, ...]
    head: str | None
    branch: list[str]
    """Commits of the branch, children first."""
    run: list[str]
    """The merge commit and its first parents, as many as the branch has commits."""


class Merges:
    """Finds pull requests in one clone, many at a time."""

    def __init__(self, repository: Repository, graph: Graph) -> None:
        self.repository = repository
        self.graph = graph

    def of(self, pulls: Sequence[Pull]) -> Iterator[Merged]:
        """The pull requests in the order given."""
        places = [self._place(pull) for pull in pulls]
        shas = (sha for place in places if isinstance(place, _Place) for sha in (*place.branch, *place.run))
        commits = {commit.sha: commit for commit in commits_of(self.repository, shas)}
        ids = self._patch_ids([place for place in places if isinstance(place, _Place)], commits)
        for place in places:
            yield self._merged(place, commits, ids) if isinstance(place, _Place) else place

    def _place(self, pull: Pull) -> _Place | Merged:
        tips = (pull.body["headRefOid"], self.graph.pulls.get(pull.number))
        head = next((tip for tip in tips if tip in self.graph), None)
        named = (pull.body["mergeCommit"] or {}).get("oid")
        merge = named if named in self.graph else self._search.find(pull, head)
        if merge is None:
            why = f"the clone has no commit {named[:10]}" if named else "the forge names no merge commit"
            why += ", and the default line none that bears its number or its changes"
            return Merged(pull, EMPTY_TREE, named or EMPTY_TREE, Shape.MERGE, head, fault=(Reason.NO_MERGE_COMMIT, why))
        parents = self.graph.parents(merge)
        if head is None and len(parents) > 1:
            head = parents[1]
        branch = self._branch(pull, merge, parents, head) if head and parents else []
        run = self.graph.line(merge, max(1, len(branch))) if len(parents) == 1 else []
        return _Place(pull, merge, parents, head, branch, run)

    def _branch(self, pull: Pull, merge: str, parents: tuple[str, ...], head: str) -> list[str]:
        """The commits of the branch. One that was pushed to its base as it is has no merge commit to measure by."""
        base = parents[0]
        if merge == head and pull.body["baseRefOid"] in self.graph:
            base = pull.body["baseRefOid"]
        return self.graph.between(base, head) or ([merge] if merge == head else [])

    def _patch_ids(self, places: Iterable[_Place], commits: dict[str, Commit]) -> dict[str, str]:
        """Patch ids where a rebase may have left nothing else as it was: of commits that name no pull request."""
        unsure = [
            place
            for place in places
            if place.run and place.branch and messages.pull_request_number(commits[place.merge].message) is None
            and _kept(commits[place.merge]) != _kept(commits[place.branch[0]])
        ]  # fmt: skip
        shas = dict.fromkeys(sha for place in unsure for sha in (*place.branch, *place.run))
        return patch_ids(self.repository, (sha for sha in shas if len(commits[sha].parents) == 1))

    def _merged(self, place: _Place, commits: dict[str, Commit], ids: dict[str, str]) -> Merged:
        branch = tuple(commits[sha] for sha in place.branch)
        base, shape = place.parents[0] if place.parents else EMPTY_TREE, Shape.MERGE
        if len(place.parents) < 2:
            rebased = _rebased([commits[sha] for sha in place.run], branch, ids)
            shape = Shape.REBASE if rebased else Shape.SQUASH
            if rebased and rebased[-1].parents:
                base = rebased[-1].parents[0]
        fault = None
        if not self.graph.in_default_line(place.merge):
            where = place.pull.body["baseRefName"]
            fault = (Reason.NOT_IN_DEFAULT_LINE, f"it was merged into {where}, which the default line does not hold")
        return Merged(place.pull, base, place.merge, shape, place.head, branch, fault)

    @cached_property
    def _search(self) -> _Search:
        return _Search(self.repository, self.graph)


def _rebased(run: Sequence[Commit], branch: Iterable[Commit], ids: Mapping[str, str]) -> list[Commit]:
    """Those commits at the end of a line that are the branch's own, newest first; merges are left out."""
    found: list[Commit] = []
    own = [commit for commit in branch if len(commit.parents) == 1]
    for ours, theirs in zip(run, own, strict=False):
        if _kept(ours) != _kept(theirs) and not (ours.sha in ids and ids[ours.sha] == ids.get(theirs.sha)):
            break
        found.append(ours)
    return found


def _kept(commit: Commit) -> tuple[str, str, str]:
    return commit.email, commit.authored, commit.subject


class _Search:
    """The default line by what its commits say; read when the first pull request is searched for."""

    def __init__(self, repository: Repository, graph: Graph) -> None:
        self.repository = repository
        self.graph = graph
        self.numbers: dict[int, list[tuple[int, str]]] = {}
        self.kept: dict[int, str] = {}  # by hash: texts of a whole history would take much room
        self.second: dict[str, str] = {}
        for commit in commits_of(repository, graph.default_line()):
            if (number := messages.pull_request_number(commit.message)) is not None:
                self.numbers.setdefault(number, []).append((int(commit.committed), commit.sha))
            if len(commit.parents) > 1:
                self.second[commit.parents[1]] = commit.sha
            else:
                self.kept[hash(_kept(commit))] = commit.sha

    def find(self, pull: Pull, head: str | None) -> str | None:
        """The commit of the default line that most likely merged it, or None."""
        when = datetime.fromisoformat(pull.merged_at).timestamp()
        near = [(abs(at - when), sha) for at, sha in self.numbers.get(pull.number, ()) if abs(at - when) <= _NEAR]
        if near:
            return min(near)[1]
        if head is None:
            return None
        if head in self.second:
            return self.second[head]
        if self.graph.in_default_line(head):
            return head
        tip = next(commits_of(self.repository, [head]))
        return self.kept.get(hash(_kept(tip)))
