"""What is sampled, and which rollouts of it are pending. The database is the queue.

A plan is pending until a rollout of it is stored that ended by the agent's doing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import InputError
from samplers.scaffolds.base import Scaffold
from taskdb import queries
from taskdb.records import Task
from taskdb.rollouts import RolloutPlan
from taskdb.selection import TaskFilters
from taskdb.store import Store


@dataclass(frozen=True, kw_only=True)
class SampleRequest:
    """What is sampled: tasks by scaffolds by attempts."""

    filters: TaskFilters
    scaffolds: tuple[Scaffold, ...]
    model: str
    attempts: int
    checkpoint: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    uncertified: bool = False
    """Whether tasks that are not certified may be sampled."""


@dataclass(frozen=True, kw_only=True)
class PendingRollout:
    """A plan that has no result yet. `retry`: number of its infrastructure failures so far."""

    plan: RolloutPlan
    task: Task
    scaffold: Scaffold
    retry: int


def select_tasks(store: Store, request: SampleRequest) -> list[Task]:
    """Return the tasks that the filters select, by name.

    Raises:
        InputError: none is selected, or one that is named is not certified.
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


def plan_rollouts(tasks: Sequence[Task], request: SampleRequest) -> list[PendingRollout]:
    """Return all rollouts of a request: first attempts of all tasks first, so that an early stop leaves breadth."""
    return [
        PendingRollout(plan=_make_plan(task, scaffold, attempt, request), task=task, scaffold=scaffold, retry=0)
        for attempt in range(1, request.attempts + 1)
        for task in tasks
        for scaffold in request.scaffolds
    ]


def _make_plan(task: Task, scaffold: Scaffold, attempt: int, request: SampleRequest) -> RolloutPlan:
    model = request.model if scaffold.uses_model else ""
    return RolloutPlan(
        task=task.id,
        name=task.name,
        scaffold=scaffold.name,
        scaffold_version=scaffold.version,
        model=model,
        checkpoint=request.checkpoint if scaffold.uses_model else "",
        sampling=dict(request.sampling) if scaffold.uses_model else {},
        attempt=attempt,
    )


def list_pending(store: Store, planned: Sequence[PendingRollout]) -> list[PendingRollout]:
    """Return the rollouts without a result, with the number of their infrastructure failures."""
    found = queries.count_rollouts(store, [one.plan.key for one in planned])
    return [
        replace(one, retry=failed) for one in planned for done, failed in [found.get(one.plan.key, (0, 0))] if not done
    ]
