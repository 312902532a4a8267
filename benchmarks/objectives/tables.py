"""The table of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high

from benchmarks.objectives.toy import OBJECTIVES, ToyResult, ToyTask


def render_table(task: ToyTask, results: Sequence[ToyResult]) -> str:
    """Return a Markdown table of batches to the goal: a row for each luck and learning rate, a column an objective."""
    by_key = {(result.luck, result.learning_rate, result.objective): result for result in results}
    lines = [f"| luck | learning rate | {' | '.join(OBJECTIVES)} |", "|---" * (2 + len(OBJECTIVES)) + "|"]
    for luck, rate in dict.fromkeys((result.luck, result.learning_rate) for result in results):
        cells = [_format_result(task, by_key[luck, rate, objective]) for objective in OBJECTIVES]
        lines.append(f"| {luck:g} | {rate:g} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _format_result(task: ToyTask, result: ToyResult) -> str:
    """Return median and range of the batches, runs that did not reach the goal counted as longer than all others."""
    batches = [task.most_batches + 1 if count is None else count for count in result.batches]
    shown = [_format_batches(task, count) for count in (median_high(batches), min(batches), max(batches))]
    failed = result.batches.count(None)
    return f"{shown[0]} ({shown[1]}-{shown[2]})" + (f", {failed} of {len(batches)} not" if failed else "")


def _format_batches(task: ToyTask, number: float) -> str:
    return f">{task.most_batches}" if number > task.most_batches else f"{number:g}"
