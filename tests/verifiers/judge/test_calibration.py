"""The numbers that come with the judge, and the sum that is made of them."""

from __future__ import annotations

import math

import pytest

from verifiers.judge.calibration import Model, Scale, Weights, shipped
from verifiers.judge.signals import OF_THE_STATEMENT, SIGNALS

SMALL = Model(
    cap=2.0,
    scales={"a": Scale(mean=1.0, spread=0.5), "b": Scale(mean=0.0, spread=1.0)},
    labels={"bad": Weights(intercept=-1.0, weights={"a": 0.5, "b": 1.0})},
)


@pytest.mark.parametrize(
    ("a", "b", "odds"),
    [(1.0, 0.0, -1.0), (1.5, 1.0, 0.5), (99.0, -99.0, -2.0), (None, 1.0, 0.0), (None, None, -1.0)],
)
def test_the_sum_can_be_done_by_hand(a: float | None, b: float | None, odds: float) -> None:
    assert SMALL.probability("bad", {"a": a, "b": b}) == pytest.approx(1 / (1 + math.exp(-odds)))


def test_what_is_shipped_knows_every_signal_and_none_speaks_in_favour() -> None:
    model = shipped()
    every = {signal.__name__ for signal in SIGNALS}
    assert set(model.scales) == every
    assert set(model.labels["unfair_tests"].weights) == every
    assert set(model.labels["underspecified"].weights) == {signal.__name__ for signal in OF_THE_STATEMENT}
    assert all(weight >= 0 for label in model.labels.values() for weight in label.weights.values())
