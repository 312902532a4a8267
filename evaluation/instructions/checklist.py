"""Checklist of a rollout: the verdict on each constraint, and the rates of OctoBench (arXiv 2601.10343)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from evaluation.instructions.checks import make_check
from evaluation.instructions.evidence import CheckState, CheckVerdict, RolloutEvidence
from taskdb.records.instructions import JUDGED, BoundConstraint, InstructionOracle


class VerdictState(StrEnum):
    """State of a constraint in a rollout."""

    PASSED = "passed"
    FAILED = "failed"
    INACTIVE = "inactive"
    OVERRIDDEN = "overridden"
    """Another constraint takes precedence."""
    NOT_DELIVERED = "not-delivered"
    """Its wording was in no request."""
    VOID = "void"
    """A model was to decide it, and there is none, or no majority of its votes is valid."""


UNCOUNTED = frozenset({VerdictState.INACTIVE, VerdictState.OVERRIDDEN, VerdictState.NOT_DELIVERED})
"""States of constraints that are in no rate."""


class RateBounds(NamedTuple):
    """Least and largest value of a rate, 0..1, with void verdicts as failed and as passed."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ConstraintVerdict:
    """Verdict on a constraint."""

    constraint: BoundConstraint
    state: VerdictState
    result: CheckVerdict | None = None
    """None where it was not decided."""


@dataclass(frozen=True, kw_only=True)
class ConstraintChecklist:
    """Verdicts on all constraints of a task."""

    verdicts: Sequence[ConstraintVerdict]

    @property
    def active(self) -> list[ConstraintVerdict]:
        """Those that passed or failed."""
        return [verdict for verdict in self.verdicts if verdict.state in {VerdictState.PASSED, VerdictState.FAILED}]

    @property
    def failing(self) -> list[ConstraintVerdict]:
        """Those that failed."""
        return [verdict for verdict in self.verdicts if verdict.state is VerdictState.FAILED]

    @property
    def states(self) -> dict[str, str]:
        """Name of each constraint -> state."""
        return {verdict.constraint.name: verdict.state.value for verdict in self.verdicts}

    @property
    def csr(self) -> float:
        """Share of the active checks that passed, 0..1; 1 where none is active."""
        return compute_rate(self.active)

    @property
    def isr(self) -> float:
        """1 where no active check failed, else 0."""
        return 0.0 if self.failing else 1.0

    def count(self, state: VerdictState) -> int:
        """Return the number of constraints in a state."""
        return sum(verdict.state is state for verdict in self.verdicts)

    def list_parts(self) -> dict[str, float]:
        """Return `csr` and `isr` with their bounds, `csr` by source and by turn of the user, and counts."""
        groups: dict[str, list[ConstraintVerdict]] = {}
        for verdict in self.active:
            groups.setdefault(f"csr_{verdict.constraint.source}", []).append(verdict)
            groups.setdefault(f"csr_turn_{verdict.constraint.turn}", []).append(verdict)
        isr, csr = bound_rates(verdict.state for verdict in self.verdicts)
        return {
            "csr": self.csr,
            "csr_low": csr.low,
            "csr_high": csr.high,
            "isr": self.isr,
            "isr_low": isr.low,
            "isr_high": isr.high,
            **{name: compute_rate(group) for name, group in sorted(groups.items())},
            **{f"{name}_constraints": float(self.count(state)) for name, state in _COUNTED.items()},
        }

    def list_parts_with_tests(self, value: float, *, is_resolved: bool) -> dict[str, float]:
        """Return the parts of a score: `tests`, `graded`, `partial` and those of the checklist.

        Args:
            value: value of the tests, 0..1.
            is_resolved: whether all tests of the task passed.
        """
        return {
            "tests": value,
            "graded": self.csr if is_resolved else 0.0,
            "partial": (value + self.csr) / 2,
            **self.list_parts(),
        }

    def list_failures(self) -> list[str]:
        """Return a line about each check that failed: name and source of the constraint, and the quote."""
        lines = []
        for verdict in self.failing:
            quote = verdict.result.quote if verdict.result else ""
            lines.append(f"{verdict.constraint.name} ({verdict.constraint.source}){f': {quote}' if quote else ''}")
        return lines


