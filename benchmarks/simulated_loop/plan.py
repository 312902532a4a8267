"""Sizes of the loop: the one whose figures are in the docs, and a small one for tests."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.loop.training import ModelPlan


@dataclass(frozen=True, kw_only=True)
class SimulatedLoopPlan(ModelPlan):
    """Sizes of all stages."""

    per_seed: int
    """Conversations to train on for each seed."""


FULL = SimulatedLoopPlan(per_seed=24, sft_epochs=40, sft_loss=0.03, attempts=8, rl_steps=4, rl_attempts=4)
SMALL = SimulatedLoopPlan(per_seed=16, sft_epochs=40, sft_loss=0.02, attempts=2, rl_steps=1, rl_attempts=8)
