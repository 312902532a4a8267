"""Sizes of the loop: the one whose figures are in docs/training-worlds.md, and a small one for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.world_loop.scenarios import DEMONSTRATED, FAMILIES, MEASURED, REINFORCED


@dataclass(frozen=True, kw_only=True)
class WorldLoopPlan:
    """Sizes of all stages."""

    families: Sequence[str]
    scenarios: Mapping[str, int]
    """Purpose -> scenarios of each family."""
    layers: int
    width: int
    sft_epochs: int
    """At most."""
    sft_loss: float
    """Mean of five steps below which SFT ends: a model that is sure of all explores nothing."""
    sft_rate: float
    attempts: int
    """Rollouts of each scenario at each measurement."""
    rl_steps: int
    rl_attempts: int
    """Rollouts of each scenario in a step, which has all of them."""
    rl_rate: float


FULL = WorldLoopPlan(
    families=tuple(FAMILIES),
    scenarios={DEMONSTRATED: 60, REINFORCED: 4, MEASURED: 4},
    layers=2,
    width=192,
    sft_epochs=24,
    sft_loss=0.03,
    sft_rate=1e-3,
    attempts=4,
    rl_steps=6,
    rl_attempts=4,
    rl_rate=1e-4,
)
SMALL = WorldLoopPlan(
    families=("decide",),
    scenarios={DEMONSTRATED: 60, REINFORCED: 8, MEASURED: 2},
    layers=2,
    width=192,
    sft_epochs=16,
    sft_loss=0.01,
    sft_rate=1e-3,
    attempts=2,
    rl_steps=1,
    rl_attempts=4,
    rl_rate=1e-4,
)
