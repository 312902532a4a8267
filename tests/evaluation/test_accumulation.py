"""Accumulation curves: features of the first n units in random orders, and those that a further unit adds."""

from __future__ import annotations

import itertools

import pytest
from scipy import stats

from evaluation.statistics.accumulation import accumulate, choose_sizes, estimate_further

UNITS = [{"a", "b"}, {"b", "c"}, {"c"}, set(), {"d", "e", "f"}]


def test_a_curve_is_close_to_the_average_over_all_orders_and_ends_with_all_features() -> None:
    points = accumulate(UNITS, sizes=[1, 2, 3, 4, 5], orders=2_000, seed=3)
    orders = list(itertools.permutations(UNITS))
    for point in points:
        counts = [len(set().union(*order[: point.n])) for order in orders]
        assert point.distinct[0] == pytest.approx(sum(counts) / len(counts), abs=0.1)
        assert min(counts) <= point.distinct[1] <= point.distinct[0] <= point.distinct[2] <= max(counts)
    assert points[-1].distinct == (6.0, 6.0, 6.0)
    assert points[0].gain == points[0].distinct
    assert points[-1].gain[0] == pytest.approx(4 / 5, abs=0.1)
    assert (points[-1].gain[1], points[-1].gain[2]) == (0.0, 3.0)


def test_orders_are_those_of_their_seed() -> None:
    curves = [accumulate(UNITS, sizes=[2], orders=20, seed=seed) for seed in (1, 1, 2)]
    assert curves[0] == curves[1] != curves[2]


def test_units_without_features_add_nothing() -> None:
    (point,) = accumulate([set(), set()], sizes=[2], orders=3, seed=0)
    assert point.distinct == point.gain == (0.0, 0.0, 0.0)
    further = estimate_further([set(), set()], ["x", "y"])
    assert further is not None
    assert further.mean == 0.0


def test_a_further_unit_adds_what_single_units_have_alone() -> None:
    further = estimate_further(UNITS, list("vwxyz"))
    assert further is not None
    assert (further.mean, further.low, further.high, further.units, further.families) == (4 / 5, None, None, 5, 5)
    assert estimate_further(UNITS[:1], ["v"]) is None


def test_the_interval_of_a_further_unit_is_that_of_families() -> None:
    units = [{f"{unit} {number}" for number in range(unit % 3)} | {"shared"} for unit in range(12)]
    alone = [unit % 3 for unit in range(12)]
    further = estimate_further(units, [str(unit) for unit in range(12)])
    assert further is not None
    expected = stats.ttest_1samp(alone, 0).confidence_interval()
    assert (further.low, further.high) == pytest.approx((expected.low, expected.high))
    paired = estimate_further([*units, *units], [str(unit) for unit in range(12)] * 2)
    assert paired is not None
    assert (paired.mean, paired.low, paired.families) == (0.0, 0.0, 12)


def test_sizes_double_up_to_the_number_of_units() -> None:
    assert [choose_sizes(n) for n in (1, 2, 3, 8, 9)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4, 8], [1, 2, 4, 8, 9]]
