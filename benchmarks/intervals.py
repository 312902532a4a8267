"""Coverage and width of the intervals of benches, and false alarms of paired comparisons.

    .venv/bin/python -m benchmarks.intervals

Each of seven designs is drawn 1,000 times: families with a rate of their own, subjects around it, k runs of each. The
interval of 95 % has to cover the true mean in 93 to 97 % of the draws, and its mean width may be 1.15 of the ideal one,
3.92 standard deviations of the mean over the draws. Two equal models on the same subjects may differ in 3 to 7 % of the
draws. The exit code is 1 where a limit is passed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.statistics.clusters import compute_clustered_mean
from evaluation.statistics.comparisons import compare_pairs
from evaluation.statistics.intervals import compute_share_interval

COVERAGE = (0.93, 0.97)
FALSE_ALARMS = (0.03, 0.07)
MAX_WIDTH = 1.15
LEVEL = 0.05
IDEAL = 3.92
"""Width of a normal interval of 95 % in standard deviations."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """Set of subjects in families, and the runs of a model on it."""

    name: str
    families: int
    sizes: tuple[int, ...]
    """Subjects of a family, drawn from these."""
    runs: int
    rate: float
    """Mean success."""
    family_weight: float
    """Sum of the parameters of the beta distribution of the families' rates: the smaller, the more they differ."""
    subject_weight: float
    """The same of subjects around the rate of their family."""


DESIGNS = (
    Design(name="60 families", families=60, sizes=(4,), runs=1, rate=0.5, family_weight=4, subject_weight=4),
    Design(name="30 families, 4 runs", families=30, sizes=(4,), runs=4, rate=0.4, family_weight=4, subject_weight=2),
    Design(name="15 families", families=15, sizes=(8,), runs=1, rate=0.5, family_weight=6, subject_weight=4),
    Design(name="15 families, 4 runs", families=15, sizes=(5,), runs=4, rate=0.3, family_weight=6, subject_weight=3),
    Design(name="unequal", families=40, sizes=(1, 1, 2, 2, 4, 8), runs=4, rate=0.4, family_weight=6, subject_weight=3),
    Design(name="skewed", families=40, sizes=(3,), runs=4, rate=0.85, family_weight=3, subject_weight=2),
    Design(name="rare", families=60, sizes=(5,), runs=1, rate=0.06, family_weight=8, subject_weight=6),
)


@dataclass(frozen=True, kw_only=True)
class DesignResult:
    """Draws of a design: shares 0..1, and the mean width as a ratio to the ideal."""

    name: str
    coverage: float
    width: float
    false_alarms: float

    def list_problems(self) -> list[str]:
        """Return the limits that are passed."""
        problems = []
        if not COVERAGE[0] <= self.coverage <= COVERAGE[1]:
            problems.append(f"{self.name}: coverage {self.coverage:.3f}")
        if self.width > MAX_WIDTH:
            problems.append(f"{self.name}: width {self.width:.3f}")
        if not FALSE_ALARMS[0] <= self.false_alarms <= FALSE_ALARMS[1]:
            problems.append(f"{self.name}: false alarms {self.false_alarms:.3f}")
        return problems


def measure_design(design: Design, draws: int, seed: int) -> DesignResult:
    """Return the results of a design over a number of draws."""
    random = np.random.default_rng(seed)
    means, widths, covered, alarms = [], [], 0, 0
    for _ in range(draws):
        families, rates = draw_subjects(design, random)
        first, second = (random.binomial(design.runs, rates) / design.runs for _ in range(2))
        share = compute_clustered_mean(list(first), families)
        interval = compute_share_interval(share)
        difference = compare_pairs(list(first), list(second), families)
        if interval is None or difference is None:
            raise ValueError(f"{design.name} has a single family")
        means.append(share.mean)
        widths.append(interval[1] - interval[0])
        covered += interval[0] <= design.rate <= interval[1]
        alarms += difference.probability <= LEVEL
    ideal = IDEAL * float(np.std(means))
    return DesignResult(
        name=design.name, coverage=covered / draws, width=float(np.mean(widths)) / ideal, false_alarms=alarms / draws
    )


def draw_subjects(design: Design, random: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return the family and the probability of success of each subject."""
    a = design.rate * design.family_weight
    of_families = np.clip(random.beta(a, design.family_weight - a, design.families), 1e-3, 1 - 1e-3)
    sizes = random.choice(design.sizes, design.families)
    rates = np.repeat(of_families, sizes)
    subjects = random.beta(rates * design.subject_weight, (1 - rates) * design.subject_weight)
    return [str(number) for number in np.repeat(np.arange(design.families), sizes)], subjects


def main(words: Sequence[str] | None = None) -> int:
    """Print a line a design; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    problems = []
    print(f"{'design':24}{'coverage':>10}{'width':>8}{'false alarms':>14}")
    for design in DESIGNS:
        result = measure_design(design, options.draws, options.seed)
        print(f"{design.name:24}{result.coverage:10.3f}{result.width:8.2f}{result.false_alarms:14.3f}")
        problems += result.list_problems()
    for problem in problems:
        print(f"outside of the limits: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
