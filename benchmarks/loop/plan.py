"""Sizes of the loop: the one whose figures are in docs/training.md, and a small one that shows that all parts fit."""

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
    attempts: int
    """Rollouts of each task at each measurement; those of the first on tasks to train on are filtered for SFT."""
    filtered_epochs: int
    rl_steps: int
    rl_tasks: int
    """Tasks of one step."""
    rl_attempts: int
    """Rollouts of each of them."""
    rl_rate: float = 5e-5


FULL = LoopPlan(
    n_train=24,
    n_held_out=12,
    n_demonstrated=16,
    layers=7,
    width=512,
    demonstration_epochs=25,
    attempts=3,
    filtered_epochs=3,
    rl_steps=6,
    rl_tasks=6,
    rl_attempts=4,
)
SMALL = LoopPlan(
    n_train=3,
    n_held_out=1,
    n_demonstrated=2,
    layers=2,
    width=128,
    demonstration_epochs=120,
    attempts=1,
    filtered_epochs=1,
    rl_steps=1,
    rl_tasks=2,
    rl_attempts=2,
)
