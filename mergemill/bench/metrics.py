"""Metrics: columns of numbers for each rollout, and the value of a subject from those of its runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from core.errors import UsageError
from core.plugins import load_plugin
from mergemill.bench.measurements import Measurements, load_measurements
from samplers.trajectories.drift import measure_drift
from taskdb.records.bench import BenchSubject
from taskdb.records.oracles import PerformanceOracle
from taskdb.records.rollouts import Rollout

if TYPE_CHECKING:
    from mergemill.bench.review_material import ReviewMaterials
    from taskdb.artifacts import Artifacts
    from taskdb.records import Task
    from taskdb.records.bench import BenchSet
    from taskdb.store import Store


AMOUNTS = (
    *("ratio", "expert_ratio"),  # of performance
    *("false_alarms", "faults_missed"),  # of test-writing
    *("matched", "findings", "defects", "judged", "void"),  # of reviews
    *("failed_constraints", "inactive_constraints", "undelivered_constraints", "void_constraints"),  # of instructions
)
"""Parts of a reward that are no shares."""


class OpenValue(NamedTuple):
    """A number that is not decided, and its bounds."""

    low: float
    high: float


Values = Mapping[str, float | OpenValue | None]
"""Column -> number, or the range of one that is open; None where the column does not apply to the rollout."""


@dataclass(frozen=True, kw_only=True)
class MetricContext:
    """Data that a metric may read besides rollouts."""

    store: Store
    artifacts: Artifacts
    materials: ReviewMaterials
    bench_set: BenchSet
    tasks: Mapping[str, Task]
    """Id of a task -> the task, for those of the set."""

    @cached_property
    def measurements(self) -> Measurements:
        """Measurements of all runs on the set, read when the first metric needs them."""
        return load_measurements(self.store, self.artifacts, self.bench_set)


class Metric(ABC):
    """Columns of a rollout. Shares are numbers from 0 to 1, amounts any numbers, of which medians are reported."""

    amounts: ClassVar[frozenset[str]] = frozenset()
    """Columns that are amounts."""
    name: ClassVar[str] = ""
    """Key of its facts in a report; needed by metrics with `describe` or `name_judge`."""

    def prepare(self, context: MetricContext) -> None:  # noqa: B027 - most metrics read rollouts alone
        """Take the data that the metric reads besides rollouts; called before the first score of a report."""

    def begin_run(self, rollouts: Sequence[Rollout]) -> None:  # noqa: B027 - as above
        """Take the scored rollouts of a run; called before the first score of each run, whose rollouts come next."""

    def name_judge(self, rollout: Rollout) -> str | None:
        """Return the judge that decided the columns of a rollout of the run; empty where none did.

        None where no judge could change them. Values of a subject by different judges are not compared.
        """
        del rollout
        return None

    def describe(self, rollouts: Sequence[Rollout]) -> Mapping[str, Any]:
        """Return facts of the scored rollouts of a run that a report names besides its columns; empty for none.

        `remarks` are lines for people.
        """
        del rollouts
        return {}

    @abstractmethod
    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the columns of a rollout, which has a value."""

    def aggregate(self, values: Sequence[float]) -> float:
        """Return the value of a subject from those of its runs, at least one: their average."""
        return math.fsum(values) / len(values)


class ResolvedMetric(Metric):
    """Whether the submission resolves the subject."""

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return 1 or 0."""
        del subject
        return {"resolved": float(rollout.resolved)}


class ValueMetric(Metric):
    """Reward of the submission."""

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the reward."""
        del subject
        return {"value": rollout.value}


class PartsMetric(Metric):
    """Parts of the reward, for kinds that have any: a column `parts.NAME` for each."""

    amounts = frozenset(f"parts.{name}" for name in AMOUNTS)

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the parts of the score."""
        del subject
        parts = rollout.score.parts if rollout.score else {}
        return {f"parts.{name}": value for name, value in parts.items()}


class EffortMetric(Metric):
    """Requests to the model, tokens, cost in the currency of the prices, and seconds of the agent."""

    amounts = frozenset({"requests", "tokens", "cost", "seconds"})

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the amounts."""
        del subject
        return {
            "requests": float(rollout.requests),
            "tokens": float(rollout.prompt_tokens + rollout.completion_tokens),
            "cost": rollout.cost,
            "seconds": rollout.agent_seconds,
        }


class StatesMetric(Metric):
    """Drift of the state: shares of steps that changed nothing, or led back to an earlier state, and their numbers."""

    amounts = frozenset({"states.steps", "states.returns"})

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the columns of a rollout of which two states in a row were observed; none for others."""
        del subject
        drift = measure_drift(rollout.states)
        if drift is None:
            return {}
        return {
            "states.unchanged": drift.unchanged_share,
            "states.returned": drift.return_share,
            "states.steps": float(drift.steps),
            "states.returns": float(drift.returns),
        }


class PerformanceMetric(Metric):
    """Speed of submissions to performance tasks, and that of the expert's change: the gold patch.

    A submission that fails its tests, or was not timed, has no speedup: 1.
    """

    amounts = frozenset({"speedup", "speedup_of_expert"})

    def prepare(self, context: MetricContext) -> None:
        """Take the tasks, whose oracles have the speedup of the expert's change."""
        self._tasks = context.tasks

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the speedup, its ratio to the expert's, and whether it reaches that; nothing of other kinds."""
        task = self._tasks.get(subject.id)
        if task is None or not isinstance(task.oracle, PerformanceOracle):
            return {}
        expert = task.oracle.ratio
        speedup = rollout.score.parts.get("ratio", 1.0) if rollout.score else 1.0
        return {
            "speedup": speedup,
            "speedup_of_expert": speedup / expert,
            "reaches_expert": float(rollout.resolved and speedup >= expert),
        }


METRICS: Mapping[str, str] = {
    "resolved": "mergemill.bench.metrics:ResolvedMetric",
    "value": "mergemill.bench.metrics:ValueMetric",
    "parts": "mergemill.bench.metrics:PartsMetric",
    "effort": "mergemill.bench.metrics:EffortMetric",
    "states": "mergemill.bench.metrics:StatesMetric",
    "review": "mergemill.bench.review_metric:ReviewMetric",
    "swt": "mergemill.bench.swt_metric:SwtMetric",
    "performance": "mergemill.bench.metrics:PerformanceMetric",
    "instructions": "mergemill.bench.instruction_metric:InstructionMetric",
}
"""Name of a metric -> MODULE:CLASS."""
DEFAULT_METRICS = ("resolved", "value", "effort")


def load_metric(word: str) -> Metric:
    """Return the metric of that name, or of MODULE:CLASS, which is looked for in the working directory as well.

    Raises:
        UsageError: there is none, or it is no subclass of Metric with a method `score`.
    """
    if word not in METRICS and ":" not in word:
        raise UsageError(f"--metric: {word} is unknown", advice=f"one of {', '.join(METRICS)}, or MODULE:CLASS")
    plugin = load_plugin("--metric", METRICS.get(word, word), advice="MODULE:CLASS names a class that can be imported")
    if not (isinstance(plugin, type) and issubclass(plugin, Metric)) or plugin.__abstractmethods__:
        raise UsageError(f"--metric {word} is no complete subclass of mergemill.bench.metrics.Metric")
    return plugin()
