"""Simulate a plan and add up hours, dollars and terabytes."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.scale.factory import Factory, Totals
from benchmarks.scale.plan import Plan
from benchmarks.scale.population import draw_repositories
from benchmarks.scale.profile import Profile

HIGH = 0.85
"""Share of the time from which a resource counts as the bottleneck."""
LEAST_IN_TAIL = 0.5
"""Share of the time after the last job was begun, whose last part nothing but a few long changes takes."""
NODE_RESOURCES = ("cores", "sandboxes")
LONGEST = "longest changes"
TERA = 1e12


@dataclass(frozen=True)
class Outcome:
    """What a plan takes."""

    plan: Plan
    totals: Totals
    hours: float
    usage: Mapping[str, float]
    """Resource -> share of the time until nothing waited for a worker."""
    whole_usage: Mapping[str, float]
    """The same of the whole run."""
    tail_hours: float
    """From then to the end."""
    dollars: Mapping[str, float]
    terabytes: Mapping[str, float]
    n_events: int
    wall_seconds: float
    """That the simulation took."""

    @property
    def node_hours(self) -> float:
        """All nodes are paid for until the end."""
        return self.hours * self.plan.nodes

    @property
    def bottleneck(self) -> str:
        """The resource that was busy all the time: services before drivers, drivers before nodes."""
        if self.tail_hours <= self.hours / 2:
            busy = [name for name, share in self.usage.items() if share >= HIGH]
            return busy[0] if busy else max(self.usage, key=lambda name: self.usage[name])
        tail = {name: share for name, share in self._compute_tail_usage().items() if name not in NODE_RESOURCES}
        return next((name for name, share in tail.items() if share >= LEAST_IN_TAIL), LONGEST)

    def _compute_tail_usage(self) -> dict[str, float]:
        """Return the share of each resource after the last job was begun."""
        before = self.hours - self.tail_hours
        return {
            name: (share * self.hours - self.usage[name] * before) / self.tail_hours
            for name, share in self.whole_usage.items()
        }


def simulate(plan: Plan, profile: Profile, seed: int = 0) -> Outcome:
    """Simulate a plan.

    Args:
        plan: cluster and services.
        profile: measured times and sizes.
        seed: of everything that is drawn.

    Raises:
        InputError: the profile lacks what repositories are drawn from.
    """
    started = time.perf_counter()
    draws, rng = random.Random(seed), random.Random(seed + 1)  # noqa: S311 - no secret
    factory = Factory(plan, profile, draw_repositories(plan, profile, draws), rng)
    factory.run()
    hours = factory.loop.now / 3600
    fed_at = factory.fed_at if factory.fed_usage else factory.loop.now
    return Outcome(
        plan=plan,
        totals=factory.totals,
        hours=hours,
        usage=factory.fed_usage or factory.read_usage(),
        whole_usage=factory.read_usage(),
        tail_hours=hours - fed_at / 3600,
        dollars=_add_dollars(plan, factory, profile),
        terabytes=_add_terabytes(factory.totals, profile, plan),
        n_events=factory.loop.n_events,
        wall_seconds=time.perf_counter() - started,
    )


def _add_terabytes(totals: Totals, profile: Profile, plan: Plan) -> dict[str, float]:
    languages = len({repository.language for repository in profile.repositories})
    images = totals.layer_bytes + totals.image_bytes + languages * plan.base_bytes
    return {
        "images": images * plan.compression / TERA,
        "artifacts": sum(totals.changes.values()) * profile.artifact_bytes / TERA,
        "database": totals.mined * profile.database_bytes / TERA,
    }


def _add_dollars(plan: Plan, factory: Factory, profile: Profile) -> dict[str, float]:
    hours = factory.loop.now / 3600
    stored = sum(_add_terabytes(factory.totals, profile, plan).values())
    gpus = -(-plan.model_concurrency // plan.requests_per_gpu) if plan.rollouts else 0
    return {
        "nodes": hours * plan.nodes * plan.cores * plan.core_hour_dollars,
        "judge": factory.totals.judge_requests * plan.judge_dollars,
        "model": gpus * hours * plan.gpu_hour_dollars,
        "storage": stored * plan.terabyte_month_dollars,
    }
