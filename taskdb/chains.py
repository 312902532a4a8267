"""Chains of records: which ones are meant, what a chain waits for, and one step of it that is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Row

from taskdb.records import Record, Rejection, Stage

STAGE_COLUMNS: dict[Stage, tuple[str, str]] = {
    Stage.BUILD: ("candidate", "environment"),
    Stage.VERIFY: ("environment", "verification"),
    Stage.JUDGE: ("verification", "verdict"),
    Stage.DERIVE: ("verdict", "task"),
    Stage.CERTIFY: ("task", "certificate"),
}
"""Stage -> columns of the view `changes` that hold its input and its output."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Which changes are meant; empty means all. Dates are whole days, both ends included. `only`: names or ids."""

    sources: Sequence[str] = ()
    only: Sequence[str] = ()
    since: date | None = None
    until: date | None = None
    language: str | None = None
    limit: int | None = None
    """At most this many candidates of each source, newest first."""
    retry: Sequence[str] = ()
    """Reasons: what was rejected for one of them is done again."""

    def admits(self, name: str, key: str, at: str, language: str) -> bool:
        """Whether a candidate (its name, id, date and language) is meant, sources and limit aside."""
        day = at[:10]
        return (
            (not self.only or name in self.only or any(key.startswith(beginning) for beginning in self.only))
            and (self.since is None or day >= self.since.isoformat())
            and (self.until is None or day <= self.until.isoformat())
            and (self.language is None or language == self.language)
        )

    def choose(self, rows: Iterable[Row[Any]]) -> list[Row[Any]]:
        """Those rows of the view `changes`, newest first, that are meant."""
        taken: Counter[str] = Counter()
        chosen = []
        for row in rows:
            full = self.limit is not None and taken[row.source] >= self.limit
            if full or (self.sources and row.source not in self.sources):
                continue
            if self.admits(row.name, row.candidate, row.merged_at, row.language):
                taken[row.source] += 1
                chosen.append(row)
        return chosen


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One finished stage of one record: what it started from, what came of it, and what it cost."""

    stage: Stage
    result: Record
    source: str
    name: str
    """Name of the change."""
    seconds: float
    parent: Record | None = None
    """None when the result names its parent itself."""

    @property
    def ok(self) -> bool:
        """Whether the record went on."""
        return not isinstance(self.result, Rejection)

    @property
    def reason(self) -> str | None:
        """Why it went no further, or None."""
        return self.result.reason if isinstance(self.result, Rejection) else None


def next_stage(row: Row[Any], retry: Sequence[str] = ()) -> Stage | None:
    """The stage that a row of `changes` waits for, or None: it is certified, or rejected for no reason to try again."""
    if row.rejected_by is not None and row.reason not in retry:
        return None
    return next((stage for stage, (_, makes) in STAGE_COLUMNS.items() if getattr(row, makes) is None), None)
