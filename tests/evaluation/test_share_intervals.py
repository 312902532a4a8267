"""Intervals of shares over families, and of medians."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from evaluation.statistics import intervals
from evaluation.statistics.clusters import compute_clustered_mean, compute_t_quantile
from evaluation.statistics.intervals import compute_median_interval, compute_share_interval


def test_the_variance_is_that_of_the_families_sums() -> None:
    share = compute_clustered_mean([1, 1, 0, 0, 1], ["a", "a", "b", "b", "c"])
    # mean 0.6; sums of deviations: 0.8, -1.2, 0.4
    assert share.mean == pytest.approx(0.6)
    assert share.variance == pytest.approx(3 / 2 * (0.64 + 1.44 + 0.16) / 25)
    assert (share.n, share.families) == (5, 3)


def test_single_families_have_the_variance_of_independent_units() -> None:
    values = [0.0, 0.25, 1.0, 0.5, 0.75, 1.0]
    share = compute_clustered_mean(values, list("abcdef"))
    assert share.error == pytest.approx(stats.sem(values))


def test_the_order_of_units_does_not_matter() -> None:
    units = [(random.Random(n).random(), f"f{n % 7}") for n in range(50)]
    results = set()
    for seed in range(3):
        random.Random(seed).shuffle(units)
        interval = compute_share_interval(compute_clustered_mean(*map(list, zip(*units, strict=True))))
        assert interval is not None
        results.add(tuple(round(end, 12) for end in interval))
    assert len(results) == 1


def test_an_interval_is_wilsons_with_the_t_quantile() -> None:
    values = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    share = compute_clustered_mean(values, [str(n) for n in range(12)])
    low, high = compute_share_interval(share) or (0, 0)
    quantile = stats.t.ppf(0.975, 11)
    assert compute_t_quantile(12) == pytest.approx(quantile)
    # the ends solve (m - p)^2 = t^2 p (1 - p) / n_eff
    effective = share.mean * (1 - share.mean) / share.variance
    for end in (low, high):
        assert (share.mean - end) ** 2 == pytest.approx(quantile**2 * end * (1 - end) / effective)
    assert low < share.mean < high


@pytest.mark.parametrize("value", [0.0, 1.0, 0.3])
def test_equal_values_count_by_families(value: float) -> None:
    share = compute_clustered_mean([value] * 40, [str(n % 20) for n in range(40)])
    low, high = compute_share_interval(share) or (0, 0)
    assert share.variance == 0
    assert 0 <= low <= value <= high <= 1
    assert 0.1 < high - low < 0.5


def test_a_single_family_has_no_interval() -> None:
    assert compute_share_interval(compute_clustered_mean([0.0, 1.0], ["a", "a"])) is None


def test_values_beyond_a_share_are_refused() -> None:
    with pytest.raises(ValueError, match="no share"):
        compute_share_interval(compute_clustered_mean([2.0, 4.0], ["a", "b"]))
    with pytest.raises(ValueError, match="0 values"):
        compute_clustered_mean([], [])


def test_a_median_has_an_interval_of_whole_families() -> None:
    values = [float(n) for n in range(1, 101)]
    median, low, high = compute_median_interval(values, [str(n) for n in range(100)]) or (0, 0, 0)
    assert median == 50.5
    assert 35 < low < 50.5 < high < 66
    _, wide_low, wide_high = compute_median_interval(values, [str(n // 10) for n in range(100)]) or (0, 0, 0)
    assert wide_high - wide_low > high - low
    assert compute_median_interval([3.0, 5.0], ["a", "a"]) == (4.0, 4.0, 4.0)
    assert compute_median_interval([], []) is None


def test_a_median_interval_is_the_same_in_any_order() -> None:
    values, families = [5.0, 1.0, 9.0, 2.0], ["b", "a", "c", "d"]
    assert compute_median_interval(values, families) == compute_median_interval(values[::-1], families[::-1])


def test_a_median_interval_is_that_of_values_drawn_with_their_families() -> None:
    values = [float(n * n % 17) for n in range(23)]
    families = [f"f{n % 7}" for n in range(23)]
    medians = []
    for counts in intervals._draw_families(7):
        drawn = [
            value
            for family, count in enumerate(counts)
            for value, name in zip(values, families, strict=True)
            if name == f"f{family}"
            for _ in range(count)
        ]
        medians.append(np.median(drawn))
    low, high = np.quantile(medians, (0.025, 0.975))
    assert compute_median_interval(values, families) == (float(np.median(values)), low, high)
