"""Metric `swt`: the columns of SWT-Bench for submitted tests. The reward is stricter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mergemill.bench.metrics import Metric, MetricContext, Values
from taskdb.records.bench import BenchSubject
from taskdb.records.rollouts import Rollout

SWT, SWT_MAKER = "swt", "swt-1"
"""Name of the metric, and the version of its runs."""


class SwtMetric(Metric):
    """Columns of `evaluation.scoring.swt.compute_columns`, of submissions that `mergemill bench score` measured."""

    name = SWT

    def prepare(self, context: MetricContext) -> None:
        """Take the measurements."""
        self._measurements = context.measurements

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the columns; coverage also for those that succeed and for those that do not."""
        del subject
        columns = self._measurements.get(SWT, SWT_MAKER, rollout)
        if columns is None:
            return {}
        state = "solved" if columns["success"] else "unsolved"
        return {**columns, f"coverage_delta.{state}": columns["coverage_delta"]}

    def describe(self, rollouts: Sequence[Rollout]) -> Mapping[str, Any]:
        """Return how many submissions succeed by SWT-Bench and do not earn 1."""
        measured = [(rollout, self._measurements.get(SWT, SWT_MAKER, rollout)) for rollout in rollouts]
        n_weaker = sum(bool(columns and columns["success"]) and not rollout.resolved for rollout, columns in measured)
        n_measured = sum(columns is not None for _, columns in measured)
        remark = f"swt: {n_measured} submissions measured, {n_weaker} succeed and do not earn 1"
        return {"measured": n_measured, "success_not_resolved": n_weaker, "remarks": [remark]}
