"""Pass rates of models on tasks: counts, Wilson's interval, pass@k, pass^k and bands."""

from __future__ import annotations

import math
from enum import StrEnum

from taskdb.records.base import Part

Z_95 = 1.96
"""Quantile of a two-sided interval of 95 %."""
UNDECIDED_BELOW = 4
"""Attempts below which no band is given."""


class DifficultyBand(StrEnum):
    """Where a task stands for a model and scaffold. Reinforcement learning trains on the edge."""

    UNKNOWN = "unknown"
    """Fewer than four attempts."""
    NEVER = "never"
    EDGE = "edge"
    """Solved sometimes, in at most half of the attempts."""
    UNSTABLE = "unstable"
    """Solved in more than half of the attempts, not in all."""
    ALWAYS = "always"


class Difficulty(Part):
    """Attempts of a model and scaffold at a task."""

    n: int
    """Attempts with a value; infrastructure failures do not count."""
    c: int
    """Attempts that resolved the task."""
    low: float
    high: float
    """Wilson's 95 % interval of the pass rate, 0..1."""

    @property
    def band(self) -> DifficultyBand:
        """Return the band of the counts."""
        if self.n < UNDECIDED_BELOW:
            return DifficultyBand.UNKNOWN
        if self.c == 0:
            return DifficultyBand.NEVER
        if self.c == self.n:
            return DifficultyBand.ALWAYS
        return DifficultyBand.EDGE if 2 * self.c <= self.n else DifficultyBand.UNSTABLE

    def estimate_pass_at(self, k: int) -> float | None:
        """Return the unbiased estimate of pass@k (Chen et al. 2021); None for more than n attempts.

        It is the probability that at least one of k attempts passes: 1 - C(n - c, k) / C(n, k).
        """
        return None if k > self.n else 1.0 - math.comb(self.n - self.c, k) / math.comb(self.n, k)

    def estimate_pass_all(self, k: int) -> float | None:
        """Return the unbiased estimate of pass^k, that all k attempts pass: C(c, k) / C(n, k); None beyond n."""
        return None if k > self.n else math.comb(self.c, k) / math.comb(self.n, k)


def compute_difficulty(n: int, c: int) -> Difficulty:
    """Return the difficulty of `c` passes in `n` attempts, n > 0."""
    low, high = compute_wilson_interval(c, n)
    return Difficulty(n=n, c=c, low=round(low, 6), high=round(high, 6))


def compute_wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % score interval of a share (Wilson 1927), 0..1; all of it for no trials."""
    if not trials:
        return 0.0, 1.0
    share, square = successes / trials, Z_95**2
    middle = share + square / (2 * trials)
    spread = Z_95 * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    scale = 1 + square / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def make_difficulty_key(model: str, checkpoint: str, scaffold: str) -> str:
    """Return the key of a model and scaffold in the column `difficulty` of tasks: `MODEL/SCAFFOLD`.

    A checkpoint follows the model: `MODEL@CHECKPOINT/SCAFFOLD`.
    """
    return f"{model}@{checkpoint}/{scaffold}" if checkpoint else f"{model}/{scaffold}"
