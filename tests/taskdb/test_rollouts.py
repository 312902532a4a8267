"""Rollouts in the database: identity, pass rates of tasks, and the views of rollouts and trajectories."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from scipy.stats import binomtest

from taskdb.queries import readonly
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import parse_filters
from taskdb.queries.tasks import TaskFilters
from taskdb.records import Score, Task
from taskdb.records.difficulty import DifficultyBand, compute_difficulty
from taskdb.records.rollouts import (
    Rollout,
    RolloutPlan,
    RolloutStatus,
    Trajectory,
    TrajectoryRole,
    TrajectorySelection,
)
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url


def make_rollout(task: Task, attempt: int = 1, value: float | None = 1.0, **fields: Any) -> Rollout:
    plan = RolloutPlan(
        task=task.id, name=task.name, scaffold="react", scaffold_version="1", model="org/m", attempt=attempt
    )
    score = None
    if value is not None:
        score = Score(task=task.name, value=value, resolved=value == 1.0, f2p_rate=value, p2p_rate=1.0)
    given: dict[str, Any] = {"scaffold": "react", "model": "org/m", "status": RolloutStatus.DONE} | fields
    return Rollout(
        parent=task.id,
        name=task.name,
        plan=plan.key,
        scaffold_version="1",
        attempt=attempt,
        score=score,
        value=value,
        resolved=value == 1.0,
        **given,
    )


def make_trajectory(rollout: Rollout, root: int = 0, **fields: Any) -> Trajectory:
    given: dict[str, Any] = {"role": TrajectoryRole.MAIN, "value": rollout.value, "metrics": {}} | fields
    return Trajectory(
        parent=rollout.id,
        name=rollout.name,
        root=root,
        builder=1,
        scaffold=rollout.scaffold,
        model=rollout.model,
        attempt=rollout.attempt,
        n_requests=2,
        n_branches=1,
        prompt_tokens=10,
        completion_tokens=5,
        content="c" * 64,
        has_token_ids=False,
        **given,
    )


def test_a_rollout_is_identified_by_its_plan_and_not_by_how_it_ended(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store)
        first, again = make_rollout(task), make_rollout(task, value=0.0, seconds=9.0)
        assert store.add(first) == [first]
        assert store.add(again) == []
        assert store.get(Rollout, again.id).value == 1.0
        retried = make_rollout(task, retry=1)
        assert retried.plan == first.plan
        assert store.add(retried) == [retried]


def test_of_two_runs_of_one_attempt_one_is_stored_with_its_own_trajectories(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store, 1)

    def run(value: float, attempt: int) -> Rollout:
        rollout = make_rollout(task, attempt, value)
        parts = [make_trajectory(rollout, root) for root in range(1 + int(value))]  # the one that passed has two
        with Store.open(db) as own:
            start.wait()
            return own.add_once(rollout, *parts)

    for attempt in range(1, 9):
        start = Barrier(2)
        with ThreadPoolExecutor(2) as threads:
            returned = list(threads.map(run, (0.0, 1.0), (attempt, attempt)))
        with Store.open(db) as store:
            stored = store.get(Rollout, returned[0].id)
            parts = [trajectory for trajectory in store.load_all(Trajectory) if trajectory.parent == stored.id]
        assert [trajectory.value for trajectory in returned] == [stored.value] * 2
        assert [part.value for part in parts] == [stored.value] * (1 + int(stored.value or 0))


def test_plans_differ_by_every_setting() -> None:
    plan = RolloutPlan(task="t", name="n", scaffold="react", scaffold_version="1", model="m", attempt=1)
    changes: list[dict[str, Any]] = [
        {"task": "u"},
        {"scaffold": "codex"},
        {"scaffold_version": "2"},
        {"model": "k"},
        {"checkpoint": "step-5"},
        {"sampling": {"temperature": 0.5}},
        {"attempt": 2},
        {"system": "Be brief."},
    ]
    # Plans of databases without texts for system prompts keep their keys.
    assert plan.key == "f2a3560e675be12977c6043ccbe82f718f6045cb4f9961de05423b3acd49cb81"
    assert len({plan.key, *(plan.model_copy(update=change).key for change in changes)}) == len(changes) + 1


def test_pass_rates_of_rollouts_are_facts_of_their_task(db: str) -> None:
    with Store.open(db) as store:
        task, other = add_lineage(store, 1), add_lineage(store, 2)
        store.add(*(make_rollout(task, attempt, value) for attempt, value in enumerate((1.0, 0.0, 0.0, 0.5), 1)))
        store.add(make_rollout(task, 5, None, status=RolloutStatus.INFRASTRUCTURE))
        store.add(make_rollout(task, 1, 1.0, checkpoint="step-8"))
        rows = {row["name"]: row for row in queries.list_tasks(store, TaskFilters(), columns=["name", "difficulty"])}
        rates = json.loads(rows[task.name]["difficulty"])
        interval = binomtest(1, 4).proportion_ci(0.95, method="wilson")
        assert rates["org/m/react"] == {
            "n": 4,
            "c": 1,
            "low": pytest.approx(interval.low, abs=1e-4),
            "high": pytest.approx(interval.high, abs=1e-4),
        }
        assert rates["org/m@step-8/react"]["n"] == 1
        assert rows[other.name]["difficulty"] == "{}"
        tasks = queries.list_tasks(store, parse_filters({"difficulty": "org/m/react:0.2:0.3"}))
        assert [row["name"] for row in tasks] == [task.name]
        assert not queries.list_tasks(store, parse_filters({"difficulty": "org/m/react:0.3:"}))
        counted = list(readonly.run_query(store, "SELECT n, c FROM difficulty WHERE checkpoint = ''"))
        assert counted == [{"n": 4, "c": 1}]


def test_the_newest_selection_of_a_trajectory_counts(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        rollout = make_rollout(add_lineage(store))
        trajectories = [make_trajectory(rollout, root) for root in range(2)]
        store.add(rollout, *trajectories)
        for at, selected in (("1", True), ("2", False)):
            reason = None if selected else "loops"
            store.add(
                TrajectorySelection(
                    parent=trajectories[0].id,
                    name=rollout.name,
                    selected=selected,
                    reason=reason,
                    value=None,
                    rules="r",
                    at=at,
                )
            )
        rows = list(readonly.run_query(store, "SELECT root, selected, refused_by FROM trajectories ORDER BY root"))
        assert rows == [
            {"root": 0, "selected": 0, "refused_by": "loops"},
            {"root": 1, "selected": None, "refused_by": None},
        ]


@pytest.mark.parametrize(
    ("n", "c", "band"),
    [
        (3, 0, DifficultyBand.UNKNOWN),
        (4, 0, DifficultyBand.NEVER),
        (4, 1, DifficultyBand.EDGE),
        (4, 2, DifficultyBand.EDGE),
        (4, 3, DifficultyBand.UNSTABLE),
        (16, 16, DifficultyBand.ALWAYS),
    ],
)
def test_the_band_follows_from_the_counts(n: int, c: int, band: DifficultyBand) -> None:
    assert compute_difficulty(n, c).band is band


def test_pass_at_k_is_the_share_of_all_choices_of_k_attempts() -> None:
    outcomes = [True] * 3 + [False] * 4
    difficulty = compute_difficulty(7, 3)
    for k in range(1, 8):
        choices = list(combinations(outcomes, k))
        assert difficulty.estimate_pass_at(k) == pytest.approx(sum(map(any, choices)) / len(choices))
        assert difficulty.estimate_pass_all(k) == pytest.approx(sum(map(all, choices)) / len(choices))
    assert difficulty.estimate_pass_at(8) is None
