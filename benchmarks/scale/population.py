"""Repositories and changes of a simulated run, drawn from measured ones."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.scale.plan import Plan
from benchmarks.scale.profile import MeasuredChange, MeasuredRepository, MeasuredStep, Profile
from core.errors import InputError

POINTS_PER_CHANGE = 0.033
REQUESTS_PER_CHANGE = 0.029
"""Points and requests of the forge for each mined change (measured by `benchmarks.github_budget`)."""
FIRST_REQUESTS = 3
"""Requests before the first change of a repository."""


@dataclass(eq=False, slots=True)
class SimulatedChange:
    """A candidate on its way."""

    repository: SimulatedRepository
    number: int
    measured: MeasuredChange
    layer: tuple[int, int, int] | None
    """Key of its dependency layer: repository, layer, and round through the measured changes."""


@dataclass(eq=False, slots=True)
class SimulatedRepository:
    """A repository with its history."""

    number: int
    language: str
    n_changes: int
    mining_seconds: float
    clone_bytes: float
    layer_bytes: float
    """Of each of its dependency layers."""
    measured: Sequence[MeasuredChange]
    """The candidates, newest first; a longer history repeats the measured ones in another order."""
    n_candidates: int

    def list_changes(self, rng: random.Random) -> list[SimulatedChange]:
        """Return the candidates, drawn from the measured ones."""
        changes = []
        for number in range(self.n_candidates):
            measured = rng.choice(self.measured)
            layer = None
            if measured.dependency is not None:
                layer = (self.number, measured.dependency, number // len(self.measured))
            changes.append(SimulatedChange(self, number, measured, layer))
        return changes

    @property
    def points(self) -> int:
        """Points of the forge that mining takes."""
        return FIRST_REQUESTS + math.ceil(self.n_changes * POINTS_PER_CHANGE)

    @property
    def requests(self) -> int:
        """Requests to the forge that mining takes."""
        return FIRST_REQUESTS + math.ceil(self.n_changes * REQUESTS_PER_CHANGE)


def draw_repositories(plan: Plan, profile: Profile, rng: random.Random) -> Iterator[SimulatedRepository]:
    """Yield the repositories of a plan.

    Each has the history of a mined one and, with the measured probability, the candidates of a processed one; all
    candidates of the others are rejected by the build.

    Raises:
        InputError: the profile has no histories, no share of environments or no repositories, or a smaller limit.
    """
    environments = profile.environments
    if not profile.histories or environments is None or not profile.repositories:
        raise InputError(
            "the profile has no histories or no share of environments",
            advice="measure it with --mined and --draws",
        )
    if plan.limit > profile.mined_limit:
        raise InputError(
            f"the profile's histories were mined up to {profile.mined_limit} candidates, fewer than {plan.limit}",
            advice="mine them again with --limit",
        )
    failed = [
        MeasuredChange((MeasuredStep("build", "rejected", "", seconds),), None, 0.0, 0)
        for seconds in environments.rejected_seconds
    ]
    for number in range(plan.repositories):
        history = rng.choice(profile.histories)
        crawled = min(1.0, plan.limit / max(1, history.candidates))  # the newest first, up to the limit
        repository: MeasuredRepository = rng.choice(profile.repositories)
        has_environment = rng.random() * environments.n < environments.accepted
        yield SimulatedRepository(
            number=number,
            language=repository.language,
            n_changes=round(history.changes * crawled),
            mining_seconds=history.seconds * crawled,
            clone_bytes=history.clone_bytes,
            layer_bytes=rng.choice(environments.dependency_bytes) if environments.dependency_bytes else 0,
            measured=repository.changes if has_environment else [rng.choice(failed)] if failed else [],
            n_candidates=min(plan.limit, history.candidates) if has_environment or failed else 0,
        )
