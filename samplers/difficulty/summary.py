"""Pass rates of a model and scaffold over tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.intervals import MIN_FAMILIES, compute_share_interval
from taskdb.queries.trajectories import TaskPassRate
from taskdb.queries.worlds import SolutionFacts
from taskdb.records.difficulty import DifficultyBand

KS = (1, 2, 4, 8, 16)
"""Numbers of attempts for which pass@k and pass^k are given, as far as there are that many."""


def describe_rate(rate: TaskPassRate, solution: SolutionFacts | None = None) -> dict[str, Any]:
    """Return the row of a task or scenario.

    Args:
        rate: pass rate.
        solution: solution of a certified scenario: its length, number of tools and share of queries are null for
            others.
    """
    difficulty = rate.difficulty
    facts: dict[str, Any] = dict.fromkeys(("n_calls", "n_tools", "query_share"))
    if solution is not None:
        share = solution.n_queries / solution.n_calls if solution.n_calls else 0.0
        facts = {"n_calls": solution.n_calls, "n_tools": solution.n_tools, "query_share": round(share, 6)}
    return {
        **{name: getattr(rate, name) for name in ("task", "name", "environment", "model", "checkpoint", "scaffold")},
        **{name: getattr(difficulty, name) for name in ("n", "c", "low", "high")},
        "mean_value": round(rate.mean_value, 6),
        "band": difficulty.band.value,
        "pass_at": {str(k): value for k in KS if (value := difficulty.estimate_pass_at(k)) is not None},
        "pass_all": {str(k): value for k in KS if (value := difficulty.estimate_pass_all(k)) is not None},
        **facts,
    }


def summarise_rates(rates: Iterable[TaskPassRate], families: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row for each model, checkpoint and scaffold, with the averages over tasks of pass@k and pass^k.

    The average over tasks of their pass rates has an interval, `low` to `high`, that is clustered by family; both are
    null for fewer than `MIN_FAMILIES` families. `mean_value` is the average reward of all attempts,
    `environments` the number of tasks by environment. Only tasks with at least k attempts count for k; `tasks_at` is
    their number.

    Args:
        rates: pass rates of tasks and scenarios.
        families: task or scenario (id) -> its family.
    """
    groups: dict[tuple[str, str, str], list[TaskPassRate]] = {}
    for rate in rates:
        groups.setdefault((rate.model, rate.checkpoint, rate.scaffold), []).append(rate)
    return [_summarise(*key, group, families) for key, group in sorted(groups.items())]


def _summarise(
    model: str, checkpoint: str, scaffold: str, rates: Sequence[TaskPassRate], families: Mapping[str, str]
) -> dict[str, Any]:
    difficulties = [rate.difficulty for rate in rates]
    n = sum(difficulty.n for difficulty in difficulties)
    bands = Counter(difficulty.band for difficulty in difficulties)
    enough = {k: [difficulty for difficulty in difficulties if difficulty.n >= k] for k in KS}
    return {
        "model": model,
        "checkpoint": checkpoint,
        "scaffold": scaffold,
        "tasks": len(difficulties),
        "n": n,
        "c": sum(difficulty.c for difficulty in difficulties),
        **_describe_pass_rate(rates, families),
        "mean_value": round(sum(rate.mean_value * rate.difficulty.n for rate in rates) / n, 6),
        "environments": dict(sorted(Counter(rate.environment for rate in rates).items())),
        "bands": {band.value: bands[band] for band in DifficultyBand},
        "pass_at": {
            str(k): _average([difficulty.estimate_pass_at(k) for difficulty in some])
            for k, some in enough.items()
            if some
        },
        "pass_all": {
            str(k): _average([difficulty.estimate_pass_all(k) for difficulty in some])
            for k, some in enough.items()
            if some
        },
        "tasks_at": {str(k): len(some) for k, some in enough.items() if some},
    }


def _describe_pass_rate(rates: Sequence[TaskPassRate], families: Mapping[str, str]) -> dict[str, Any]:
    """Return the average pass rate of tasks, its interval and the number of families."""
    units = [rate.difficulty.c / rate.difficulty.n for rate in rates]
    share = compute_clustered_mean(units, [families[rate.task] for rate in rates])
    interval = compute_share_interval(share) if share.families >= MIN_FAMILIES else None
    low, high = (None, None) if interval is None else (round(end, 6) for end in interval)
    return {"families": share.families, "mean": round(share.mean, 6), "low": low, "high": high}


def _average(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)
