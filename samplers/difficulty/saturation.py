"""Saturation: nested random subsets of tasks to train on, and the curve through the scores that they gave.

The curve is score(n) = limit - gap * n ** -rate, the power law that learning curves are usually fitted by (Hestness et
al. 2017). It is flat from the number of tasks on behind which it gains less than a tolerance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student_t

from core.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARES = tuple(Fraction(1, 2**power) for power in (4, 3, 2, 1, 0))
"""Sizes of the subsets; each holds the subsets before it."""
TOLERANCE = 0.01
"""Gain of the score that counts as nothing."""
MIN_SIZES = 4
"""Different sizes that a curve of three parameters needs."""
N_PARAMETERS = 3
REFINEMENTS = 3
RATES = np.geomspace(0.02, 5, 120)
FLATS = np.geomspace(1, 1e9, 400)
"""Rates and numbers of tasks that are tried; a curve that is not flat before the last size counts as never flat."""


@dataclass(frozen=True, kw_only=True)
class SaturationCurve:
    """A fitted curve. Intervals are of 95 %, by profile likelihood; None: there is no upper end."""

    limit: float
    limit_low: float
    limit_high: float
    flat_from: float
    """Tasks from which on the curve gains less than the tolerance."""
    flat_low: float
    flat_high: float | None
    largest: int
    """Tasks of the largest subset that was scored."""
    residual: float
    """Root of the average squared residual."""

    @property
    def is_flat(self) -> bool:
        """Whether even the upper end of the interval lies within the range that was scored."""
        return self.flat_high is not None and self.flat_high <= self.largest


def nest_subsets(tasks: Sequence[str], seed: int = 0) -> dict[Fraction, list[str]]:
    """Return share -> tasks (ids), nested: a hash of seed and id orders them, so that more tasks change little."""
    ordered = sorted(tasks, key=lambda task: hashlib.sha256(f"{seed} {task}".encode()).digest())
    return {share: ordered[: max(1, round(len(ordered) * share))] for share in SHARES} if ordered else {}


def group_tasks(rows: Sequence[Mapping[str, Any]], dimensions: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Return (dimension, value) -> ids of tasks, and ("all", "all") -> all of them."""
    groups: dict[tuple[str, str], list[str]] = {("all", "all"): [row["id"] for row in rows]}
    for row in rows:
        for name in dimensions:
            groups.setdefault((name, str(row[name])), []).append(row["id"])
    return groups


def fit_saturation(scores: Sequence[tuple[int, float]], tolerance: float = TOLERANCE) -> SaturationCurve:
    """Return the curve through scores: (number of tasks, score), several of the same size where it was trained again.

    Raises:
        InputError: there are fewer than four sizes.
    """
    sizes = np.array([n for n, _ in scores], dtype=float)
    values = np.array([value for _, value in scores], dtype=float)
    if len(set(sizes)) < MIN_SIZES or (sizes <= 0).any():
        raise InputError(f"a curve needs scores of {MIN_SIZES} different numbers of tasks, all above 0")
    rates, flats = RATES, FLATS
    for _ in range(REFINEMENTS):
        grid = _compare(sizes, values, rates, flats, tolerance)
        rates = _refine(rates, grid.is_possible.any(axis=1))
        flats = _refine(flats, grid.is_possible.any(axis=0))
    best = np.unravel_index(np.argmin(grid.errors), grid.errors.shape)
    possible = grid.flats[grid.is_possible.any(axis=0)]
    return SaturationCurve(
        limit=float(grid.limits[best]),
        limit_low=float((grid.limits - grid.margins)[grid.is_possible].min()),
        limit_high=float((grid.limits + grid.margins)[grid.is_possible].max()),
        flat_from=float(grid.flats[best[1]]),
        flat_low=float(possible[0]),
        flat_high=float(possible[-1]) if possible[-1] < FLATS[-1] else None,
        largest=int(sizes.max()),
        residual=float(np.sqrt(grid.errors[best] / len(sizes))),
    )


@dataclass(frozen=True, kw_only=True)
class _CurveGrid:
    """Curves on a grid of rates (rows) and numbers of tasks from which they are flat (columns)."""

    flats: NDArray[Any]
    limits: NDArray[Any]
    """Best limit of each curve; within `margins` of it, it is possible, too."""
    margins: NDArray[Any]
    errors: NDArray[Any]
    """Sum of squared residuals."""
    is_possible: NDArray[Any]


def _compare(sizes: Any, values: Any, rates: Any, flats: Any, tolerance: float) -> _CurveGrid:
    """Return the curves of a grid. Written by the N it is flat from, a curve is limit - tolerance * (N / n) ** rate."""
    drops = tolerance * np.exp(np.multiply.outer(rates, np.subtract.outer(np.log(flats), np.log(sizes))))
    limits = (values + drops).mean(axis=-1)
    errors = ((values + drops - limits[..., None]) ** 2).sum(axis=-1)
    freedom = max(1, len(sizes) - N_PARAMETERS)
    allowed = errors.min() * (1 + student_t.ppf(0.975, freedom) ** 2 / freedom)
    margins = np.sqrt(np.maximum(allowed - errors, 0) / len(sizes))
    return _CurveGrid(flats=flats, limits=limits, margins=margins, errors=errors, is_possible=errors <= allowed)


def _refine(values: Any, is_possible: Any) -> Any:
    """Return as many values between those just outside of the possible values."""
    places = np.flatnonzero(is_possible)
    low, high = max(places[0] - 1, 0), min(places[-1] + 1, len(values) - 1)
    return np.geomspace(values[low], values[high], len(values))
