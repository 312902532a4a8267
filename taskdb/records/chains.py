"""Chains of records: the scope of a run, the pending work of a change, and the result of one stage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from taskdb.records import Kind, Record, Rejection, Stage
from taskdb.records.kinds import Prerequisites, Requirement, iter_open_kinds

STAGE_COLUMNS: dict[Stage, tuple[str, str]] = {
    Stage.BUILD: ("candidate", "environment"),
    Stage.VERIFY: ("environment", "verification"),
    Stage.JUDGE: ("verification", "verdict"),
}
"""Stage -> columns of the view `changes` with its input and its output. Later stages have several tasks per change."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Selection of changes; an empty field selects all. Dates are whole days, both inclusive. `only`: names or ids."""

    sources: Sequence[str] = ()
    only: Sequence[str] = ()
    since: date | None = None
    until: date | None = None
    language: str | None = None
    limit: int | None = None
    """At most this many candidates of each source, newest first."""
    retry: Sequence[str] = ()
    """Reasons whose rejections are processed again."""
    kinds: Mapping[Kind, Prerequisites] = field(default_factory=dict)
    """Kinds of tasks to derive, in order."""
    certified: Sequence[Kind] = tuple(Kind)
    """Kinds of tasks to certify, where they were derived."""
    stages: Collection[Stage] = tuple(Stage)
    """Stages that a run of several stages includes."""

    def includes(self, name: str, key: str, at: str, language: str) -> bool:
        """Return whether a candidate (name, id, date, language) is selected; sources and limit are not checked."""
        day = at[:10]
        return (
            (not self.only or name in self.only or any(key.startswith(beginning) for beginning in self.only))
            and (self.since is None or day >= self.since.isoformat())
            and (self.until is None or day <= self.until.isoformat())
            and (self.language is None or language == self.language)
        )


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """Result of one stage for one record, with its parent and its time."""

    stage: Stage
    result: Record
    source: str
    name: str
    """Name of the change."""
    seconds: float
    parent: Record | None = None
    """None when the result itself names its parent."""
    kind: Kind | None = None
    """Kind of the task, for derive and certify."""

    @property
    def ok(self) -> bool:
        """Whether the result is no rejection."""
        return not isinstance(self.result, Rejection)

    @property
    def reason(self) -> str | None:
        """Reason of the rejection, or None."""
        return self.result.reason if isinstance(self.result, Rejection) else None


@dataclass(frozen=True, kw_only=True)
class PendingWork:
    """Pending work of one change."""

    stage: Stage | None
    """Next stage up to the judge; the judge again where its set-aside reason is to be retried."""
    rejected_by: Stage | None
    """Stage that rejected the change."""
    kinds: tuple[Kind, ...]
    """Kinds of tasks neither derived nor rejected, whether their prerequisites are met or not."""
    has_ready_kind: bool
    """Whether the prerequisites of one of these kinds are met."""
    tasks: tuple[str, ...]
    """Ids of tasks to certify."""

    def includes_any(self, stages: Collection[Stage]) -> bool:
        """Return whether one of the stages can run now."""
        return (
            self.stage in stages
            or (self.has_ready_kind and Stage.DERIVE in stages)
            or (bool(self.tasks) and Stage.CERTIFY in stages)
        )


def find_pending_work(row: Any, derived: Iterable[Any], scope: Scope, *, paired: bool = False) -> PendingWork:
    """Return the pending work of a row of `changes`.

    Args:
        row: the change.
        derived: its rows of `derivations`.
        scope: kinds to derive and certify, and reasons to retry.
        paired: whether it has a neighbour with a verdict.
    """
    rejected = row.rejected_by in STAGE_COLUMNS and row.reason not in scope.retry
    rejecting_stage = Stage(row.rejected_by) if rejected else None
    missing = (stage for stage, (_, output) in STAGE_COLUMNS.items() if getattr(row, output) is None)
    stage = None if rejecting_stage else next(missing, None)
    if stage is None and row.set_aside in scope.retry:  # the same verdict would be rejected again
        stage = Stage.JUDGE
    derived_kinds, rejected_kinds, tasks = set[str](), set[str](), list[str]()
    for one in derived:
        is_retried = one.reason in scope.retry
        if one.task is not None:
            derived_kinds.add(one.kind)
            if one.certificate is None and one.kind in scope.certified and (one.reason is None or is_retried):
                tasks.append(one.task)
        elif not is_retried:
            rejected_kinds.add(one.kind)
    brings_tests = row.test_lines is None or row.test_lines > 0
    kinds = tuple(
        iter_open_kinds(scope.kinds, derived_kinds, rejected_kinds, row.change_kind, brings_tests=brings_tests)
    )
    if not brings_tests and not any(scope.kinds[kind].requirement is Requirement.VERIFIED for kind in kinds):
        stage = None  # no kind needs an environment
    judged = row.verdict is not None
    return PendingWork(
        stage=stage,
        rejected_by=rejecting_stage,
        kinds=kinds,
        tasks=tuple(tasks),
        has_ready_kind=any(
            scope.kinds[kind].are_met(judged=judged, paired=paired, rejected_by=rejecting_stage) for kind in kinds
        ),
    )
