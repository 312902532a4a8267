"""Win rates: pairs of attempts, ties, bounds of missing results, intervals over families."""

from __future__ import annotations

import pytest

from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.comparisons import compute_sign_probability
from evaluation.statistics.intervals import compute_share_interval
from evaluation.statistics.wins import PairedUnit, WinRate, compute_win_rate

Values = list[float | None]


def compare(*pairs: tuple[Values, Values], families: str = "") -> WinRate:
    names = families or "abcdefghijklmnopqrst"
    rate = compute_win_rate(
        [PairedUnit(family=names[at], first=first, second=second) for at, (first, second) in enumerate(pairs)]
    )
    assert rate is not None
    return rate


def test_a_tie_counts_half() -> None:
    rate = compare(([1.0], [0.0]), ([0.5], [0.5]), ([0.0], [0.25]), ([1.0], [0.75]))
    assert (rate.wins, rate.ties, rate.losses, rate.rate) == (0.5, 0.25, 0.25, 0.625)
    assert (rate.n, rate.families, rate.incomplete, rate.bounds) == (4, 4, 0, None)


def test_a_unit_is_the_share_of_its_pairs_of_attempts() -> None:
    rate = compare(([1.0, 0.0, 0.0], [0.0, 1.0]))
    assert (rate.wins, rate.ties, rate.losses) == pytest.approx((1 / 6, 3 / 6, 2 / 6))
    assert rate.rate == pytest.approx(5 / 12)


def test_what_is_missing_is_lost_in_a_bound_and_won_in_the_other() -> None:
    rate = compare(([1.0, None], [0.0]), ([1.0], []), ([1.0], [0.0, None, None, None]), ([0.5], [0.5]))
    assert (rate.rate, rate.n, rate.incomplete) == (pytest.approx(2.5 / 3), 3, 3)
    lost, won = 0.5 + 0.0 + 0.25 + 0.5, 1.0 + 1.0 + 1.0 + 0.5
    assert rate.bounds == pytest.approx((lost / 4, won / 4))


def test_units_without_results_of_both_have_no_rate() -> None:
    assert compute_win_rate([]) is None
    assert compute_win_rate([PairedUnit(family="a", first=[None], second=[1.0])]) is None


def test_interval_and_test_are_those_of_families() -> None:
    pairs: list[tuple[Values, Values]] = [([1.0], [0.0])] * 15 + [([0.0], [1.0])] * 5
    values = [1.0] * 15 + [0.0] * 5
    for families in ("abcdefghijklmnopqrst", "aabbccddeeffgghhiijj"):
        rate = compare(*pairs, families=families)
        share = compute_clustered_mean(values, list(families))
        assert (rate.low, rate.high) == compute_share_interval(share)
        assert rate.probability == compute_sign_probability([value - 0.5 for value in values], list(families))
        assert (rate.n, rate.families, rate.detectable is None) == (20, len(set(families)), False)
    few = compare(*pairs, families="aaaabbbbccccddddeeee")
    assert (few.low, few.high, few.detectable, few.probability is None) == (None, None, None, False)
    alone = compare(*pairs, families="a" * 20)
    assert (alone.rate, alone.probability, alone.detectable) == (0.75, None, None)
