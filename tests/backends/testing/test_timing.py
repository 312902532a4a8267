"""When one series of times is shorter than another, and by how much that is sure."""

from __future__ import annotations

import pytest

from backends.testing.timing import ALPHA, RUNS, p_value, ratio, sure_gain

BASE = [2.0, 2.1, 2.05, 1.95, 2.2]


def test_a_clear_gain_is_significant_and_the_sure_part_of_it_is_smaller() -> None:
    after = [0.5, 0.55, 0.52, 0.6, 0.51]
    assert len(BASE) == len(after) == RUNS
    assert p_value(BASE, after) < ALPHA
    assert ratio(BASE, after) == pytest.approx(2.05 / 0.52)
    sure = sure_gain(BASE, after)
    assert 3.0 < sure < ratio(BASE, after)
    assert p_value(BASE, [seconds * sure * 0.999 for seconds in after]) < ALPHA
    assert p_value(BASE, [seconds * sure * 1.001 for seconds in after]) >= ALPHA


@pytest.mark.parametrize(
    "after",
    [list(reversed(BASE)), [2.0, 2.3, 1.9, 2.1, 2.15], [4.0, 4.1, 4.2, 4.3, 4.4], [0.1, 9.0, 0.1, 9.0, 9.0]],
    ids=["the-same", "noise", "slower", "restless"],
)
def test_where_there_is_no_gain_none_is_sure(after: list[float]) -> None:
    assert p_value(BASE, after) >= ALPHA
    assert sure_gain(BASE, after) < 1


def test_times_too_short_for_the_clock_are_no_error() -> None:
    assert ratio([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert sure_gain([0.0] * RUNS, [0.0] * RUNS) == 0.0
