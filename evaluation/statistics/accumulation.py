"""Accumulation curves: how many different features units have together, as their number grows.

They are the species accumulation curves of ecology (Gotelli and Colwell 2001, Ecology Letters 4:379): units are put in
many random orders, and a point is the average number of features of the first n units.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.statistics.clusters import compute_clustered_mean, compute_t_quantile
from evaluation.statistics.intervals import MIN_FAMILIES

Spread = tuple[float, float, float]
"""Average, and the 2.5th and 97.5th percentile over orders."""
QUANTILES = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True)
class AccumulationPoint:
    """Features of n units. `distinct`: of the first n together; `gain`: of the n-th that no earlier unit has."""

    n: int
    distinct: Spread
    gain: Spread


@dataclass(frozen=True, kw_only=True)
class FurtherUnit:
    """Features that a further unit adds, estimated as the average of those that a single unit has alone.

    That is the exact average gain of the last unit over all orders, and the estimate of Good (1953) for the next.
    """

    mean: float
    low: float | None
    high: float | None
    """Student's t interval of the variance clustered by family; None for fewer than `MIN_FAMILIES` families."""
    units: int
    families: int


def accumulate(
    units: Sequence[Collection[str]], *, sizes: Sequence[int], orders: int, seed: int
) -> list[AccumulationPoint]:
    """Return the points of an accumulation curve.

    Args:
        units: features of each unit, at least one unit.
        sizes: numbers of units of the points, each from 1 to the number of units.
        orders: number of random orders.
        seed: seed of the orders, which are the same each time.
    """
    owners, starts = _index_owners(units)
    new = np.zeros((orders, len(units)))
    generator = np.random.default_rng(seed)
    for order in range(orders):
        places = generator.permutation(len(units))
        if len(owners):
            first = np.minimum.reduceat(places[owners], starts)
            new[order] = np.bincount(first, minlength=len(units))
    distinct = new.cumsum(axis=1)
    return [
        AccumulationPoint(n=n, distinct=_summarise(distinct[:, n - 1]), gain=_summarise(new[:, n - 1])) for n in sizes
    ]


def choose_sizes(n: int) -> list[int]:
    """Return the powers of two below a number, and the number."""
    return [*(2**power for power in range(n.bit_length()) if 2**power < n), n]


def estimate_further(units: Sequence[Collection[str]], families: Sequence[str]) -> FurtherUnit | None:
    """Return the features that a further unit adds; None for fewer than two units.

    Args:
        units: features of each unit.
        families: name of each unit's family, such as the world of a scenario.
    """
    if len(units) < 2:
        return None
    owners, starts = _index_owners(units)
    lengths = np.diff(np.append(starts, len(owners)))
    alone = np.bincount(owners[starts[lengths == 1]], minlength=len(units))
    mean = compute_clustered_mean(alone.tolist(), families)
    low = high = None
    if mean.families >= MIN_FAMILIES:
        spread = compute_t_quantile(mean.families) * mean.error
        low, high = max(0.0, mean.mean - spread), mean.mean + spread
    return FurtherUnit(mean=mean.mean, low=low, high=high, units=mean.n, families=mean.families)


def _index_owners(units: Sequence[Collection[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the units of each feature, one feature after the other, and where those of each feature begin."""
    owners: dict[str, list[int]] = {}
    for place, features in enumerate(units):
        for feature in sorted(set(features)):
            owners.setdefault(feature, []).append(place)
    ends = np.cumsum([len(places) for places in owners.values()], dtype=int)
    flat = np.asarray([place for places in owners.values() for place in places], dtype=int)
    return flat, np.insert(ends[:-1], 0, 0)[: len(owners)]


def _summarise(values: np.ndarray) -> Spread:
    low, high = np.quantile(values, QUANTILES)
    return float(values.mean()), float(low), float(high)