_COUNTED: Mapping[str, VerdictState] = {
    "failed": VerdictState.FAILED,
    "inactive": VerdictState.INACTIVE,
    "undelivered": VerdictState.NOT_DELIVERED,
    "void": VerdictState.VOID,
}
"""First word of the name of a part -> the state whose constraints it counts."""


VOID_PART = "void_constraints"
"""Part of a score with the number of void constraints."""


def compute_rate(verdicts: Iterable[ConstraintVerdict]) -> float:
    """Return the share of verdicts that passed, 0..1; 1 where there are none."""
    listed = list(verdicts)
    passed = sum(verdict.state is VerdictState.PASSED for verdict in listed)
    return passed / len(listed) if listed else 1.0


def bound_rates(states: Iterable[str]) -> tuple[RateBounds, RateBounds]:
    """Return the bounds of ISR and CSR, all of them 1 where no check counts.

    Args:
        states: states of the checks of a rollout; one that is known by no name is void.
    """
    counts = Counter(states)
    n_passed, n_failed = counts[VerdictState.PASSED], counts[VerdictState.FAILED]
    n = counts.total() - sum(counts[state] for state in UNCOUNTED)
    if not n:
        return RateBounds(1.0, 1.0), RateBounds(1.0, 1.0)
    isr = RateBounds(float(n_passed == n), float(not n_failed))
    return isr, RateBounds(n_passed / n, (n - n_failed) / n)


def decide_constraints(
    oracle: InstructionOracle,
    evidence: RolloutEvidence,
    *,
    not_delivered: Iterable[str] = (),
    judge: Callable[[BoundConstraint, RolloutEvidence], CheckVerdict | None] | None = None,
) -> ConstraintChecklist:
    """Return the checklist of a rollout.

    Args:
        oracle: constraints of the task.
        evidence: actions and changes.
        not_delivered: names of constraints whose wording was in no request.
        judge: function that decides a judged item, or returns None; None for no model.
    """
    missing = frozenset(not_delivered)
    verdicts = []
    for constraint in oracle.constraints:
        if constraint.overridden_by:
            verdicts.append(ConstraintVerdict(constraint=constraint, state=VerdictState.OVERRIDDEN))
        elif constraint.name in missing:
            verdicts.append(ConstraintVerdict(constraint=constraint, state=VerdictState.NOT_DELIVERED))
        else:
            in_force = evidence.since(constraint.turn, constraint.until)
            if constraint.check == JUDGED:
                result = judge(constraint, in_force) if judge else None
            else:
                result = decide_by_check(constraint, in_force)
            state = _STATES[result.state] if result else VerdictState.VOID
            verdicts.append(ConstraintVerdict(constraint=constraint, state=state, result=result))
    return ConstraintChecklist(verdicts=verdicts)


def decide_after_feedback(
    checklist: ConstraintChecklist, evidence: RolloutEvidence, turn: int, names: Iterable[str]
) -> ConstraintChecklist:
    """Return the checklist of an attempt that broken instructions were named to.

    What was done before cannot be undone, such as a command that was run: such a constraint passes where the turn with
    the feedback and all later ones follow it. What was missing may be made up for in the whole conversation.

    Args:
        checklist: verdicts on the whole conversation.
        evidence: actions and changes.
        turn: turn of the feedback.
        names: names of the constraints that it named.
    """
    named = frozenset(names)
    verdicts = []
    for verdict in checklist.verdicts:
        is_open = verdict.state is VerdictState.FAILED and verdict.constraint.name in named
        if is_open and verdict.constraint.check != JUDGED:
            result = decide_by_check(verdict.constraint, evidence.since(turn))
            if result.state is CheckState.PASSED:
                verdict = replace(verdict, state=VerdictState.PASSED, result=result)  # noqa: PLW2901 - the same one
        verdicts.append(verdict)
    return ConstraintChecklist(verdicts=verdicts)


def decide_by_check(constraint: BoundConstraint, evidence: RolloutEvidence) -> CheckVerdict:
    """Return the result of a constraint's check."""
    return make_check(constraint.check, constraint.arguments, constraint.name).decide(evidence)


_STATES: Mapping[CheckState, VerdictState] = {
    CheckState.PASSED: VerdictState.PASSED,
    CheckState.FAILED: VerdictState.FAILED,
    CheckState.INACTIVE: VerdictState.INACTIVE,
}
