"""From signals to probabilities: a weighted sum and a logistic curve, with numbers that `benchmarks.judge` has fitted.

`data/model.json` holds them: of each signal its mean and spread over the rows it was fitted to, and for each label
an intercept and one weight a signal, none of them negative. A person can do the sum by hand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

MODEL = Path(__file__).parent / "data" / "model.json"


class Scale(BaseModel):
    """How a signal is spread: it counts as (value - mean) / spread."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    mean: float
    spread: float


class Weights(BaseModel):
    """One label's sum. The logarithm of the odds is `intercept` plus each scaled signal times its weight."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    intercept: float
    weights: Mapping[str, float]


class Model(BaseModel):
    """All numbers. `cap`: a scaled signal counts for no more than this, in either direction."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    cap: float
    scales: Mapping[str, Scale]
    labels: Mapping[str, Weights]

    def scaled(self, signals: Mapping[str, float | None]) -> dict[str, float]:
        """Signals as they count; one that has nothing to say counts as its mean."""
        return {
            name: 0.0 if (value := signals[name]) is None else self._capped((value - scale.mean) / scale.spread)
            for name, scale in self.scales.items()
        }

    def probability(self, label: str, signals: Mapping[str, float | None]) -> float:
        """Probability of one label, 0..1."""
        known = self.labels[label]
        scaled = self.scaled(signals)
        odds = known.intercept + sum(weight * scaled[name] for name, weight in known.weights.items())
        return 1 / (1 + math.exp(-odds))

    def _capped(self, value: float) -> float:
        return max(-self.cap, min(self.cap, value))


@cache
def shipped() -> Model:
    """The model that comes with mergemill."""
    return Model.model_validate(json.loads(MODEL.read_text()))
