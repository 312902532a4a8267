"""Locate merged pull requests in the clone: merge commit, base, shape, and the commits of their branches.

The forge names the merge commit, the clone supplies the rest. The base is the first parent of a merge or squash commit.
Of a rebase merge the forge names the last commit, and the base is the parent of the first; rebased commits are
recognised by author, date and subject, which a rebase keeps, or by patch id. Where the forge names no commit, or a
commit that the clone lacks, the default branch is searched for the pull request's number, for its tip, and for the
rebased copy of its tip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from backends.git import EMPTY_TREE, GitRepository
from miner.changes import Reason
from miner.git import messages
from miner.git.log import Commit, read_commits
from miner.git.rebases import compute_patch_ids
from miner.github.graph import CommitGraph
from miner.github.journal import MergedPull
from taskdb.records import Shape

_MAX_DISTANCE_SECONDS = 7 * 24 * 3600
"""Most seconds between the merge and a commit with the number: a fork keeps its parent's numbers, years apart."""


@dataclass(frozen=True, slots=True)
class MergedPullRequest:
    """A pull request in the clone. With a `rejection` it is not on the default branch, or not in the clone."""

    pull: MergedPull
    base: str
    merge: str
    shape: Shape
    head: str | None
    """Tip of its branch, where the clone has it."""
    commits: tuple[Commit, ...] = ()
    """Commits that the branch adds to its base, newest first; of a squash, the original commits."""
    rejection: tuple[Reason, str] | None = None

    @property
    def first_commit_at(self) -> str | None:
        """Date of its first commit, ISO 8601 in UTC."""
        made = [int(commit.authored) for commit in self.commits]
        return datetime.fromtimestamp(min(made), UTC).isoformat(timespec="seconds") if made else None


class _MergeLocation(NamedTuple):
    """A pull request whose merge commit was found, before any commit is read."""

    pull: MergedPull
    merge: str
    parents: tuple[str, ...]
    head: str | None
    branch: list[str]
    """Commits of the branch, children first."""
    run: list[str]
    """The merge commit and its first parents, as many as the branch has commits."""


class MergeFinder:
    """Finder of the merges of many pull requests in a single clone."""

    def __init__(self, repository: GitRepository, graph: CommitGraph) -> None:
        self.repository = repository
        self.graph = graph

    def find_merges(self, pulls: Sequence[MergedPull]) -> Iterator[MergedPullRequest]:
        """Yield the pull requests in the given order."""
        places = [self._locate(pull) for pull in pulls]
        shas = (sha for place in places if isinstance(place, _MergeLocation) for sha in (*place.branch, *place.run))
        commits = {commit.sha: commit for commit in read_commits(self.repository, shas)}
        ids = self._compute_patch_ids([place for place in places if isinstance(place, _MergeLocation)], commits)
        for place in places:
            yield self._build_merged(place, commits, ids) if isinstance(place, _MergeLocation) else place

    def _locate(self, pull: MergedPull) -> _MergeLocation | MergedPullRequest:
        tips = (pull.body["headRefOid"], self.graph.pulls.get(pull.number))
        head = next((tip for tip in tips if tip in self.graph), None)
        named = (pull.body["mergeCommit"] or {}).get("oid")
        merge = named if named in self.graph else self._open_search.find(pull, head)
        if merge is None:
            why = f"the clone has no commit {named[:10]}" if named else "the forge names no merge commit"
            why += ", and no commit of the default branch has its number or its changes"
            return MergedPullRequest(
                pull, EMPTY_TREE, named or EMPTY_TREE, Shape.MERGE, head, rejection=(Reason.NO_MERGE_COMMIT, why)
            )
        parents = self.graph.find_parents(merge)
        if head is None and len(parents) > 1:
            head = parents[1]
        branch = self._list_branch(pull, merge, parents, head) if head and parents else []
        run = self.graph.walk_first_parents(merge, max(1, len(branch))) if len(parents) == 1 else []
        return _MergeLocation(pull, merge, parents, head, branch, run)

    def _list_branch(self, pull: MergedPull, merge: str, parents: tuple[str, ...], head: str) -> list[str]:
        """List the commits of the branch; a fast-forwarded branch has no merge commit, so its base ref is used."""
        base = parents[0]
        if merge == head and pull.body["baseRefOid"] in self.graph:
            base = pull.body["baseRefOid"]
        return self.graph.list_between(base, head) or ([merge] if merge == head else [])

    def _compute_patch_ids(self, places: Iterable[_MergeLocation], commits: dict[str, Commit]) -> dict[str, str]:
        """Compute patch ids of commits whose number and metadata do not show whether they were rebased."""
        unsure = [
            place
            for place in places
            if place.run
            and place.branch
            and messages.parse_pull_request_number(commits[place.merge].message) is None
            and _build_commit_key(commits[place.merge]) != _build_commit_key(commits[place.branch[0]])
        ]
        shas = dict.fromkeys(sha for place in unsure for sha in (*place.branch, *place.run))
        return compute_patch_ids(self.repository, (sha for sha in shas if len(commits[sha].parents) == 1))

    def _build_merged(
        self, place: _MergeLocation, commits: dict[str, Commit], ids: dict[str, str]
    ) -> MergedPullRequest:
        branch = tuple(commits[sha] for sha in place.branch)
        base, shape = place.parents[0] if place.parents else EMPTY_TREE, Shape.MERGE
        if len(place.parents) < 2:
            rebased = _find_rebased([commits[sha] for sha in place.run], branch, ids)
            shape = Shape.REBASE if rebased else Shape.SQUASH
            if rebased and rebased[-1].parents:
                base = rebased[-1].parents[0]
        rejection = None
        if not self.graph.is_on_default_branch(place.merge):
            where = place.pull.body["baseRefName"]
            rejection = (Reason.NOT_ON_DEFAULT_BRANCH, f"merged into {where}, which never reached the default branch")
        return MergedPullRequest(place.pull, base, place.merge, shape, place.head, branch, rejection)

    @cached_property
    def _open_search(self) -> _MergeSearch:
        return _MergeSearch(self.repository, self.graph)


