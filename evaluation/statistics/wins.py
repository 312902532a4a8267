"""Win rates: how often the first of two sides has the larger value at the same unit, such as a task or a seed.

The value of a unit is the share of the pairs of an attempt of the first side and one of the second that the first wins;
ties count half. It is the probability of superiority, with units of a family clustered as in all averages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.comparisons import compare_pairs
from evaluation.statistics.intervals import MIN_FAMILIES, compute_share_interval

DIGITS = 6
EVEN = 0.5
"""Win rate of sides that are equally good."""


@dataclass(frozen=True, kw_only=True)
class PairedUnit:
    """Values of both sides at a unit; None for an attempt without a result, and nothing for a side without attempts."""

    family: str
    first: Sequence[float | None]
    second: Sequence[float | None]

    @property
    def is_complete(self) -> bool:
        """Whether both sides have attempts, and all of them a result."""
        return all(values and None not in values for values in (self.first, self.second))

    def compare(self) -> tuple[float, float] | None:
        """Return the shares of pairs that the first side wins and that are ties; None without a pair of results."""
        first, second = (
            np.asarray([value for value in values if value is not None], dtype=float)
            for values in (self.first, self.second)
        )
        if not first.size or not second.size:
            return None
        signs = np.sign(first[:, None] - second)
        return float(np.mean(signs > 0)), float(np.mean(signs == 0))

    def compute_bounds(self) -> tuple[float, float]:
        """Return the values of the unit where the first side loses, and where it wins, every pair that has a gap."""
        shares = self.compare()
        if shares is None:
            return 0.0, 1.0
        known = 1.0
        for values in (self.first, self.second):
            known *= sum(value is not None for value in values) / len(values)
        value = (shares[0] + shares[1] / 2) * known
        return value, value + 1 - known


@dataclass(frozen=True, kw_only=True)
class WinRate:
    """Share of comparisons that the first side wins. `wins`, `ties` and `losses` add up to 1.

    `low` and `high` are the 95 % interval of the rate, and `detectable` is the smallest distance from one half that
    these units show with a power of 80 %, None for fewer than `MIN_FAMILIES` families. `probability` is the p value of
    the sign-flip test that the sides are equally good, None for a single family.
    """

    wins: float
    ties: float
    losses: float
    rate: float
    low: float | None
    high: float | None
    probability: float | None
    detectable: float | None
    bounds: tuple[float, float] | None
    """The rate with everything that is missing as lost, and as won; None where nothing is missing."""
    n: int
    """Units with a pair of results."""
    families: int
    incomplete: int
    """Units of which an attempt has no result, or which one side has not attempted."""

    def to_json(self) -> dict[str, Any]:
        """Return all figures, rounded."""
        shares = ("wins", "ties", "losses", "rate", "low", "high")
        return {
            **{name: _round(getattr(self, name)) for name in shares},
            "bounds": None if self.bounds is None else [round(end, DIGITS) for end in self.bounds],
            "p": _round(self.probability),
            "detectable": _round(self.detectable),
            "n": self.n,
            "families": self.families,
            "incomplete": self.incomplete,
        }


def compute_win_rate(units: Sequence[PairedUnit]) -> WinRate | None:
    """Return the win rate of the first side; None where no unit has results of both."""
    pairs = [(unit.family, shares) for unit in units if (shares := unit.compare()) is not None]
    if not pairs:
        return None
    families = [family for family, _ in pairs]
    values = [wins + ties / 2 for _, (wins, ties) in pairs]
    share = compute_clustered_mean(values, families)
    wins, ties = (float(np.mean([shares[place] for _, shares in pairs])) for place in (0, 1))
    has_interval = share.families >= MIN_FAMILIES
    low, high = (compute_share_interval(share) if has_interval else None) or (None, None)
    difference = compare_pairs([EVEN] * len(values), values, families)
    incomplete = sum(not unit.is_complete for unit in units)
    ends = np.mean([unit.compute_bounds() for unit in units], axis=0)
    return WinRate(
        wins=wins,
        ties=ties,
        losses=1 - wins - ties,
        rate=share.mean,
        low=low,
        high=high,
        probability=difference.probability if difference else None,
        detectable=difference.detectable if difference and has_interval else None,
        bounds=(float(ends[0]), float(ends[1])) if incomplete else None,
        n=share.n,
        families=share.families,
        incomplete=incomplete,
    )


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
