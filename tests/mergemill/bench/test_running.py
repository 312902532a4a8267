"""Runs on sets: scenarios in a server of worlds without a container, with scripted models; completion and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from core.errors import InputError, UsageError
from core.settings.group import replace_values
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.bench.metrics import ResolvedMetric
from mergemill.bench.reports import ReportRequest, build_report
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.running import BenchRequest, SubjectGroup, run_bench
from mergemill.bench.sets import freeze
from mergemill.execution import grader_version
from mergemill.execution.grader_version import compute_scenario_grader_version
from taskdb.artifacts import open_artifacts
from taskdb.queries.bench import list_runs
from taskdb.queries.worlds import find_current_scenarios
from taskdb.records import Task
from taskdb.records.bench import BenchLimits, BenchRun, BenchSet
from taskdb.records.rollouts import Rollout, RolloutStatus
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.bench.making import make_scored, make_set
from tests.mergemill.bench.test_sets import replace_task
from tests.samplers.scripted_model import ScriptedModel
from tests.samplers.worlds.database import make_database
from tests.samplers.worlds.local_server import needs_root, open_local_server
from tests.samplers.worlds.player import AGENT, ScenarioPlayer
from tests.taskdb.lineages import make_url

LIMITS = BenchLimits(turns=50, seconds=600.0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a database with the example worlds, whose scenarios are the set `worlds`."""
    settings = make_database(tmp_path)
    with Store.open(settings.storage.db) as store:
        freeze(store, "worlds", find_current_scenarios(store, certified=True), LIMITS, held_out=True)
    return settings


def load_set(store: Store) -> BenchSet:
    return store.load_all(BenchSet)[-1]


def run_set(settings: Settings, *scaffolds: str, runs: int = 2, **fields: Any) -> tuple[list[BenchRun], int]:
    with Store.open(settings.storage.db) as store:
        request = BenchRequest(bench_set=load_set(store), scaffolds=scaffolds, runs=runs, **{"model": AGENT} | fields)
        return run_bench(store, request, settings, SamplingProgress, open_local_server)


def report(settings: Settings, runs: list[BenchRun], against: BenchRun | None = None) -> dict[str, Any]:
    with Store.open(settings.storage.db) as store:
        request = ReportRequest(runs=runs, metrics=(ResolvedMetric(),), against=against)
        return build_report(store, ReviewMaterials.open(settings.storage, open_artifacts(settings.storage)), request)


def read_means(made: Mapping[str, Any]) -> dict[str, float]:
    return {row["run"]: row["mean"] for row in made["figures"] if row["column"] == "resolved"}


@needs_root
def test_scaffolds_of_known_skill_have_exact_means(settings: Settings) -> None:
    runs, code = run_set(settings, "oracle", "noop", model="")
    assert (code, [len(run.rollouts) for run in runs]) == (0, [12, 12])
    made = report(settings, runs)
    assert read_means(made) == {"worlds/oracle": 1.0, "worlds/noop": 0.0}
    assert [described["flags"] for described in made["runs"]] == [["runs-identical"]] * 2
    again, code = run_set(settings, "oracle", "noop", model="")
    assert (code, [run.id for run in again]) == (0, [run.id for run in runs])
    assert report(settings, again) == made


@needs_root
def test_runs_by_two_versions_of_the_code_that_grades_are_not_compared(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base,), _ = run_set(settings, "oracle", model="", runs=1)
    (same,), _ = run_set(settings, "noop", model="", runs=1)
    version = compute_scenario_grader_version()
    assert base.graders == same.graders == (version,)
    (row,) = report(settings, [same], against=base)["differences"]
    assert row["difference"] == -1.0
    monkeypatch.setattr(grader_version, "SCENARIO_PACKAGES", ("guest",))
    with ScriptedModel(ScenarioPlayer()) as model:
        (later,), _ = run_set(replace_values(settings, {"upstream": model.url}), "tools", runs=1)
    assert later.graders != (version,)
    with pytest.raises(InputError, match="changed-grader: ") as raised:
        report(settings, [later], against=base)
    assert raised.value.advice == "mergemill bench regrade worlds/oracle"


