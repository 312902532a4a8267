"""Histograms of lengths: training on short conversations alone teaches repetition in long conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LengthBin:
    """Number of lengths from `low` to `high`, both included."""

    low: int
    high: int
    count: int


def count_lengths(lengths: Iterable[int]) -> list[LengthBin]:
    """Return the histogram of lengths in powers of two, without empty ends."""
    counts = Counter(length.bit_length() for length in lengths)
    if not counts:
        return []
    powers = range(min(counts), max(counts) + 1)
    return [
        LengthBin(low=1 << (power - 1) if power else 0, high=(1 << power) - 1, count=counts[power]) for power in powers
    ]
