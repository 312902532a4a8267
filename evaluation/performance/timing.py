"""Statistics for comparing the speed of two trees: a rank test on a few times of each, and the guaranteed speedup.

The test is Mann and Whitney's (On a test of whether one of two random variables is stochastically larger than the
other, 1947), one-sided and exact. It assumes nothing about the distribution of the times and uses only their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

RUNS_PER_TREE = 5
"""Times measured for each tree; five against five without overlap give p = 1/252."""

ALPHA = 0.01


def compute_p_value(slower: Sequence[float], faster: Sequence[float]) -> float:
    """Return the probability of this order, or a clearer one, if `faster` were not faster."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - takes half a second, and most importers never call this

    return float(mannwhitneyu(slower, faster, alternative="greater", method="exact").pvalue)


def compute_speedup(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the median before divided by the median after: 2.0 is twice as fast."""
    return median(before) / max(median(after), 1e-9)


def compute_guaranteed_speedup(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the largest factor by which all times after could grow with the speedup still significant.

    At most 1 if no speedup is significant.
    """
    factors = sorted({slow / max(fast, 1e-9) for slow in before for fast in after}, reverse=True)
    for factor in factors:  # the order of the times changes only at these factors
        stretched = [fast * factor * (1 - 1e-9) for fast in after]
        if compute_p_value(before, stretched) < ALPHA:
            return factor
    return 0.0
