"""When a generation that repeats itself is stopped."""

from __future__ import annotations

import math

import pytest
from mergemill_client.repetition import RepetitionStop

CERTAIN, LIKELY = math.log(0.995), math.log(0.98)


def test_a_generation_stops_after_3000_tokens_in_a_row_above_99_percent() -> None:
    stop = RepetitionStop()
    assert [stop.add(CERTAIN) for _ in range(3000)] == [False] * 2999 + [True]


@pytest.mark.parametrize("other", [LIKELY, math.log(0.99), -math.inf, math.nan])
def test_any_other_token_ends_the_run(other: float) -> None:
    stop = RepetitionStop(length=4)
    run = [CERTAIN] * 3
    assert [stop.add(text) for text in (*run, other, *run, CERTAIN)] == [False] * 7 + [True]


def test_the_length_and_the_probability_are_settings() -> None:
    stop = RepetitionStop(length=2, probability=0.5)
    assert [stop.add(LIKELY) for _ in range(2)] == [False, True]


def test_the_end_of_a_recorded_generation_is_found() -> None:
    stop = RepetitionStop(length=5)
    recorded = [CERTAIN] * 4 + [LIKELY] + [CERTAIN] * 9
    assert stop.find_end(recorded) == 10
    assert stop.find_end(recorded[:9]) is None
    assert [stop.add(CERTAIN) for _ in range(5)] == [False] * 4 + [True]


@pytest.mark.parametrize("setting", [{"length": 0}, {"probability": 1.0}, {"probability": 0.0}])
def test_settings_that_stop_nothing_or_everything_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="length >= 1"):
        RepetitionStop(**setting)
