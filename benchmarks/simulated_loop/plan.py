"""Sizes of the loop: the one whose figures are in the docs, and a small one for tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SimulatedLoopPlan:
    """Sizes of all stages."""

    per_seed: int
    """Conversations to train on for each seed."""
    layers: int
    width: int
    sft_epochs: int
    """At most."""
    sft_loss: float
    """Mean of five steps below which SFT ends: a model that is sure of all explores nothing."""
    sft_rate: float
    attempts: int
    """Episodes of each task at each measurement."""
    rl_steps: int
    rl_attempts: int
    """Episodes of each task in a step, which has all tasks."""
    rl_rate: float


FULL = SimulatedLoopPlan(
    per_seed=24,
    layers=2,
    width=192,
    sft_epochs=40,
    sft_loss=0.03,
    sft_rate=1e-3,
    attempts=8,
    rl_steps=4,
    rl_attempts=4,
    rl_rate=1e-4,
)
SMALL = SimulatedLoopPlan(
    per_seed=16,
    layers=2,
    width=192,
    sft_epochs=40,
    sft_loss=0.02,
    sft_rate=1e-3,
    attempts=2,
    rl_steps=1,
    rl_attempts=8,
    rl_rate=1e-4,
)
