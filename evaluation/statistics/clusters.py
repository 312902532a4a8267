"""Averages over units in families, with the variance that is clustered by family (Miller 2024, arXiv 2411.00640).

A unit is a subject: its value is the average over its runs. Subjects of a family are not independent, so the variance
is that of the families' sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

ZERO = 1e-12
"""Variance below which all families agree: differences of equal floats."""
TWO_SIDED_95 = 0.975
POWER_80 = 0.8


@dataclass(frozen=True, kw_only=True)
class ClusteredMean:
    """Average of units and the variance of it."""

    mean: float
    variance: float
    """Squared standard error; 0.0 where every family's sum of deviations is 0, or where there is a single family."""
    n: int
    """Units."""
    families: int

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.sqrt(self.variance))


def compute_clustered_mean(values: Sequence[float], families: Sequence[str]) -> ClusteredMean:
    """Return the average with V = G / (G - 1) x sum over families of (sum of deviations)^2 / n^2.

    Args:
        values: value of each unit, at least one.
        families: name of each unit's family, as long as `values`.

    Raises:
        ValueError: there is no value, or the lengths differ.
    """
    if not values or len(values) != len(families):
        raise ValueError(f"{len(values)} values of {len(families)} units")
    numbers = np.asarray(values, dtype=float)
    mean = float(numbers.mean())
    sums = sum_by_family(numbers - mean, families)
    n, n_families = len(numbers), len(sums)
    variance = 0.0
    if n_families > 1:
        variance = float(n_families / (n_families - 1) * np.sum(sums**2) / n**2)
    return ClusteredMean(mean=mean, variance=variance if variance > ZERO else 0.0, n=n, families=n_families)


def sum_by_family(values: np.ndarray, families: Sequence[str]) -> np.ndarray:
    """Return the sum of each family's values, in the order of the families' names."""
    places = {name: place for place, name in enumerate(sorted(set(families)))}
    return np.bincount([places[name] for name in families], weights=values, minlength=len(places))


def compute_t_quantile(families: int, probability: float = TWO_SIDED_95) -> float:
    """Return the quantile of Student's t with G - 1 degrees of freedom; G is at least 2."""
    return float(stdtrit(families - 1, probability))
