"""Paired comparisons: differences, sign flips, several comparisons."""

from __future__ import annotations

import itertools
import random

import pytest
from scipy import stats

from evaluation.statistics.comparisons import compare_pairs, compute_sign_probability, correct_holm


def test_a_difference_has_the_t_interval_of_its_pairs() -> None:
    first, second = [0.0, 0.5, 0.25, 1.0, 0.0, 0.75], [0.5, 0.5, 0.75, 1.0, 0.25, 0.5]
    difference = compare_pairs(first, second, list("abcdef"))
    assert difference is not None
    expected = stats.ttest_rel(second, first).confidence_interval()
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))
    assert difference.difference == pytest.approx(sum(second) / 6 - sum(first) / 6)
    error = stats.sem([after - before for before, after in zip(first, second, strict=True)])
    assert difference.detectable == pytest.approx((stats.t.ppf(0.975, 5) + stats.t.ppf(0.8, 5)) * error)
    assert (difference.n, difference.families) == (6, 6)


def test_a_single_family_shows_no_difference() -> None:
    assert compare_pairs([0.0, 0.0], [1.0, 1.0], ["a", "a"]) is None


def test_pairs_have_equal_lengths() -> None:
    with pytest.raises(ValueError, match="shorter"):
        compare_pairs([0.0, 1.0], [1.0], ["a", "b"])


def test_signs_are_all_tried_for_few_families() -> None:
    sums = [0.5, -0.25, 1.0, 0.75, 0.25]
    totals = [
        abs(sum(sign * value for sign, value in zip(signs, sums, strict=True)))
        for signs in itertools.product((1, -1), repeat=5)
    ]
    observed = abs(sum(sums))
    expected = sum((total > observed) + (total == observed) / 2 for total in totals) / 32
    assert compute_sign_probability(sums, list("abcde")) == pytest.approx(expected)


def test_signs_are_those_of_families_not_of_units() -> None:
    assert compute_sign_probability([1.0] * 8, ["a"] * 4 + ["b"] * 4) == pytest.approx(0.25)
    assert compute_sign_probability([1.0] * 8, list("abcdefgh")) == pytest.approx(1 / 256)


def test_sampled_signs_are_close_to_all_and_always_the_same() -> None:
    values = [random.Random(n).gauss(0.4, 1.0) for n in range(16)]
    exact = compute_sign_probability(values, [str(n) for n in range(16)])
    more = [*values, 1e-6]
    sampled = compute_sign_probability(more, [str(n) for n in range(17)])
    assert sampled == pytest.approx(exact, abs=0.02)
    assert sampled == compute_sign_probability(more, [str(n) for n in range(17)])
    assert compute_sign_probability([1.0] * 40, [str(n) for n in range(40)]) == pytest.approx(0.5 / 10_001)


def test_no_difference_is_no_sign() -> None:
    assert compute_sign_probability([0.0] * 20, [str(n) for n in range(20)]) == 1.0


def test_several_comparisons_are_corrected_step_by_step() -> None:
    corrected = correct_holm({"c": 0.04, "a": 0.01, "b": 0.03, "d": 0.5})
    assert list(corrected) == ["c", "a", "b", "d"]
    assert corrected == pytest.approx({"a": 0.04, "b": 0.09, "c": 0.09, "d": 0.5})
    assert correct_holm({"a": 0.6, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert correct_holm({}) == {}