@needs_root
def test_a_model_is_run_within_the_limits_of_the_set(settings: Settings) -> None:
    with ScriptedModel(ScenarioPlayer()) as model:
        (run,), code = run_set(replace_values(settings, {"upstream": model.url}), "tools", runs=1)
    assert (code, run.model, run.scaffold, len(run.rollouts)) == (0, AGENT, "tools", 6)
    assert read_means(report(settings, [run])) == {f"worlds/tools/{AGENT}": 1.0}


@needs_root
def test_an_interrupted_run_is_completed_by_the_same_request(settings: Settings) -> None:
    runs, _ = run_set(settings, "oracle", model="", runs=2)
    whole = report(settings, runs)
    with Store.open(settings.storage.db) as store, store.write_transaction() as connection:
        for table in ("trajectory", "bench_run"):
            connection.exec_driver_sql(f"DELETE FROM {table}")  # noqa: S608
        connection.exec_driver_sql("DELETE FROM rollout WHERE seq % 3 = 0")
    with Store.open(settings.storage.db) as store:
        assert 0 < len(store.load_all(Rollout)) < 12
        assert list_runs(store) == []
    completed, code = run_set(settings, "oracle", model="", runs=2)
    assert (code, report(settings, completed)) == (0, whole)


def sample_by_hand(
    monkeypatch: pytest.MonkeyPatch, store: Store, tasks: list[Task], failing: set[tuple[str, int]]
) -> None:
    """Let sampling add a rollout of each task and attempt that has none; some end by an infrastructure failure."""

    def sample(group: SubjectGroup, *others: object, **named: object) -> int:
        request = others[1]
        assert isinstance(request, BenchRequest)
        ids = {task.id: task for task in tasks}
        for subject in group.subjects:
            for attempt in range(1, request.runs + 1):
                fails = (subject.name, attempt) in failing
                fields: dict[str, Any] = {"scaffold": "noop", "model": ""}
                rollout = make_scored(ids[subject.id], attempt, None if fails else 1.0, **fields, retry=int(not fails))
                store.add(rollout)
        return 75 if failing else 0

    monkeypatch.setattr("mergemill.bench.running.sample_subjects", sample)


def test_failed_infrastructure_is_no_result_until_the_same_run_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench_set, tasks = make_set(tmp_path, 10)
    settings = Settings(db=make_url(tmp_path), store=tmp_path / "mergemill-store")
    lost = {(tasks[0].name, 1), (tasks[1].name, 2), (tasks[2].name, 4)}
    request = BenchRequest(bench_set=bench_set, scaffolds=("noop",), model="", runs=4)
    with Store.open(settings.storage.db) as store:
        sample_by_hand(monkeypatch, store, tasks, lost)
        (first,), code = run_bench(store, request, settings, SamplingProgress)
        assert (code, len(first.rollouts)) == (75, 37)
        (row,) = report(settings, [first])["figures"][:1]
        assert (row["mean"], row["bounds"]) == (1.0, [0.925, 1.0])
        sample_by_hand(monkeypatch, store, tasks, set())
        (second,), code = run_bench(store, request, settings, SamplingProgress)
        assert (code, len(second.rollouts)) == (0, 40)
        assert [run.id for run in list_runs(store)] == [second.id]
        statuses = [rollout.status for rollout in store.load_all(Rollout)]
    assert statuses.count(RolloutStatus.INFRASTRUCTURE) == 3
    assert report(settings, [second])["figures"][0]["bounds"] is None


def test_a_record_of_what_ran_is_left_by_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise InputError("the machine is gone")

    bench_set, tasks = make_set(tmp_path, 2)
    monkeypatch.setattr("mergemill.bench.running.sample_subjects", fail)
    request = BenchRequest(bench_set=bench_set, scaffolds=("noop",), model="", runs=1)
    settings = Settings(db=make_url(tmp_path))
    with Store.open(settings.storage.db) as store:
        store.add(make_scored(tasks[0], 1, 0.0, scaffold="noop", model=""))
        with pytest.raises(InputError, match="the machine is gone"):
            run_bench(store, request, settings, SamplingProgress)
        assert [len(run.rollouts) for run in list_runs(store)] == [1]


