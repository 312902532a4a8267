"""Sizes of the loop: that of the figures in docs/guide/agents/training.md, and a small one that runs all parts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LoopPlan:
    """Sizes of all stages."""

    n_train: int
    """Tasks to train on."""
    n_held_out: int
    """Tasks that are only measured."""
    n_demonstrated: int
    """Tasks to train on that the expert solves first."""
    layers: int
    width: int
    demonstration_epochs: int
    """At most."""
    demonstration_loss: float
    """Mean of five steps below which SFT on demonstrations ends: a model that is sure of all explores nothing."""
    demonstration_rate: float
    attempts: int
    """Rollouts of each task at each measurement; those of the first on tasks to train on are filtered for SFT."""
    filtered_epochs: int
    filtered_rate: float = 1e-4
    rl_steps: int
    rl_tasks: int
    """Tasks of one step. All of them are best: a step on some of them makes the model worse at others."""
    rl_attempts: int
    """Rollouts of each of them."""
    rl_rate: float = 1e-4

    @property
    def rl_model(self) -> str:
        """Prefix of the names under which rollouts of steps are recorded: another rate makes other models."""
        return f"rl-{self.rl_rate:g}"


FULL = LoopPlan(
    n_train=24,
    n_held_out=12,
    n_demonstrated=16,
    layers=4,
    width=704,
    demonstration_epochs=40,
    demonstration_loss=0.03,
    demonstration_rate=1e-3,
    attempts=4,
    filtered_epochs=3,
    rl_steps=6,
    rl_tasks=24,
    rl_attempts=4,
)
SMALL = LoopPlan(
    n_train=3,
    n_held_out=1,
    n_demonstrated=3,
    layers=2,
    width=192,
    demonstration_epochs=60,
    demonstration_loss=0.02,
    demonstration_rate=1e-3,
    attempts=2,
    filtered_epochs=3,
    rl_steps=1,
    rl_tasks=3,
    rl_attempts=4,
)
