"""Chains of records: which ones are meant, what a chain waits for, and one step of it that is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Row

from taskdb.kinds import DEFAULT, NEEDS, Needs, ready, still_open
from taskdb.records import Kind, Record, Rejection, Stage

STAGE_COLUMNS: dict[Stage, tuple[str, str]] = {
    Stage.BUILD: ("candidate", "environment"),
    Stage.VERIFY: ("environment", "verification"),
    Stage.JUDGE: ("verification", "verdict"),
}
"""Stage -> columns of the view `changes` that hold its input and its output, up to where one change has many tasks."""


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
    kinds: Sequence[Kind] = DEFAULT
    """Kinds of tasks that are to be made."""
    certified: Sequence[Kind] = tuple(Kind)
    """Kinds of tasks that are to be certified, where they were made."""
    stages: Collection[Stage] = tuple(Stage)
    """Stages that a run through several goes through."""

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
    kind: Kind | None = None
    """Of the derivers and the certificates: the kind of task."""

    @property
    def ok(self) -> bool:
        """Whether the record went on."""
        return not isinstance(self.result, Rejection)

    @property
    def reason(self) -> str | None:
        """Why it went no further, or None."""
        return self.result.reason if isinstance(self.result, Rejection) else None


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What a change still has before it."""

    stage: Stage | None
    """The next one, up to the judge, or the judge again, where what it set aside is asked for again."""
    stopped: Stage | None
    """The one that has rejected it."""
    kinds: tuple[Kind, ...]
    """Kinds of tasks that are not made and not refused, whether the change has come far enough for them or not."""
    ready: bool
    """Whether it has, for one of them."""
    tasks: tuple[str, ...]
    """Ids of tasks to be certified."""

    def waits_for(self, stages: Collection[Stage]) -> bool:
        """Whether one of the stages has something to do at once."""
        return (
            self.stage in stages
            or (self.ready and Stage.DERIVE in stages)
            or (bool(self.tasks) and Stage.CERTIFY in stages)
        )


def waiting(row: Row[Any], derived: Iterable[Row[Any]], scope: Scope, *, paired: bool = False) -> Waiting:
    """What a row of `changes` waits for.

    Args:
        row: the change.
        derived: its rows of `derivations`.
        scope: kinds that are wanted, and reasons for which what was rejected is done again.
        paired: whether it has a neighbour that was judged, too.
    """
    rejected = row.rejected_by in STAGE_COLUMNS and row.reason not in scope.retry
    stopped = Stage(row.rejected_by) if rejected else None
    stage = None if stopped else next((s for s, (_, made) in STAGE_COLUMNS.items() if getattr(row, made) is None), None)
    if stage is None and row.set_aside in scope.retry:  # derived anew from the same verdict, it would be refused anew
        stage = Stage.JUDGE
    made, refused, tasks = set[Kind](), set[Kind](), list[str]()
    for one in derived:
        kind, again = Kind(one.kind), one.reason in scope.retry
        if one.task is not None:
            made.add(kind)
            if one.certificate is None and kind in scope.certified and (one.reason is None or again):
                tasks.append(one.task)
        elif not again:
            refused.add(kind)
    brings_tests = row.test_lines is None or row.test_lines > 0
    kinds = tuple(still_open(scope.kinds, made, refused, row.change_kind, brings_tests=brings_tests))
    if not brings_tests and not any(NEEDS[kind] is Needs.VERIFIED for kind in kinds):
        stage = None  # no environment is built for nothing
    judged = row.verdict is not None
    return Waiting(
        stage=stage, stopped=stopped, kinds=kinds, tasks=tuple(tasks),
        ready=any(ready(kind, judged=judged, paired=paired, stopped=stopped) for kind in kinds),
    )  # fmt: skip
