"""Work of the stages: the scope of a run, the pending work of a change, and the result of one stage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Self

from taskdb.records import Kind, PullRequest, Record, Rejection, Stage
from taskdb.records.kinds import Prerequisites, Requirement, iter_open_kinds

STAGE_COLUMNS: dict[Stage, tuple[str, str]] = {
    Stage.BUILD: ("candidate", "environment"),
    Stage.VERIFY: ("environment", "verification"),
    Stage.JUDGE: ("verification", "verdict"),
}
"""Stage -> columns of the view `changes` with its input and its output. Later stages have several tasks per change."""
ID_LENGTH, HEX_DIGITS = 64, frozenset("0123456789abcdef")
AWAITS_CLONE = "awaits-clone"
"""Reason of the rejection of an imported change by the miner, until there is a clone to read it with."""
NOT_RENEWED = "not-renewed"
"""Reason of the rejection of a renewal, which leaves the records of the change as they are."""


def make_clone_wait(pull: PullRequest) -> Rejection:
    """Return the result of mining a change that was imported and whose repository has no clone yet."""
    return Rejection(
        parent=pull.id,
        name=pull.name,
        source=pull.source,
        stage=Stage.MINE,
        reason=AWAITS_CLONE,
        detail=f"there is no clone of {pull.repo} with commit {pull.base_commit}",
    )


def is_id_beginning(word: str) -> bool:
    """Return whether a word may be the beginning of an id: 64 hexadecimal digits."""
    return 0 < len(word) <= ID_LENGTH and HEX_DIGITS.issuperset(word)


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
    renews: bool = False
    """Whether verifications are made again whose tasks rest on copies of tests, and nothing else."""

    @cached_property
    def _named(self) -> tuple[frozenset[str], frozenset[int]]:
        """The words of `only`, and the lengths of those among them that may be beginnings of ids."""
        return frozenset(self.only), frozenset(len(word) for word in self.only if is_id_beginning(word))

    def names(self, name: str, key: str) -> bool:
        """Return whether `only` has a candidate's name, or a beginning of its id (`key`)."""
        words, lengths = self._named
        return not words or name in words or any(key[:length] in words for length in lengths)

    def includes(self, name: str, key: str, at: str, language: str) -> bool:
        """Return whether a candidate (name, id, date, language) is selected; sources and limit are not checked."""
        day = at[:10]
        return (
            self.names(name, key)
            and (self.since is None or day >= self.since.isoformat())
            and (self.until is None or day <= self.until.isoformat())
            and (self.language is None or language == self.language)
        )


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """Result of a stage for a record, with its parent and its time."""

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
        """Whether the result is not a rejection."""
        return not isinstance(self.result, Rejection)

    @property
    def reason(self) -> str | None:
        """Reason of the rejection, or None."""
        return self.result.reason if isinstance(self.result, Rejection) else None


@dataclass(frozen=True, kw_only=True)
class PendingWork:
    """Pending work of a change."""

    stage: Stage | None
    """Next stage up to the judge; the judge again where its set-aside reason is to be retried."""
    rejected_by: Stage | None
    """Stage that rejected the change."""
    kinds: tuple[Kind, ...]
    """Kinds of tasks neither derived nor rejected, whether their prerequisites are met or not."""
    has_ready_kind: bool
    """Whether the prerequisites of any of these kinds are met."""
    tasks: tuple[str, ...]
    """Ids of tasks to certify, each empty where the state is a state that many changes share."""

    def includes_any(self, stages: Collection[Stage]) -> bool:
        """Return whether any of the stages can run now."""
        return (
            self.stage in stages
            or (self.has_ready_kind and Stage.DERIVE in stages)
            or (bool(self.tasks) and Stage.CERTIFY in stages)
        )


@dataclass(frozen=True, kw_only=True)
class DerivedState:
    """State of a task of a change, or of a kind that was rejected for it."""

    kind: str
    is_derived: bool
    """Whether there is a task."""
    is_certified: bool
    reason: str | None
    """Reason of the rejection of kind or task."""
    task: str = ""
    """Id of the task; empty in a state that many changes share."""


@dataclass(frozen=True, kw_only=True)
class ChangeState:
    """State that the pending work of a change depends on."""

    rejected_by: Stage | None
    """Stage up to the judge that rejected the change."""
    reason: str | None
    """Reason of that rejection."""
    passed: frozenset[Stage]
    """Stages up to the judge whose records the change has."""
    set_aside: str | None
    """Reason for which the judge set the change aside."""
    change_kind: str | None
    brings_tests: bool
    """Whether the change has tests of its own, or this is unknown."""
    derived: tuple[DerivedState, ...] = ()

    @classmethod
    def from_rows(cls, change: Mapping[Any, Any], derived: Iterable[Mapping[Any, Any]]) -> Self:
        """Return the state of a row of `changes` and its rows of `derivations`."""
        is_rejected = change["rejected_by"] in STAGE_COLUMNS
        return cls(
            rejected_by=Stage(change["rejected_by"]) if is_rejected else None,
            reason=change["reason"] if is_rejected else None,
            passed=frozenset(stage for stage, (_, output) in STAGE_COLUMNS.items() if change[output] is not None),
            set_aside=change["set_aside"],
            change_kind=change["change_kind"],
            brings_tests=change["test_lines"] is None or change["test_lines"] > 0,
            derived=tuple(
                DerivedState(
                    kind=row["kind"],
                    is_derived=row["task"] is not None,
                    is_certified=row["certificate"] is not None,
                    reason=row["reason"],
                    task=row["task"] or "",
                )
                for row in derived
            ),
        )


_BUILT = (Requirement.VERIFIED, Requirement.ENVIRONMENT)
"""Requirements of kinds that a change without tests of its own can give."""


def find_pending_work(state: ChangeState, scope: Scope, *, paired: bool = False) -> PendingWork:
    """Return the pending work of a change.

    Args:
        state: the change's state.
        scope: kinds to derive and certify, and reasons to retry.
        paired: whether it has a neighbour with a verdict.
    """
    rejecting_stage = None if state.reason in scope.retry else state.rejected_by
    missing = (stage for stage in STAGE_COLUMNS if stage not in state.passed)
    stage = None if rejecting_stage else next(missing, None)
    if stage is None and state.set_aside in scope.retry:  # the same verdict would be rejected again
        stage = Stage.JUDGE
    derived_kinds, rejected_kinds, tasks = set[str](), set[str](), list[str]()
    for item in state.derived:
        is_retried = item.reason in scope.retry
        if item.is_derived:
            derived_kinds.add(item.kind)
            if not item.is_certified and item.kind in scope.certified and (item.reason is None or is_retried):
                tasks.append(item.task)
        elif not is_retried:
            rejected_kinds.add(item.kind)
    kinds = tuple(
        iter_open_kinds(scope.kinds, derived_kinds, rejected_kinds, state.change_kind, brings_tests=state.brings_tests)
    )
    if not state.brings_tests and not any(scope.kinds[kind].requirement in _BUILT for kind in kinds):
        stage = None  # no kind needs an environment
    built, judged = Stage.BUILD in state.passed, Stage.JUDGE in state.passed
    return PendingWork(
        stage=stage,
        rejected_by=rejecting_stage,
        kinds=kinds,
        tasks=tuple(tasks),
        has_ready_kind=any(
            scope.kinds[kind].are_met(built=built, judged=judged, paired=paired, rejected_by=rejecting_stage)
            for kind in kinds
        ),
    )
