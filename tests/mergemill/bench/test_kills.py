"""A run on four kinds of subjects with two scaffolds that is killed again and again, and its exact figures.

Rollouts have scripted values here; drivers of real ones are killed in `tests/samplers`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.bench import running
from mergemill.bench.metrics import ResolvedMetric, ValueMetric
from mergemill.bench.reports import ReportRequest, build_report
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.running import BenchRequest, SubjectGroup
from mergemill.bench.sets import freeze
from taskdb.artifacts import open_artifacts
from taskdb.queries.bench import find_results, list_runs, list_sets
from taskdb.records import Kind, Task
from taskdb.records.rollouts import Rollout
from taskdb.records.worlds import Scenario
from taskdb.store import Store
from tests.mergemill.bench.making import LIMITS, make_scored
from tests.samplers.worlds.database import add_world, make_settings
from tests.taskdb.lineages import add_lineage
from worlds.examples.loading import load_example_scenarios, load_example_world

KILLS = 20
RUNS = 4
KINDS = (Kind.BUGFIX, Kind.REVIEW, Kind.TEST_WRITING)
SKILLS = {
    "oracle": {
        "bugfix": (1, 1, 1, 1),
        "review": (1, 0.5, 1, 0.5),
        "test-writing": (1, 1, 0, 1),
        "scenario": (1, 0, 0, 0),
    },
    "noop": {"bugfix": (0, 0, 0, 0), "review": (0.25, 0, 0, 0), "test-writing": (0, 0, 0, 0), "scenario": (0, 0, 0, 1)},
}
"""Scaffold -> kind -> value of each attempt."""


def make_set(folder: Path) -> Settings:
    """Make a database with a set of a subject of each kind."""
    settings = make_settings(folder)
    artifacts = open_artifacts(settings.storage)
    with Store.open(settings.storage.db) as store:
        subjects: list[Task | Scenario] = [
            add_lineage(store, number, task_fields={"kind": kind, "name": f"ada__greet-{number}.{kind.value}"})
            for number, kind in enumerate(KINDS, 1)
        ]
        scenarios = load_example_scenarios("library_loans")[:1]
        subjects += add_world(store, artifacts, load_example_world("library_loans"), scenarios)
        freeze(store, "four", subjects, LIMITS, held_out=False)
    return settings


def run_scripted(settings: Settings, progress: Connection | None = None) -> None:
    """Run the set, whose rollouts have the values of SKILLS; each is reported when it is stored, and then permitted."""

    def sample(*groups: Any, **_: object) -> int:
        request: BenchRequest = groups[2]
        for group in groups[:2]:
            for rollout in list_missing(group, request):
                store.add(rollout)
                if progress is not None:
                    progress.send_bytes(b"stored")
                    progress.recv_bytes()
        return 0

    def list_missing(group: SubjectGroup, request: BenchRequest) -> list[Rollout]:
        """Return the rollouts that are not stored, in the order of their attempts."""
        rollouts = []
        for scaffold in group.scaffolds:
            plans = running._list_plans(group, scaffold, request)
            known = find_results(store, [plan.key for plan in plans])
            for plan in sorted(plans, key=lambda plan: plan.attempt):
                kind = next(subject.kind for subject in group.subjects if subject.id == plan.task)
                value = SKILLS[plan.scaffold][kind][plan.attempt - 1]
                fields = {"plan": plan.key, "scaffold": plan.scaffold, "scaffold_version": plan.scaffold_version}
                if plan.key not in known:
                    record = store.get(Scenario if kind == "scenario" else Task, plan.task)
                    rollouts.append(make_scored(record, plan.attempt, float(value), model="", **fields))
        return rollouts

    with Store.open(settings.storage.db) as store:
        (bench_set,) = list_sets(store)
        request = BenchRequest(bench_set=bench_set, scaffolds=tuple(SKILLS), model="", runs=RUNS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "sample_subjects", sample)
            running.run_bench(store, request, settings, SamplingProgress)


def kill_after(settings: Settings, rollouts: int, moment: float) -> int:
    """Run the set in a process of its own, and kill that a moment after it has stored so many rollouts.

    It is about to store the next one then, or the records of its runs. Returns its exit code.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    driver = context.Process(target=run_scripted, args=(settings, theirs))
    driver.start()
    theirs.close()
    for _ in range(rollouts):
        assert ours.recv_bytes() == b"stored"
        ours.send_bytes(b"go on")
    time.sleep(moment)
    assert driver.pid is not None
    os.kill(driver.pid, signal.SIGKILL)
    driver.join()
    assert driver.exitcode is not None
    return driver.exitcode


def report(settings: Settings) -> dict[str, Any]:
    with Store.open(settings.storage.db, create=False) as store:
        request = ReportRequest(runs=list_runs(store), metrics=(ResolvedMetric(), ValueMetric()), by=("kind",))
        return build_report(store, ReviewMaterials.open(settings.storage, open_artifacts(settings.storage)), request)


def test_a_run_on_four_kinds_that_is_killed_has_the_same_report_and_exact_means(tmp_path: Path) -> None:
    calm = make_set(tmp_path / "calm")
    shutil.copytree(tmp_path / "calm", tmp_path / "stormy")
    stormy = make_settings(tmp_path / "stormy")
    run_scripted(calm)
    expected = report(calm)
    assert [(row["scored"], row["planned"]) for row in expected["runs"]] == [(4 * RUNS, 4 * RUNS)] * 2
    means = {(row["run"], row["column"], row["group"]): row["mean"] for row in expected["figures"]}
    for scaffold, kinds in SKILLS.items():
        name = f"four/{scaffold}"
        averages = {kind: sum(values) / RUNS for kind, values in kinds.items()}
        assert means[name, "value", ""] == sum(averages.values()) / 4
        assert means[name, "resolved", ""] == sum(values.count(1) for values in kinds.values()) / RUNS / 4
        assert {kind: means[name, "value", f"kind={kind}"] for kind in kinds} == averages
    for kill in range(KILLS - 1):
        assert kill_after(stormy, int(kill % 4 == 0), kill % 5 / 500) == -signal.SIGKILL
    with Store.open(stormy.storage.db, create=False) as store:
        stored = len(store.load_all(Rollout))
        assert 5 <= stored < 2 * 4 * RUNS
        assert list_runs(store) == []
    # The last driver stores all that is left, and is killed while it stores its runs, or just after.
    assert kill_after(stormy, 2 * 4 * RUNS - stored, 0) in (0, -signal.SIGKILL)
    run_scripted(stormy)
    assert json.dumps(report(stormy)) == json.dumps(expected)
