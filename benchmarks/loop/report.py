"""Rewards before and after, with intervals, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import binomtest


@dataclass(frozen=True, kw_only=True)
class SolvedShare:
    """How many of the graded rollouts solved their task."""

    solved: int
    graded: int

    def render(self) -> str:
        """Return share, counts and the 95 % interval of Wilson."""
        if not self.graded:
            return "no rollout"
        low, high = binomtest(self.solved, self.graded).proportion_ci(method="wilson")
        return f"{self.solved / self.graded:.2f} ({self.solved} of {self.graded}; {low:.2f} to {high:.2f})"


def count_solved(rollouts: Sequence[dict[str, Any]], model: str, tasks: Sequence[str]) -> SolvedShare:
    """Return the share of a model on tasks. Rollouts without a value are not counted."""
    values = [one["value"] for one in rollouts if one["model"] == model and one["name"] in set(tasks)]
    graded = [value for value in values if value is not None]
    return SolvedShare(solved=sum(value == 1 for value in graded), graded=len(graded))


def render_rewards(
    rollouts: Sequence[dict[str, Any]], models: Sequence[str], train: Sequence[str], held_out: Sequence[str]
) -> str:
    """Return the Markdown table of models."""
    lines = ["| model | tasks to train on | held-out tasks |", "|---|---|---|"]
    for model in models:
        cells = [count_solved(rollouts, model, tasks).render() for tasks in (train, held_out)]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
