"""Significance of a difference between times, and the guaranteed speedup."""

from __future__ import annotations

from random import Random

import pytest

from guest.scoring.timing import (
    ALPHA,
    RUNS_PER_TREE,
    compute_guaranteed_speedup,
    compute_p_value,
    compute_speedup,
    order_runs,
)

BASE = [2.0, 2.1, 2.05, 1.95, 2.2]


def test_a_clear_speedup_is_significant_and_the_guaranteed_speedup_is_smaller() -> None:
    after = [0.5, 0.55, 0.52, 0.6, 0.51]
    assert len(BASE) == len(after) == RUNS_PER_TREE
    assert compute_p_value(BASE, after) < ALPHA
    assert compute_speedup(BASE, after) == pytest.approx(2.05 / 0.52)
    guaranteed = compute_guaranteed_speedup(BASE, after)
    assert 3.0 < guaranteed < compute_speedup(BASE, after)
    assert compute_p_value(BASE, [seconds * guaranteed * 0.999 for seconds in after]) < ALPHA
    assert compute_p_value(BASE, [seconds * guaranteed * 1.001 for seconds in after]) >= ALPHA


@pytest.mark.parametrize(
    "after",
    [list(reversed(BASE)), [2.0, 2.3, 1.9, 2.1, 2.15], [4.0, 4.1, 4.2, 4.3, 4.4], [0.1, 9.0, 0.1, 9.0, 9.0]],
    ids=["the-same", "noise", "slower", "scattered"],
)
def test_without_a_speedup_none_is_guaranteed(after: list[float]) -> None:
    assert compute_p_value(BASE, after) >= ALPHA
    assert compute_guaranteed_speedup(BASE, after) < 1


def test_times_too_short_for_the_clock_are_no_error() -> None:
    assert compute_speedup([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert compute_guaranteed_speedup([0.0] * RUNS_PER_TREE, [0.0] * RUNS_PER_TREE) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_the_p_value_is_that_of_scipy(seed: int) -> None:
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - takes half a second

    random = Random(seed)
    slower = [random.choice([0.5, 1.0, 1.5, 2.0, random.random()]) for _ in range(random.randint(1, 6))]
    faster = [random.choice([0.5, 1.0, 1.5, random.random()]) for _ in range(random.randint(1, 6))]
    expected = mannwhitneyu(slower, faster, alternative="greater", method="exact").pvalue
    assert compute_p_value(slower, faster) == pytest.approx(expected)


def test_trees_take_turns_after_a_first_run_of_each() -> None:
    assert list(order_runs(2, 2)) == [(1, False), (0, False), (0, True), (1, True), (1, True), (0, True)]