def test_a_changed_subject_stops_a_run_or_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench_set, tasks = make_set(tmp_path, 3)
    settings = Settings(db=make_url(tmp_path), store=tmp_path / "mergemill-store")
    with Store.open(settings.storage.db) as store:
        replace_task(store, tasks[0], hints="Look at the blanks.")
    done = run_mergemill("bench", "run", "first", "--scaffold", "noop", "--db", settings.storage.db, cwd=tmp_path)
    assert done.exit_code == 3
    assert f"changed-subject: {tasks[0].name}: its id is" in done.stderr
    with Store.open(settings.storage.db) as store:
        sample_by_hand(monkeypatch, store, tasks, set())
        request = BenchRequest(bench_set=bench_set, scaffolds=("noop",), model="", runs=1, changed="skip")
        (run,), _ = run_bench(store, request, settings, SamplingProgress)
    assert (run.left_out, len(run.rollouts)) == ((tasks[0].name,), 2)
    shown = run_mergemill("bench", "report", "first/noop", "--db", settings.storage.db, cwd=tmp_path)
    assert shown.stdout.startswith(f"1 of 3 subjects left out, changed-subject: {tasks[0].name}\n")


@pytest.mark.parametrize(
    ("words", "warns"),
    [
        (("--runs", "2", "--sampling", "temperature=0"), True),
        (("--sampling", "temperature=0.0"), True),
        (("--runs", "1", "--sampling", "temperature=0"), False),
        (("--runs", "2", "--sampling", "temperature=0.7"), False),
        (("--runs", "2"), False),
    ],
)
def test_several_runs_at_temperature_0_are_warned_of(tmp_path: Path, words: tuple[str, ...], warns: bool) -> None:
    db = make_url(tmp_path)
    with Store.open(db):
        done = run_mergemill("bench", "run", "none", "--scaffold", "noop", *words, "--db", db, cwd=tmp_path)
    assert (done.exit_code, "runs at temperature 0 are likely to be equal" in done.stderr) == (3, warns)


def test_a_run_keeps_its_cutoff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench_set, tasks = make_set(tmp_path, 2)
    settings = Settings(db=make_url(tmp_path), store=tmp_path / "mergemill-store")
    with Store.open(settings.storage.db) as store:
        sample_by_hand(monkeypatch, store, tasks, set())
        for cutoff in ("", "2024-03-02"):
            request = BenchRequest(bench_set=bench_set, scaffolds=("noop",), model="", runs=1, cutoff=cutoff)
            run_bench(store, request, settings, SamplingProgress)
        assert [run.cutoff for run in list_runs(store)] == ["2024-03-02"]
    words = ("bench", "run", "first", "--scaffold", "noop", "--db", settings.storage.db, "--cutoff", "spring")
    done = run_mergemill(*words, cwd=tmp_path)
    assert (done.exit_code, "--cutoff: spring is no date" in done.stderr) == (2, True)
    shown = run_mergemill("bench", "report", "first/noop", "--db", settings.storage.db, cwd=tmp_path)
    assert "from 2024-03-02" in shown.stdout


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    bench_set, _ = make_set(tmp_path, 2)
    settings = Settings(db=make_url(tmp_path))
    for scaffold, line in (("moon", "unknown"), ("react", "--model is missing")):
        request = BenchRequest(bench_set=bench_set, scaffolds=(scaffold,), model="", runs=1)
        with Store.open(settings.storage.db) as store, pytest.raises(UsageError, match=line):
            run_bench(store, request, settings, SamplingProgress)
    words = ("bench", "run", "first", "--scaffold", "noop", "--db", settings.storage.db)
    assert run_mergemill(*words, "--changed", "maybe", cwd=tmp_path).exit_code == 2
    assert run_mergemill("bench", "run", "none", *words[3:], cwd=tmp_path).exit_code == 3
