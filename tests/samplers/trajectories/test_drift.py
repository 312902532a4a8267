"""Drift of the state in a rollout: steps without an effect, and returns to an earlier state."""

from __future__ import annotations

import pytest

from samplers.trajectories.drift import StateDrift, measure_drift
from taskdb.records.rollouts import ObservedState


def observe(trees: str, exchanges: list[int] | None = None) -> list[ObservedState]:
    """Return a state for each letter, seen at these exchanges, by default at all."""
    numbers = exchanges or list(range(len(trees)))
    return [ObservedState(exchange=number, tree=tree) for number, tree in zip(numbers, trees, strict=True)]


@pytest.mark.parametrize(
    ("trees", "unchanged", "returns"),
    [
        ("abcd", 0, 0),
        ("aaaa", 3, 0),
        ("aabb", 2, 0),
        ("abab", 0, 2),
        ("abca", 0, 1),
        ("abbaab", 2, 2),
    ],
)
def test_steps_are_counted_by_their_effect(trees: str, unchanged: int, returns: int) -> None:
    drift = measure_drift(observe(trees))
    assert drift == StateDrift(steps=len(trees) - 1, unchanged=unchanged, returns=returns)
    assert drift.to_json() == {
        "steps": drift.steps,
        "unchanged": unchanged,
        "unchanged_share": round(unchanged / drift.steps, 6),
        "returns": returns,
        "return_share": round(returns / drift.steps, 6),
    }


def test_steps_whose_states_were_not_seen_do_not_count() -> None:
    assert measure_drift(observe("abab", [0, 1, 4, 5])) == StateDrift(steps=2, unchanged=0, returns=1)
    for states in ("", "a"):
        assert measure_drift(observe(states)) is None
    assert measure_drift(observe("ab", [0, 2])) is None
