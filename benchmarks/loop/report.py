"""Rewards before and after, with intervals, and what each stage has done, as tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import binomtest

from benchmarks.loop.workspace import StageReport


@dataclass(frozen=True, kw_only=True)
class SolvedShare:
    """How many of the graded rollouts solved their task."""

    solved: int
    graded: int

    def render(self) -> str:
        """Return share, counts and the 95 % interval of Wilson."""
        if not self.graded:
            return "no rollout"
        interval = binomtest(self.solved, self.graded).proportion_ci(method="wilson")
        share = self.solved / self.graded
        return f"{share:.2f} ({self.solved} of {self.graded}; {interval.low:.2f} to {interval.high:.2f})"


def count_solved(rollouts: Sequence[Mapping[str, Any]], model: str, tasks: Sequence[str]) -> SolvedShare:
    """Return the share of a model on tasks. Rollouts without a value are not counted."""
    values = [rollout["value"] for rollout in rollouts if rollout["model"] == model and rollout["name"] in set(tasks)]
    graded = [value for value in values if value is not None]
    return SolvedShare(solved=sum(value == 1 for value in graded), graded=len(graded))


def render_rewards(
    rollouts: Sequence[Mapping[str, Any]], models: Mapping[str, str], train: Sequence[str], held_out: Sequence[str]
) -> str:
    """Return the Markdown table of models: name in the database -> what it is."""
    lines = ["| model | tasks to train on | held-out tasks |", "|---|---|---|"]
    for model, description in models.items():
        cells = [count_solved(rollouts, model, tasks).render() for tasks in (train, held_out)]
        lines.append(f"| {description} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def render_stages(reports: Mapping[str, StageReport]) -> str:
    """Return the Markdown table of stages, with the load of the machine, which decides about their seconds."""
    lines = ["| stage | seconds | load | |", "|---|---|---|---|"]
    for name, report in reports.items():
        facts = "; ".join(f"{key} {_render_fact(value)}" for key, value in report.facts.items())
        lines.append(f"| {name} | {report.seconds:.0f} | {report.load:.1f} | {facts} |")
    total = sum(report.seconds for report in reports.values())
    return "\n".join([*lines, f"| all | {total:.0f} | | {os.cpu_count()} processors |"]) + "\n"


def _render_fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
