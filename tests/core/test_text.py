"""Numbers in text."""

from __future__ import annotations

import pytest

from core.text import format_probability


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.5, "0.5"),
        (0.5615, "0.56"),
        (0.9999, "over 0.99"),
        (0.0003, "0.0003"),
        (0.00034567, "0.00035"),
        (1 / 3000, "0.00033"),
        (0.0001, "0.0001"),
        (0.00001, "1 in 100,000"),
        (1 / 30_000, "1 in 30,000"),
        (1 / 34_567, "1 in 34,000"),
        (2.0**-20, "1 in 1,000,000"),
        (1e-200, "under 1 in 1,000,000,000"),
        (5e-324, "under 1 in 1,000,000,000"),
    ],
)
def test_a_small_probability_is_never_shown_as_0(probability: float, shown: str) -> None:
    assert format_probability(probability) == shown
