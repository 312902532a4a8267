"""The shipped model and its weighted sum."""

from __future__ import annotations

import math

import pytest

from verifiers.judge.calibration import CalibratedModel, LabelWeights, SignalScale, load_shipped_model
from verifiers.judge.signals import SIGNALS, STATEMENT_SIGNALS

SMALL = CalibratedModel(
    cap=2.0,
    scales={"a": SignalScale(mean=1.0, spread=0.5), "b": SignalScale(mean=0.0, spread=1.0)},
    labels={"bad": LabelWeights(intercept=-1.0, weights={"a": 0.5, "b": 1.0})},
)


@pytest.mark.parametrize(
    ("a", "b", "odds"),
    [(1.0, 0.0, -1.0), (1.5, 1.0, 0.5), (99.0, -99.0, -2.0), (None, 1.0, 0.0), (None, None, -1.0)],
)
def test_the_weighted_sum_matches_a_manual_computation(a: float | None, b: float | None, odds: float) -> None:
    assert SMALL.predict("bad", {"a": a, "b": b}) == pytest.approx(1 / (1 + math.exp(-odds)))


def test_the_shipped_model_has_a_nonnegative_weight_for_every_signal() -> None:
    model = load_shipped_model()
    every = set(SIGNALS)
    assert set(model.scales) == every
    assert set(model.labels["unfair_tests"].weights) == every
    assert set(model.labels["underspecified"].weights) == set(STATEMENT_SIGNALS)
    assert all(weight >= 0 for label in model.labels.values() for weight in label.weights.values())
