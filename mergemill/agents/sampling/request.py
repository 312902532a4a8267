"""Subjects that are sampled, and which rollouts of them are pending. The database is the queue.

A plan is pending until a rollout of it is stored that ended by the agent's doing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from core.errors import InputError
from mergemill.agents.sampling.world_scaffolds import WorldScaffold
from samplers.difficulty.staging import STAGES, plan_attempts
from samplers.scaffolds.base import SampledScaffold, Scaffold
from samplers.trajectories.credit import Credit, share_reward
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.records.rollouts import RolloutPlan
from taskdb.store import Store

NO_ROLLOUTS = queries.RolloutCounts()
MAX_STAGED_ATTEMPTS = STAGES[-1]


class SampledSubject(Protocol):
    """Fields that a plan has of the record of a subject."""

    @property
    def id(self) -> str:
        """Id of the record."""
        ...

    @property
    def name(self) -> str:
        """Name for people."""
        ...


@dataclass(frozen=True, kw_only=True)
class AttemptRequest:
    """Attempts that are attempted at each task or scenario."""

    model: str
    scaffolds: tuple[SampledScaffold, ...]
    attempts: int | None
    """By each scaffold; None for staged sampling."""
    checkpoint: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    uncertified: bool = False
    """Whether a subject that is not certified may be sampled."""
    credit: Credit = share_reward
    """Divides a rollout's reward among its trajectories."""
    system: str = ""
    """Text that is added to the agents' system prompts; empty for none."""
    gives_feedback: bool = False
    """Whether an agent that broke instructions goes on after they are named to it."""


@dataclass(frozen=True, kw_only=True)
class SampleRequest(AttemptRequest):
    """Rollouts that are sampled: tasks by scaffolds by attempts."""

    filters: TaskFilters
    scaffolds: tuple[Scaffold, ...]


@dataclass(frozen=True, kw_only=True)
class WorldSampleRequest(AttemptRequest):
    """Rollouts that are sampled: scenarios by scaffolds by attempts."""

    scaffolds: tuple[WorldScaffold, ...]
    worlds: tuple[str, ...] = ()
    """Names or ids of worlds, of which all scenarios are sampled."""
    only: tuple[str, ...] = ()
    """Names or ids of scenarios; without both, all scenarios."""


@dataclass(frozen=True, kw_only=True)
class PendingRollout:
    """A plan that has no result yet. `retry`: number of its infrastructure failures so far."""

    plan: RolloutPlan
    retry: int


def select_tasks(store: Store, request: SampleRequest) -> list[Task]:
    """Return the tasks that the filters select, by name.

    Raises:
        InputError: none is selected, or a scenario that is named is not certified.
    """
    filters = request.filters
    rows = queries.list_tasks(store, filters, columns=["id", "name", "status", "environment"])
    if not rows:
        raise InputError("no task is selected", advice="mergemill tasks list shows them; see its filters")
    if not request.uncertified:
        open_rows = [row for row in rows if row["status"] != "certified" and row["environment"] != "simulated"]
        if open_rows:
            name = open_rows[0]["name"]
            raise InputError(
                f"{name} is not certified", advice="mergemill certify, or --uncertified to sample it anyway"
            )
    tasks = store.get_many(Task, [row["id"] for row in rows])
    return [tasks[row["id"]] for row in sorted(rows, key=lambda row: (row["name"], row["id"]))]


def list_pending(
    store: Store,
    subjects: Sequence[SampledSubject],
    request: AttemptRequest,
    left_out: Collection[tuple[str, str]] = (),
) -> tuple[int, list[PendingRollout]]:
    """Return how many rollouts are planned, and those without a result, with their infrastructure failures.

    First attempts of all subjects come first, so that an early stop leaves breadth. In staged sampling the plan grows
    with the results: it ends when a call returns nothing.

    Args:
        store: store with the rollouts so far.
        subjects: subjects that are sampled.
        request: attempts at each of them.
        left_out: id of a subject and name of a scaffold that make no rollouts together.
    """
    groups = [
        [
            PendingRollout(plan=make_plan(subject, scaffold, attempt, request), retry=0)
            for attempt in range(1, (request.attempts or MAX_STAGED_ATTEMPTS) + 1)
        ]
        for subject in subjects
        for scaffold in request.scaffolds
        if (subject.id, scaffold.name) not in left_out
    ]
    counts = queries.count_rollouts(store, [pending_rollout.plan.key for group in groups for pending_rollout in group])
    if request.attempts is None:
        groups = [_cut_to_stage(group, counts) for group in groups]
    pending = [
        replace(pending_rollout, retry=count.failures)
        for group in groups
        for pending_rollout in group
        if not (count := counts.get(pending_rollout.plan.key, NO_ROLLOUTS)).results
    ]
    pending.sort(key=lambda pending_rollout: pending_rollout.plan.attempt)
    return sum(map(len, groups)), pending


def _cut_to_stage(group: Sequence[PendingRollout], counts: Mapping[str, queries.RolloutCounts]) -> list[PendingRollout]:
    """Return the attempts of a subject and scaffold that its results so far call for."""
    rollout_counts = [counts.get(pending_rollout.plan.key, NO_ROLLOUTS) for pending_rollout in group]
    done, resolved = sum(count.results for count in rollout_counts), sum(count.resolved for count in rollout_counts)
    missing = plan_attempts({"": (done, resolved)})[""]
    return list(group[: done + missing])


def make_plan(subject: SampledSubject, scaffold: SampledScaffold, attempt: int, request: AttemptRequest) -> RolloutPlan:
    """Return the plan of an attempt; `attempt` is 1-based."""
    model = request.model if scaffold.uses_model else ""
    return RolloutPlan(
        task=subject.id,
        name=subject.name,
        scaffold=scaffold.name,
        scaffold_version=scaffold.version,
        model=model,
        checkpoint=request.checkpoint if scaffold.uses_model else "",
        sampling=dict(request.sampling) if scaffold.uses_model else {},
        attempt=attempt,
        system=request.system if scaffold.uses_model else "",
    )