def _find_rebased(run: Sequence[Commit], branch: Iterable[Commit], ids: Mapping[str, str]) -> list[Commit]:
    """Return the commits at the end of a line that are copies of the branch's, newest first; merges are left out."""
    rebased: list[Commit] = []
    own = [commit for commit in branch if len(commit.parents) == 1]
    for merged, original in zip(run, own, strict=False):
        if _build_commit_key(merged) != _build_commit_key(original) and not (
            merged.sha in ids and ids[merged.sha] == ids.get(original.sha)
        ):
            break
        rebased.append(merged)
    return rebased


def _build_commit_key(commit: Commit) -> tuple[str, str, str]:
    return commit.email, commit.authored, commit.subject


class _MergeSearch:
    """Index of the default branch by commit message; read when the first pull request is searched for."""

    def __init__(self, repository: GitRepository, graph: CommitGraph) -> None:
        self.repository = repository
        self.graph = graph
        self.numbers: dict[int, list[tuple[int, str]]] = {}
        self.kept: dict[int, str] = {}  # by hash: the texts of a whole history would take much memory
        self.second: dict[str, str] = {}
        for commit in read_commits(repository, graph.list_default_branch()):
            if (number := messages.parse_pull_request_number(commit.message)) is not None:
                self.numbers.setdefault(number, []).append((int(commit.committed), commit.sha))
            if len(commit.parents) > 1:
                self.second[commit.parents[1]] = commit.sha
            else:
                self.kept[hash(_build_commit_key(commit))] = commit.sha

    def find(self, pull: MergedPull, head: str | None) -> str | None:
        """Return the commit of the default branch that most likely merged the pull request, or None."""
        when = datetime.fromisoformat(pull.merged_at).timestamp()
        near = [
            (abs(at - when), sha)
            for at, sha in self.numbers.get(pull.number, ())
            if abs(at - when) <= _MAX_DISTANCE_SECONDS
        ]
        if near:
            return min(near)[1]
        if head is None:
            return None
        if head in self.second:
            return self.second[head]
        if self.graph.is_on_default_branch(head):
            return head
        tip = next(read_commits(self.repository, [head]))
        return self.kept.get(hash(_build_commit_key(tip)))
