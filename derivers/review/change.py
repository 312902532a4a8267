"""A change whose reviews are made: its candidate, its patch and its history, each read once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from derivers.review.history import History
from taskdb.artifacts import Artifacts
from taskdb.records import Candidate


@dataclass(frozen=True)
class Under:
    """The change under review; `Unfit` is raised by whoever finds that it gives no review of some form."""

    candidate: Candidate
    history: History
    artifacts: Artifacts

    @cached_property
    def gold(self) -> str:
        """The gold patch."""
        return self.artifacts.text(self.candidate.gold_patch)

    def shuffled(self, words: Iterable[str]) -> list[str]:
        """The words in an order that depends on the change's name and tells nothing else."""
        name = self.candidate.name
        return sorted(words, key=lambda word: hashlib.sha256(f"{name}\0{word}".encode()).digest())
