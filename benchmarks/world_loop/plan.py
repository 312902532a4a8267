"""Sizes of the loop: that of the figures in docs/guide/agents/training-worlds.md, and a small one for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.loop.training import ModelPlan
from benchmarks.world_loop.scenarios import DEMONSTRATED, FAMILIES, MEASURED, REINFORCED


@dataclass(frozen=True, kw_only=True)
class WorldLoopPlan(ModelPlan):
    """Sizes of all stages."""

    families: Sequence[str]
    scenarios: Mapping[str, int]
    """Purpose -> scenarios of each family."""


FULL = WorldLoopPlan(
    families=tuple(FAMILIES),
    scenarios={DEMONSTRATED: 60, REINFORCED: 4, MEASURED: 4},
    sft_epochs=24,
    sft_loss=0.03,
    attempts=4,
    rl_steps=6,
    rl_attempts=4,
)
SMALL = WorldLoopPlan(
    families=("decide",),
    scenarios={DEMONSTRATED: 60, REINFORCED: 8, MEASURED: 2},
    sft_epochs=16,
    sft_loss=0.01,
    attempts=2,
    rl_steps=1,
    rl_attempts=4,
)
