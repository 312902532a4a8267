"""Summaries of pass rates, staged sampling, nested subsets and saturating curves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from core.errors import InputError
from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.intervals import compute_share_interval
from samplers.difficulty.saturation import SHARES, fit_saturation, nest_subsets
from samplers.difficulty.staging import plan_attempts
from samplers.difficulty.summary import describe_rate, summarise_rates
from taskdb.queries.trajectories import TaskPassRate
from taskdb.records.difficulty import compute_difficulty

SIZES = (25, 50, 100, 200, 400)


def make_rate(name: str, n: int, c: int, scaffold: str = "react") -> TaskPassRate:
    return TaskPassRate(
        task=name,
        name=name,
        environment="verified",
        model="m",
        checkpoint="",
        scaffold=scaffold,
        difficulty=compute_difficulty(n, c),
        mean_value=c / n,
    )


def test_more_attempts_are_planned_only_where_the_first_four_disagree() -> None:
    counts = {"new": (0, 0), "begun": (3, 1), "never": (4, 0), "always": (4, 4), "edge": (4, 1), "done": (16, 5)}
    counts["more"] = (9, 2)
    expected = {"new": 4, "begun": 1, "never": 0, "always": 0, "edge": 12, "done": 0, "more": 7}
    assert plan_attempts(counts) == expected


def test_the_row_of_a_task_has_pass_at_k_as_far_as_there_are_attempts() -> None:
    row = describe_rate(make_rate("a", 4, 2))
    assert row["band"] == "edge"
    assert row["pass_at"] == {"1": 0.5, "2": pytest.approx(5 / 6), "4": 1.0}
    assert row["pass_all"] == {"1": 0.5, "2": pytest.approx(1 / 6), "4": 0.0}


def test_a_summary_averages_over_the_tasks_that_have_enough_attempts() -> None:
    [codex, react] = summarise_rates(
        [make_rate("a", 4, 4), make_rate("b", 4, 0), make_rate("c", 1, 1), make_rate("a", 1, 0, "codex")],
        {"a": "a", "b": "a", "c": "c"},
    )
    assert (codex["scaffold"], codex["n"], codex["tasks"]) == ("codex", 1, 1)
    assert (react["n"], react["c"], react["tasks"]) == (9, 5, 3)
    assert react["pass_at"] == {"1": pytest.approx(2 / 3), "2": 0.5, "4": 0.5}
    assert react["tasks_at"] == {"1": 3, "2": 2, "4": 2}
    assert (react["mean_value"], react["environments"]) == (pytest.approx(5 / 9, abs=1e-6), {"verified": 3})
    assert react["bands"] == {"unknown": 1, "never": 1, "edge": 0, "unstable": 0, "always": 1}
    assert (react["families"], react["mean"], react["low"], react["high"]) == (2, pytest.approx(2 / 3), None, None)


def test_the_interval_of_a_summary_is_that_of_tasks_in_families_and_not_of_attempts() -> None:
    """Two hundred attempts show little where the families decide: all tasks of half of them are solved."""
    rates = [make_rate(f"t{number:02}", 10, 10 * (number < 10)) for number in range(20)]
    alone = {rate.task: rate.task for rate in rates}
    pairs = {rate.task: f"t{number // 2 * 2:02}" for number, rate in enumerate(rates)}
    [apart], [paired] = summarise_rates(rates, alone), summarise_rates(rates, pairs)
    assert (apart["n"], apart["families"], paired["families"]) == (200, 20, 10)
    for row, families in ((apart, alone), (paired, pairs)):
        share = compute_clustered_mean([1.0] * 10 + [0.0] * 10, list(families.values()))
        low, high = compute_share_interval(share) or (0, 0)
        assert (row["mean"], row["low"], row["high"]) == (0.5, round(low, 6), round(high, 6))
    independent = compute_difficulty(200, 100)
    assert paired["low"] < apart["low"] < independent.low - 0.1
    assert [row["low"] for row in summarise_rates(rates, dict.fromkeys(alone, "t00"))] == [None]


def test_subsets_are_nested_and_a_new_task_changes_little() -> None:
    tasks = [f"t{number}" for number in range(160)]
    subsets = nest_subsets(tasks)
    assert [len(subsets[share]) for share in SHARES] == [10, 20, 40, 80, 160]
    for smaller, larger in pairwise(SHARES):
        assert set(subsets[smaller]) < set(subsets[larger])
    assert nest_subsets(tasks[::-1]) == subsets
    assert nest_subsets(tasks, seed=1) != subsets
    grown = nest_subsets([*tasks, "new"])
    assert len(set(subsets[SHARES[0]]) - set(grown[SHARES[0]])) <= 1


def test_the_interval_of_where_a_curve_is_flat_covers_the_truth_about_as_often_as_it_claims() -> None:
    curves = []
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(0, 0.002, 2 * len(SIZES))
        curves.append(fit_saturation([(n, 0.6 - 2 / n + noise[at]) for at, n in enumerate(SIZES * 2)]))
    covered = sum(
        curve.flat_low <= 200 <= (curve.flat_high or np.inf) for curve in curves
    )  # 2 / n is 0.01 at 200 tasks
    assert 53 <= covered <= 60
    assert sum(curve.limit_low <= 0.6 <= curve.limit_high for curve in curves) >= 53
    assert any(curve.is_flat for curve in curves)


def test_a_curve_that_still_rises_is_not_called_flat() -> None:
    noise = np.random.default_rng(0).normal(0, 0.003, 2 * len(SIZES))
    scores = [(n, 0.1 * np.log2(n) / 5 + noise[at]) for at, n in enumerate(SIZES * 2)]
    curve = fit_saturation(scores)
    assert not curve.is_flat
    assert curve.flat_from > curve.largest


def test_a_curve_needs_four_sizes() -> None:
    with pytest.raises(InputError, match="4 different"):
        fit_saturation([(10, 0.1), (20, 0.2), (40, 0.3), (40, 0.31)])
