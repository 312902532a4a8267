"""Division of a rollout's reward among its trajectories, by a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.errors import UsageError
from core.plugins import load_plugin
from samplers.trajectories.content import TrajectoryContent
from taskdb.records.rollouts import Rollout, TrajectoryRole

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
    plugin = load_plugin("--credit", word, advice="MODULE:FUNCTION")
    if not callable(plugin):
        raise UsageError(f"--credit: {word} is not a function")
    credit: Credit = plugin
    return credit


def divide_reward(
    credit: Credit, rollout: Rollout, parts: Sequence[tuple[TrajectoryRole, TrajectoryContent]]
) -> list[float | None]:
    """Return the value of each trajectory. A rollout without a value gives none to any.

    Raises:
        UsageError: the function fails, or returns another number of values.
    """
    if rollout.value is None:
        return [None] * len(parts)
    try:
        values = [None if value is None else float(value) for value in credit(rollout, parts)]
    except Exception as error:
        raise UsageError(f"the credit function fails: {type(error).__name__}: {error}") from error
    if len(values) != len(parts):
        raise UsageError(f"the credit function returned {len(values)} values for {len(parts)} trajectories")
    return values
