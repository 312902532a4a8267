"""Staged sampling: a few attempts at every task, more only where these leave its band open."""

from __future__ import annotations

from collections.abc import Mapping

STAGES = (4, 16)
"""Attempts of a task after each stage."""


def plan_attempts(counts: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return how many attempts each task still needs.

    A task that all of the first four attempts solve, or none, is decided: it is not a task to train on. Others get 16.

    Args:
        counts: task -> attempts with a value and how many of them resolved it; (0, 0) for a new task.
    """
    return {task: _count_missing(n, c) for task, (n, c) in counts.items()}


def _count_missing(n: int, c: int) -> int:
    first, last = STAGES
    if n < first:
        return first - n
    return 0 if c in (0, n) else max(0, last - n)
