"""Of changes that are nearly the same the database keeps the first: a fork's or a backport's is no second task.

The miner asks this of each candidate as its last word, the database answers; how alike two changes are is said by
`miner.near`. A change is compared with candidates of changes that came into the database before it, so it never
meets itself, and mining again in any order gives the same verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from backends.services import Services
from taskdb.records import Candidate, PullRequest, Rejection, Stage
from taskdb.store import Store


@dataclass
class Duplicates:
    """Asks the database; remembers the keys of what it let through until they are written."""

    store: Store
    services: Services
    keys: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Candidate's id -> keys, not written yet."""

    def last_word(self, pull: PullRequest, candidate: Candidate) -> Candidate | Rejection:
        """The candidate, or its rejection that names the change it is nearly the same as."""
        from miner.changes import Reason  # noqa: PLC0415 - only those who mine need the miner
        from miner.near import sketch  # noqa: PLC0415

        read = self.services.artifacts.text
        ours = sketch(read(candidate.gold_patch), read(candidate.test_patch), candidate.problem_statement)
        for other in self.store.alike(pull, ours.keys):
            theirs = sketch(read(other.gold_patch), read(other.test_patch), other.problem_statement)
            if said := ours.likeness(theirs, self.services.settings):
                return Rejection(
                    parent=pull.id, name=pull.name, source=pull.source, stage=Stage.MINE,
                    reason=Reason.NEAR_DUPLICATE, detail=f"{said} of {other.name} ({other.source})",
                )  # fmt: skip
        self.keys[candidate.id] = ours.keys
        return candidate

    def take(self) -> dict[str, tuple[int, ...]]:
        """The keys to write now."""
        taken, self.keys = self.keys, {}
        return taken
