"""Paired comparisons: the difference of two measures of the same units, tests of it, and corrections for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evaluation.statistics.clusters import (
    POWER_80,
    TWO_SIDED_95,
    compute_clustered_mean,
    compute_t_quantile,
    sum_by_family,
)

EXACT_FAMILIES = 16
"""Families up to which every choice of signs is tried."""
SIGN_SAMPLES = 10_000
SEED = 20_240_502
"""Of sampled signs: the same differences always have the same probability."""
_CLOSE = 1e-9


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """Difference of paired values: second minus first."""

    difference: float
    low: float
    high: float
    """95 % interval by Student's t with G - 1 degrees of freedom, of the clustered variance."""
    probability: float
    """Mid-p value of the sign-flip test, two-sided."""
    detectable: float
    """Smallest difference that these units show with a power of 80 %, at the two-sided level of 5 %."""
    n: int
    families: int


def compare_pairs(first: Sequence[float], second: Sequence[float], families: Sequence[str]) -> PairedDifference | None:
    """Return the difference of paired values with its interval; None for fewer than two families.

    Args:
        first: value of each unit in the measure that is compared with.
        second: value of each unit in the other measure, in the same order.
        families: name of each unit's family.

    Raises:
        ValueError: the lengths differ, or there is no unit.
    """
    pairs = zip(first, second, strict=True)
    differences = [after - before for before, after in pairs]
    mean = compute_clustered_mean(differences, families)
    if mean.families < 2:
        return None
    spread = compute_t_quantile(mean.families, TWO_SIDED_95) * mean.error
    return PairedDifference(
        difference=mean.mean,
        low=mean.mean - spread,
        high=mean.mean + spread,
        probability=compute_sign_probability(differences, families),
        detectable=spread + compute_t_quantile(mean.families, POWER_80) * mean.error,
        n=mean.n,
        families=mean.families,
    )


def compute_sign_probability(differences: Sequence[float], families: Sequence[str]) -> float:
    """Return the two-sided mid-p value of the sign-flip test over families: whether their sum is 0 under changed signs.

    Sums as far from 0 as the observed one count half (Lancaster 1961): values of few runs give many equal sums, with
    which the plain p value finds too little. All signs are tried up to `EXACT_FAMILIES` families; beyond,
    `SIGN_SAMPLES` with a fixed seed, and the observed sum counts among them. Without any difference it is 1.
    """
    sums = sum_by_family(np.asarray(differences, dtype=float), families)
    observed = abs(float(sums.sum()))
    if not np.any(np.abs(sums) > _CLOSE):
        return 1.0
    distances = np.abs(_choose_signs(len(sums)) @ sums) - observed
    n_farther = float(np.sum(distances > _CLOSE))
    n_equal = float(np.sum(np.abs(distances) <= _CLOSE))
    is_sample = len(sums) > EXACT_FAMILIES
    return (n_farther + (n_equal + is_sample) / 2) / (len(distances) + is_sample)


@lru_cache(maxsize=8)
def _choose_signs(families: int) -> np.ndarray:
    """Return rows of signs, -1.0 or 1.0, with a column for each family: all of them, or a sample."""
    if families <= EXACT_FAMILIES:
        bits = np.arange(2**families)[:, None] >> np.arange(families) & 1
    else:
        bits = np.random.default_rng(SEED).integers(2, size=(SIGN_SAMPLES, families))
    signs = bits.astype(float)
    signs *= 2.0
    signs -= 1.0
    return signs


def correct_holm(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the p values of several comparisons, corrected by Holm's step-down method (Holm 1979), in their order."""
    corrected, largest = {}, 0.0
    ordered = sorted(probabilities, key=lambda name: (probabilities[name], name))
    for place, name in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - place) * probabilities[name]))
        corrected[name] = largest
    return {name: corrected[name] for name in probabilities}
