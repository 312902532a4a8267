"""Intervals of 95 %: of a share over units in families, and of a median.

Normal intervals are too narrow below some hundred units (Bowyer et al. 2025, arXiv 2503.01747), so that of a share is
Wilson's (Wilson 1927) with the effective number of units of the clustered variance and the quantile of Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from evaluation.statistics.clusters import ClusteredMean, compute_t_quantile

MIN_FAMILIES = 10
"""Families from which a published average has an interval: with fewer, their variance is hardly known."""
RESAMPLES = 2_000
SEED = 20_240_501
"""Of resampling: the same values always give the same interval."""


def compute_share_interval(share: ClusteredMean) -> tuple[float, float] | None:
    """Return the interval of a share, within 0..1; None for a single family, which shows no variance.

    With the average m, the effective number of units is m (1 - m) / V, and the number of families where V is 0.

    Raises:
        ValueError: the average is outside of 0..1.
    """
    if share.families < 2:
        return None
    mean = share.mean
    if not 0 <= mean <= 1:
        raise ValueError(f"{mean} is no share")
    effective = mean * (1 - mean) / share.variance if share.variance else float(share.families)
    quantile = compute_t_quantile(share.families)
    square = quantile**2
    middle = mean + square / (2 * effective)
    spread = quantile * math.sqrt(mean * (1 - mean) / effective + square / (4 * effective**2))
    scale = 1 + square / effective
    # Rounding must not put an end beyond the average, such as one of 0 or 1.
    return max(0.0, min(mean, (middle - spread) / scale)), min(1.0, max(mean, (middle + spread) / scale))


def compute_median_interval(values: Sequence[float], families: Sequence[str]) -> tuple[float, float, float] | None:
    """Return the median and its interval, by resampling whole families with a fixed seed.

    Returns:
        Median, lower and upper end; None without values. Both ends are the median's where there is a single family.
    """
    if not values:
        return None
    # In the order of values and names, so that the order of rows cannot change the samples.
    ordered = sorted(zip(values, families, strict=True))
    numbers = np.asarray([value for value, _ in ordered], dtype=float)
    median = float(np.median(numbers))
    places = {name: place for place, name in enumerate(sorted(set(families)))}
    if len(places) < 2:
        return median, median, median
    # A row for each value: additions of whole rows are several times as fast as those within rows.
    counts = _draw_families(len(places)).T[[places[family] for _, family in ordered]].cumsum(axis=0, dtype=np.int32)
    totals = counts[-1]
    # Of an even number of values the median is between the two in the middle.
    middle = [(counts <= rank).sum(axis=0) for rank in ((totals - 1) // 2, totals // 2)]
    low, high = np.quantile((numbers[middle[0]] + numbers[middle[1]]) / 2, (0.025, 0.975))
    return median, float(low), float(high)


@lru_cache(maxsize=4)
def _draw_families(families: int) -> np.ndarray:
    """Return how often each family is drawn, a row for each resample; those of a family lie side by side."""
    drawn = np.random.default_rng(SEED).multinomial(families, [1 / families] * families, size=RESAMPLES)
    return np.asfortranarray(drawn, dtype=np.int32)
