"""Jobs: a conversation to simulate, from a seed. The list of a run depends on seeds, options and numbers alone."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.errors import UsageError
from simulators.options import SimulationOptions
from simulators.scenarios import FAILURES, NEW, SCENARIOS, ScenarioPlan, ToolFailure
from simulators.seeds.seed import Seed

RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class SimulationJob:
    """A conversation to simulate. `sample`: its number among those of the seed, from 1."""

    seed: Seed
    sample: int
    scenario: ScenarioPlan = NEW
    failure: ToolFailure | None = None

    @property
    def name(self) -> str:
        """Seed and sample, for people and files."""
        return f"{self.seed.id}-{self.sample}"


def plan_jobs(
    seeds: Sequence[Seed], options: SimulationOptions, *, per_seed: int | None = None, total: int | None = None
) -> list[SimulationJob]:
    """Return the jobs of a run.

    Args:
        seeds: those that the pre-filter kept.
        options: how seeds are chosen, and whether scenarios and failures are drawn.
        per_seed: conversations of each seed, or
        total: conversations in all. A larger number begins with the jobs of a smaller number, so a run can be extended.

    Raises:
        UsageError: neither or both numbers are given.
    """
    if (per_seed is None) == (total is None):
        raise UsageError("one of --per-seed and --total is needed", advice="such as --per-seed 20")
    numbers: Counter[str] = Counter()
    jobs = []
    for seed in _choose_seeds(seeds, options, per_seed=per_seed, total=total):
        numbers[seed.id] += 1
        jobs.append(_make_job(seed, numbers[seed.id], options))
    return jobs


def _choose_seeds(
    seeds: Sequence[Seed], options: SimulationOptions, *, per_seed: int | None, total: int | None
) -> Iterator[Seed]:
    if not seeds:
        return iter(())
    if per_seed is not None:
        return itertools.chain.from_iterable(itertools.repeat(tuple(seeds), per_seed))
    if options.seed_choice == RANDOM:
        drawn = random.Random(options.draw)  # noqa: S311 - no secret
        return (drawn.choice(seeds) for _ in range(total or 0))
    return itertools.islice(itertools.cycle(seeds), total)


def _make_job(seed: Seed, sample: int, options: SimulationOptions) -> SimulationJob:
    """Return a job, whose scenario and failure depend on seed, sample and draw, not on the other jobs."""
    digest = hashlib.sha256(f"{options.draw} {seed.id} {sample}".encode()).digest()
    drawn = random.Random(digest)  # noqa: S311 - no secret
    scenario, failing, failure = drawn.choice(SCENARIOS), drawn.random(), drawn.choice(FAILURES)
    return SimulationJob(
        seed=seed,
        sample=sample,
        scenario=scenario if options.scenarios else NEW,
        failure=failure if failing < options.failures else None,
    )
