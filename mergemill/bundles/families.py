"""Families of tasks: tasks of a repository, and tasks that share a change, belong to a family."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


class FamilyIndex:
    """Families of repositories: those that share a change are a family. The order of additions does not matter."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        """Repository -> another of its family with a smaller name, or itself."""
        self._candidates: dict[str, str] = {}
        """Candidate -> a repository of its family."""

    def add(self, repo: str, candidates: Iterable[str]) -> None:
        """Add a task of a repository that is derived from some candidates (ids)."""
        repo = repo.lower()
        self._parents.setdefault(repo, repo)
        for candidate in candidates:
            self._unite(repo, self._candidates.setdefault(candidate, repo))

    def get_name(self, repo: str) -> str:
        """Return the name of the family of a repository: its first repository by name."""
        name = repo.lower()
        while (parent := self._parents.get(name, name)) != name:
            self._parents[name] = self._parents[parent]
            name = parent
        return name

    def choose_side(self, repo: str, shares: Sequence[float]) -> int:
        """Return the side of a repository, by shares that sum to 1; a family is on a single side.

        It depends on a hash of the family's name, so later tasks move no other family.
        """
        point = int.from_bytes(hashlib.sha256(f" {self.get_name(repo)}".encode()).digest()[:8]) / 2**64
        reached = 0.0
        for side, share in enumerate(shares):
            reached += share
            if point < reached:
                return side
        return len(shares) - 1

    def _unite(self, name: str, other: str) -> None:
        first, second = sorted((self.get_name(name), self.get_name(other)))
        self._parents[second] = first
