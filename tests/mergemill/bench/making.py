"""Sets and runs made by hand: rollouts of given values, without agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from backends.base_trees import BaseTreeStore
from mergemill.bench.metrics import Metric, ResolvedMetric, ValueMetric
from mergemill.bench.reports import ReportRequest, build_report
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.sets import freeze
from taskdb.artifacts import Artifacts
from taskdb.records import Score, Task
from taskdb.records.bench import BenchLimits, BenchRun, BenchSet
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus
from taskdb.records.worlds import Scenario
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url

LIMITS = BenchLimits(turns=100, seconds=3600.0)
GetValue = Callable[[int, int], float | None]
"""Returns the value of a subject (its number, from 0) and attempt (1-based); None for a failure of infrastructure."""
GetVerdicts = Callable[[int, int], Mapping[str, str]]
"""Returns the verdicts of a subject and attempt: constraint -> state."""


def make_set(folder: Path, subjects: int, **fields: Any) -> tuple[BenchSet, list[Task]]:
    """Make a database with a set of tasks, each of another change; return it and the tasks by number."""
    with Store.open(make_url(folder)) as store:
        tasks = [add_lineage(store, number, **fields) for number in range(1, subjects + 1)]
        return freeze(store, "first", tasks, LIMITS, held_out=False), tasks


def make_scored(
    task: Task | Scenario, attempt: int, value: float | None, *, grader: str = "1", **fields: Any
) -> Rollout:
    given: dict[str, Any] = {"scaffold": "react", "model": "m", "checkpoint": ""} | fields
    named = {name: given[name] for name in ("scaffold", "model", "checkpoint")}
    plan = RolloutPlan(task=task.id, name=task.name, scaffold_version="1", attempt=attempt, **named)
    score = None
    own_parts = {name: given.pop(name, {}) for name in ("parts", "verdicts")}
    if value is not None:
        resolved = value == 1.0
        score = Score(
            task=task.name, value=value, resolved=resolved, f2p_rate=value, p2p_rate=1.0, grader=grader, **own_parts
        )
    own: dict[str, Any] = {
        "parent": task.id,
        "name": task.name,
        "plan": plan.key,
        "scaffold_version": "1",
        "attempt": attempt,
        "status": RolloutStatus.INFRASTRUCTURE if value is None else RolloutStatus.DONE,
        "score": score,
        "value": value,
        "resolved": value == 1.0,
        "requests": 3 + attempt,
    }
    return Rollout(**own | given)


def add_run(
    folder: Path,
    bench_set: BenchSet,
    tasks: Sequence[Task | Scenario],
    get_value: GetValue,
    *,
    runs: int = 4,
    url: str = "",
    get_verdicts: GetVerdicts = lambda *_: {},
    **fields: Any,
) -> BenchRun:
    """Add a run whose rollouts have given values; those without are no results."""
    rollouts = [
        make_scored(task, attempt, get_value(number, attempt), verdicts=get_verdicts(number, attempt), **fields)
        for number, task in enumerate(tasks)
        for attempt in range(1, runs + 1)
    ]
    results = [rollout for rollout in rollouts if rollout.status is not RolloutStatus.INFRASTRUCTURE]
    run = BenchRun(
        parent=bench_set.id,
        name=bench_set.name,
        scaffold=fields.get("scaffold", "react"),
        scaffold_version="1",
        model=fields.get("model", "m"),
        checkpoint=fields.get("checkpoint", ""),
        sampling=fields.get("sampling", {}),
        runs=runs,
        rollouts=tuple(sorted(rollout.id for rollout in results)),
    )
    with Store.open(url or make_url(folder)) as store:
        store.add(*rollouts, run)
    return run


def open_materials(folder: Path) -> ReviewMaterials:
    """Return the materials of reviews in the store of a folder."""
    store = folder / "mergemill-store"
    return ReviewMaterials(Artifacts(store / "artifacts"), BaseTreeStore(store / "trees"))


def report(folder: Path, *runs: BenchRun, metrics: Sequence[Metric] = (), **fields: Any) -> dict[str, Any]:
    """Return the report of some runs, by default of `resolved` and `value`."""
    chosen = metrics or (ResolvedMetric(), ValueMetric())
    request = ReportRequest(runs=runs, metrics=chosen, **fields)
    with Store.open(make_url(folder), create=False) as store:
        return build_report(store, open_materials(folder), request)


def find_row(rows: Sequence[dict[str, Any]], **wanted: object) -> dict[str, Any]:
    """Return the only row with these values."""
    (row,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return row
