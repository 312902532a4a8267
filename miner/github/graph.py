"""The commits of a clone as a graph in memory, without their texts: about 300 bytes each, read by one `git log`.

It answers for thousands of pull requests what would else be a process for each: what a branch adds to its base, and
what belongs to the default line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from heapq import heappop, heappush

from backends.git import GitError, Repository
from miner.git.log import PULLS

_OURS, _THEIRS = 1, 2


class Graph:
    """All commits that branches and pull requests of a clone reach. Commits go by their 40 hex digits.

    Args:
        repository: the clone.
        branch: name of the default branch; when the clone has none of that name, its HEAD counts.
    """

    def __init__(self, repository: Repository, branch: str | None) -> None:
        self.head = _tip(repository, branch)
        self.pulls = dict(_pulls(repository))
        """Number of each pull request that has a ref -> tip."""
        self._places: dict[bytes, int] = {}  # in git's order: children before their parents
        self._shas: list[bytes] = []
        parents = list(self._read(repository))
        places = self._places
        self._parents = [tuple(places[p] for p in some if p in places) for some in parents]
        self._default = self._ancestors(places[bytes.fromhex(self.head)])

    def _read(self, repository: Repository) -> Iterator[tuple[bytes, ...]]:
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

    def parents(self, sha: str) -> tuple[str, ...]:
        """The parents of a commit."""
        return tuple(self._shas[place].hex() for place in self._parents[self._place(sha)])

    def in_default_line(self, sha: str) -> bool:
        """Whether the default branch reaches the commit."""
        return bool(self._default[self._place(sha)])

    def between(self, base: str, tip: str) -> list[str]:
        """The commits that `tip` reaches and `base` does not, children before their parents: `git log base..tip`."""
        start, stop = self._place(tip), self._place(base)
        if start == stop:
            return []
        marks = {start: _OURS, stop: _THEIRS}
        heap, ours, found = sorted(marks), 1, list[int]()
        while ours:  # commits in the heap that only the tip reaches, as far as is known
            place = heappop(heap)
            mark = marks.pop(place)
            if mark == _OURS:
                ours -= 1
                found.append(place)
            for parent in self._parents[place]:
                before = marks.get(parent, 0)
                now = before | mark
                if not before:
                    heappush(heap, parent)
                ours += (now == _OURS) - (before == _OURS)
                marks[parent] = now
        return [self._shas[place].hex() for place in found]

    def line(self, sha: str, length: int) -> list[str]:
        """A commit, its first parent, and so on, at most `length` of them."""
        place, found = self._place(sha), list[str]()
        while len(found) < length:
            found.append(self._shas[place].hex())
            if not self._parents[place]:
                break
            place = self._parents[place][0]
        return found

    def default_line(self) -> Iterator[str]:
        """All commits that the default branch reaches, children first."""
        return (sha.hex() for sha, ours in zip(self._shas, self._default, strict=True) if ours)

    def _place(self, sha: str) -> int:
        return self._places[bytes.fromhex(sha)]

    def _ancestors(self, start: int) -> bytearray:
        reached = bytearray(len(self._shas))
        reached[start] = 1
        for place in range(start, len(self._shas)):  # parents have higher places
            if reached[place]:
                for parent in self._parents[place]:
                    reached[parent] = 1
        return reached


def _tip(repository: Repository, branch: str | None) -> str:
    """The tip of the default branch, wherever a clone keeps it."""
    if branch:
        for ref in (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"):
            with suppress(GitError):
                return repository.resolve(ref)
    return repository.resolve("HEAD")


def _pulls(repository: Repository) -> Iterator[tuple[int, str]]:
    for row in repository.git("for-each-ref", "--format=%(objectname) %(refname)", PULLS).decode().splitlines():
        sha, _, ref = row.partition(" ")
        number = ref.split("/")[2]
        if number.isdigit():
            yield int(number), sha
