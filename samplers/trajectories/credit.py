"""Division of a rollout's reward among its trajectories, by a function of the user's own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from core.errors import UsageError
from samplers.trajectories.content import TrajectoryContent
from taskdb.rollouts import Rollout, TrajectoryRole

Credit = Callable[[Rollout, Sequence[tuple[TrajectoryRole, TrajectoryContent]]], Sequence[float | None]]
"""Takes a rollout with a value and its trajectories in order; returns the value of each."""


def share_reward(rollout: Rollout, parts: Sequence[tuple[TrajectoryRole, TrajectoryContent]]) -> list[float | None]:
    """Return the rollout's value for every trajectory."""
    return [rollout.value] * len(parts)


def load_credit(word: str) -> Credit:
    """Return the function `module:function`; modules of the working directory are found, too.

    Raises:
        UsageError: there is no such function.
    """
    module, _, name = word.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"--credit: {word} cannot be loaded: {error}", advice="MODULE:FUNCTION") from error
    if not callable(found):
        raise UsageError(f"--credit: {word} is not a function")
    credit: Credit = found
    return credit


def divide_reward(
    credit: Credit, rollout: Rollout, parts: Sequence[tuple[TrajectoryRole, TrajectoryContent]]
) -> list[float | None]:
    """Return the value of each trajectory. A rollout without a value gives none to any.

    Raises:
        UsageError: the function returns another number of values.
    """
    if rollout.value is None:
        return [None] * len(parts)
    values = [None if value is None else float(value) for value in credit(rollout, parts)]
    if len(values) != len(parts):
        raise UsageError(f"the credit function returned {len(values)} values for {len(parts)} trajectories")
    return values
