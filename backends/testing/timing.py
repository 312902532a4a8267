"""Whether one tree is faster than another, by a few times of each: a rank test, and what is sure of the gain.

The test is Mann and Whitney's (On a test of whether one of two random variables is stochastically larger than the
other, 1947), one-sided and exact: it asks nothing of how times are spread, only of their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

RUNS = 5
"""Times of each tree; five against five that do not overlap come to p = 1/252."""

ALPHA = 0.01


def p_value(slower: Sequence[float], faster: Sequence[float]) -> float:
    """The probability of such an order, or a clearer one, if `faster` were not faster."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - half a second, and most that import this never ask

    return float(mannwhitneyu(slower, faster, alternative="greater", method="exact").pvalue)


def ratio(before: Sequence[float], after: Sequence[float]) -> float:
    """Median before by median after: 2.0 is twice as fast."""
    return median(before) / max(median(after), 1e-9)


def sure_gain(before: Sequence[float], after: Sequence[float]) -> float:
    """The largest factor by which every time after could be longer and the gain still be significant.

    At most 1 means that there is no gain to be sure of.
    """
    factors = sorted({slow / max(fast, 1e-9) for slow in before for fast in after}, reverse=True)
    for factor in factors:  # the order of the times changes at these alone
        stretched = [fast * factor * (1 - 1e-9) for fast in after]
        if p_value(before, stretched) < ALPHA:
            return factor
    return 0.0
