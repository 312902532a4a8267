"""Statistics for comparing the speed of two trees: a rank test on a few times of each, and the guaranteed speedup.

The test is Mann and Whitney's (On a test of whether one of two random variables is stochastically larger than the
other, 1947), one-sided and exact. It assumes nothing about the distribution of the times and uses only their order.
Bundles contain a copy of this file, so it needs Python 3.9 and the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

RUNS_PER_TREE = 5
"""Times measured for each tree; five against five without overlap give p = 1/252."""

ALPHA = 0.01


def order_runs(trees: int, runs: int) -> Iterator[tuple[int, bool]]:
    """Yield the number of the tree of each run, and whether its time counts: the first run of each tree is a warm-up.

    The trees take turns, forwards and backwards, so that a machine that becomes slower favours none.
    """
    for number in range(runs + 1):
        for tree in range(trees) if number % 2 else reversed(range(trees)):
            yield tree, number > 0


def compute_p_value(slower: Sequence[float], faster: Sequence[float]) -> float:
    """Return the probability of this order, or a clearer order, if `faster` were not faster. Ties count half."""
    statistic = sum((slow > fast) + 0.5 * (slow == fast) for slow in slower for fast in faster)
    counts = _count_orders(len(slower), len(faster))
    return sum(counts[int(statistic) :]) / sum(counts)


def _count_orders(n: int, m: int) -> list[int]:
    """Return for each value of the statistic, 0 to n*m, the number of orders of n and m times that have it."""
    table = [[[1]] * (m + 1)]
    for i in range(1, n + 1):
        row = [[1]]
        for j in range(1, m + 1):
            counts = [0] * (i * j + 1)
            for value, number in enumerate(row[j - 1]):  # the longest time is one of the faster tree's
                counts[value] += number
            for value, number in enumerate(table[i - 1][j]):  # it is one of the slower tree's: above all j others
                counts[value + j] += number
            row.append(counts)
        table.append(row)
    return table[n][m]


def is_faster(before: Sequence[float], after: Sequence[float], threshold: float) -> tuple[bool, float, float]:
    """Return whether a tree is significantly faster by the threshold, its speedup, and the p-value."""
    speedup, p = compute_speedup(before, after), compute_p_value(before, after)
    return p < ALPHA and speedup >= threshold, speedup, p


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
