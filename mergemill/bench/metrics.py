"""Metrics: columns of numbers for each rollout, and the value of a subject from those of its runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from core.errors import UsageError
from core.plugins import load_plugin
from samplers.trajectories.drift import measure_drift
from taskdb.records.bench import BenchSubject
from taskdb.records.rollouts import Rollout

Values = Mapping[str, float | None]
"""Column -> number; None where the column does not apply to the rollout."""


class Metric(ABC):
    """Columns of a rollout. Shares are numbers from 0 to 1, amounts any numbers, of which medians are reported."""

    amounts: ClassVar[frozenset[str]] = frozenset()
    """Columns that are amounts."""

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


METRICS: Mapping[str, type[Metric]] = {
    "resolved": ResolvedMetric,
    "value": ValueMetric,
    "parts": PartsMetric,
    "effort": EffortMetric,
    "states": StatesMetric,
}
DEFAULT_METRICS = ("resolved", "value", "effort")


def load_metric(word: str) -> Metric:
    """Return the metric of that name, or of MODULE:CLASS, which is looked for in the working directory as well.

    Raises:
        UsageError: there is none, or it is no subclass of Metric with a method `score`.
    """
    if word in METRICS:
        return METRICS[word]()
    if ":" not in word:
        raise UsageError(f"--metric: {word} is unknown", advice=f"one of {', '.join(METRICS)}, or MODULE:CLASS")
    plugin = load_plugin("--metric", word, advice="MODULE:CLASS names a class that can be imported")
    if not (isinstance(plugin, type) and issubclass(plugin, Metric)) or plugin.__abstractmethods__:
        raise UsageError(f"--metric {word} is no complete subclass of mergemill.bench.metrics.Metric")
    return plugin()
