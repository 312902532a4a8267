"""Compute probabilities from signals: a weighted sum and a logistic curve, with numbers fitted by `benchmarks.judge`.

The numbers are in `data/model.json`: average and spread of each signal over the rows used for fitting, and for each
label an intercept and a weight per signal, none of them negative. The sum can be checked by hand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

MODEL_PATH = Path(__file__).parent / "data" / "model.json"


class SignalScale(BaseModel):
    """Scaling of a signal: difference from its average, divided by its spread."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    mean: float
    spread: float


class LabelWeights(BaseModel):
    """Weights of one label: its log odds are `intercept` plus the weighted sum of the scaled signals."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    intercept: float
    weights: Mapping[str, float]


class CalibratedModel(BaseModel):
    """Numbers of the calibrated model; scaled signals are clipped to -`cap`..`cap`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    cap: float
    scales: Mapping[str, SignalScale]
    labels: Mapping[str, LabelWeights]

    def scale_signals(self, signals: Mapping[str, float | None]) -> dict[str, float]:
        """Return the scaled and clipped signals; a missing signal counts as its average."""
        return {
            name: 0.0 if (value := signals[name]) is None else self._clip((value - scale.mean) / scale.spread)
            for name, scale in self.scales.items()
        }

    def predict(self, label: str, signals: Mapping[str, float | None]) -> float:
        """Return the probability of one label, 0..1."""
        known = self.labels[label]
        scaled = self.scale_signals(signals)
        odds = known.intercept + sum(weight * scaled[name] for name, weight in known.weights.items())
        return 1 / (1 + math.exp(-odds))

    def _clip(self, value: float) -> float:
        return max(-self.cap, min(self.cap, value))


@cache
def load_shipped_model() -> CalibratedModel:
    """Load the model that comes with mergemill."""
    return CalibratedModel.model_validate(json.loads(MODEL_PATH.read_text()))
