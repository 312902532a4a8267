"""Metric `instructions`: the rates of OctoBench (arXiv 2601.10343) of instruction tasks, by source and by turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.instructions.checklist import UNCOUNTED, RateBounds, VerdictState, bound_rates
from mergemill.bench.metrics import Metric, MetricContext, OpenValue, Values
from taskdb.records.bench import BenchSubject
from taskdb.records.instructions import BoundConstraint, InstructionOracle
from taskdb.records.rollouts import Rollout

INSTRUCTIONS = "instructions"
ISR, CSR = "isr", "csr"


class InstructionMetric(Metric):
    """ISR (whether no check failed) and CSR (share of the checks that passed) of rollouts of instruction tasks.

    A check whose verdict is void is open: it may have passed or failed.
    """

    name = INSTRUCTIONS

    def prepare(self, context: MetricContext) -> None:
        """Take the tasks, whose oracles have the constraints."""
        self._tasks = context.tasks

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return `isr` and `csr` of all checks, and of each source (`isr.SOURCE`) and turn; nothing of other kinds.

        A source or turn without a check that counts has neither.
        """
        states = self._list_states(subject.id, rollout)
        if not states:
            return {}
        groups: dict[str, list[str]] = {"": []}
        for constraint, state in states:
            if state not in UNCOUNTED:
                for group in ("", f".{constraint.source}", f".turn_{constraint.turn}"):
                    groups.setdefault(group, []).append(state)
        values: dict[str, float | OpenValue | None] = {}
        for group in sorted(groups):
            values[f"{ISR}{group}"], values[f"{CSR}{group}"] = compute_rates(groups[group])
        return values

    def describe(self, rollouts: Sequence[Rollout]) -> Mapping[str, Any]:
        """Return how many verdicts on constraints of the run are in each state; nothing without instruction tasks."""
        states = [state for rollout in rollouts for _, state in self._list_states(rollout.parent, rollout)]
        if not states:
            return {}
        counts = dict(sorted(Counter(states).items()))
        listed = ", ".join(f"{number} {state}" for state, number in counts.items())
        return {"verdicts": counts, "remarks": [f"instructions: {listed}"]}

    def _list_states(self, task_id: str, rollout: Rollout) -> list[tuple[BoundConstraint, str]]:
        """Return the constraints of a rollout's task with their states; nothing of other kinds."""
        task = self._tasks.get(task_id)
        if task is None or not isinstance(task.oracle, InstructionOracle):
            return []
        verdicts = rollout.score.verdicts if rollout.score else {}
        # An empty submission is graded without a look at its conversation, of which there is none: it followed nothing.
        undecided = {
            constraint.name: VerdictState.OVERRIDDEN.value if constraint.overridden_by else VerdictState.FAILED.value
            for constraint in task.oracle.constraints
        }
        states = verdicts or undecided
        return [
            (constraint, states[constraint.name]) for constraint in task.oracle.constraints if constraint.name in states
        ]


def compute_rates(states: Iterable[str]) -> tuple[float | OpenValue, float | OpenValue]:
    """Return ISR and CSR of checks that count, both 1 where there are none.

    With void verdicts they are the ranges of all that those may be.

    Args:
        states: states of the checks, as of `bound_rates`.
    """
    isr, csr = bound_rates(states)
    return _make_value(isr), _make_value(csr)


def _make_value(bounds: RateBounds) -> float | OpenValue:
    return bounds.low if bounds.low == bounds.high else OpenValue(*bounds)
