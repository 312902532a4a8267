"""How the state of an environment moves in a rollout, by the hashes that its record has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from taskdb.records.rollouts import ObservedState

DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class StateDrift:
    """Steps of a rollout by their effect on the state. `steps` is at least 1."""

    steps: int
    """Steps of which the states before and after were observed."""
    unchanged: int
    """Steps that changed nothing."""
    returns: int
    """Steps that changed the state to one that was observed before."""

    @property
    def unchanged_share(self) -> float:
        """Share of the steps that changed nothing, 0..1."""
        return self.unchanged / self.steps

    @property
    def return_share(self) -> float:
        """Share of the steps that led back to an earlier state, 0..1."""
        return self.returns / self.steps

    def to_json(self) -> dict[str, Any]:
        """Return numbers and shares."""
        return {
            "steps": self.steps,
            "unchanged": self.unchanged,
            "unchanged_share": round(self.unchanged_share, DIGITS),
            "returns": self.returns,
            "return_share": round(self.return_share, DIGITS),
        }


def measure_drift(states: Sequence[ObservedState]) -> StateDrift | None:
    """Return the drift of a rollout; None where no two states in a row were observed.

    Where states of some requests were not observed, the steps around them do not count: several steps may lie between.

    Args:
        states: states in the order in which they were observed.
    """
    seen: set[str] = set()
    steps = unchanged = returns = 0
    for before, after in pairwise(states):
        seen.add(before.tree)
        if after.exchange != before.exchange + 1:
            continue
        steps += 1
        if after.tree == before.tree:
            unchanged += 1
        elif after.tree in seen:
            returns += 1
    return StateDrift(steps=steps, unchanged=unchanged, returns=returns) if steps else None
