"""Commits of a clone as a graph in memory, without messages: about 300 bytes each, read by a single `git log`.

For thousands of pull requests it computes, without a process for each, the commits that a branch adds to its base and
whether a commit is on the default branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from heapq import heappop, heappush

from backends.git import GitError, GitRepository
from miner.git.log import PULLS

_OURS, _THEIRS = 1, 2


class CommitGraph:
    """Graph of all commits that branches and pull requests of a clone reach. Commits are named by 40 hex digits.

    Args:
        repository: the clone.
        branch: name of the default branch; without such a branch the clone's HEAD is used.
    """

    def __init__(self, repository: GitRepository, branch: str | None) -> None:
        self.head = _find_tip(repository, branch)
        self.pulls = dict(_list_pull_refs(repository))
        """Number of each pull request with a ref -> tip."""
        self._places: dict[bytes, int] = {}  # in git's order: children before their parents
        self._shas: list[bytes] = []
        parents = list(self._read(repository))
        places = self._places
        self._parents = [tuple(places[p] for p in some if p in places) for some in parents]
        self._default = self._mark_ancestors(places[bytes.fromhex(self.head)])

    def _read(self, repository: GitRepository) -> Iterator[tuple[bytes, ...]]:
        rest = b""
        everything = (self.head, "--branches", "--remotes", f"--glob={PULLS}")
        for block in repository.stream("log", "--topo-order", "--no-show-signature", "--format=%H %P", *everything):
            *rows, rest = (rest + block).split(b"\n")
            for row in rows:
                sha, *parents = map(bytes.fromhex, row.decode().split())
                self._places[sha] = len(self._shas)
                self._shas.append(sha)
                yield tuple(parents)

    def __contains__(self, sha: str | None) -> bool:
        return sha is not None and bytes.fromhex(sha) in self._places

    def __len__(self) -> int:
        return len(self._shas)

    def find_parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit."""
        return tuple(self._shas[place].hex() for place in self._parents[self._find_position(sha)])

    def is_on_default_branch(self, sha: str) -> bool:
        """Return whether the default branch reaches the commit."""
        return bool(self._default[self._find_position(sha)])

    def list_between(self, base: str, tip: str) -> list[str]:
        """List the commits that `tip` reaches and `base` does not, children first: `git log base..tip`."""
        start, stop = self._find_position(tip), self._find_position(base)
        if start == stop:
            return []
        marks = {start: _OURS, stop: _THEIRS}
        heap, n_tip_only, positions = sorted(marks), 1, list[int]()
        while n_tip_only:  # number of commits in the heap that only the tip is known to reach
            place = heappop(heap)
            mark = marks.pop(place)
            if mark == _OURS:
                n_tip_only -= 1
                positions.append(place)
            for parent in self._parents[place]:
                before = marks.get(parent, 0)
                now = before | mark
                if not before:
                    heappush(heap, parent)
                n_tip_only += (now == _OURS) - (before == _OURS)
                marks[parent] = now
        return [self._shas[place].hex() for place in positions]

    def walk_first_parents(self, sha: str, length: int) -> list[str]:
        """List a commit, its first parent, and so on, at most `length` of them."""
        place, shas = self._find_position(sha), list[str]()
        while len(shas) < length:
            shas.append(self._shas[place].hex())
            if not self._parents[place]:
                break
            place = self._parents[place][0]
        return shas

    def list_default_branch(self) -> Iterator[str]:
        """Yield all commits that the default branch reaches, children first."""
        return (sha.hex() for sha, n_tip_only in zip(self._shas, self._default, strict=True) if n_tip_only)

    def _find_position(self, sha: str) -> int:
        return self._places[bytes.fromhex(sha)]

    def _mark_ancestors(self, start: int) -> bytearray:
        reached = bytearray(len(self._shas))
        reached[start] = 1
        for place in range(start, len(self._shas)):  # parents have higher positions
            if reached[place]:
                for parent in self._parents[place]:
                    reached[parent] = 1
        return reached


def _find_tip(repository: GitRepository, branch: str | None) -> str:
    """Return the tip of the default branch, whichever ref a clone keeps it in."""
    if branch:
        for ref in (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"):
            with suppress(GitError):
                return repository.resolve(ref)
    return repository.resolve("HEAD")


def _list_pull_refs(repository: GitRepository) -> Iterator[tuple[int, str]]:
    for row in repository.run_git("for-each-ref", "--format=%(objectname) %(refname)", PULLS).decode().splitlines():
        sha, _, ref = row.partition(" ")
        number = ref.split("/")[2]
        if number.isdigit():
            yield int(number), sha
