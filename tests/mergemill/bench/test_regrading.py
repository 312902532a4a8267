"""Submissions of runs graded again: the new scores count, the first ones are kept, and nothing is done twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from core.errors import InputError, Transient
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.bench.metrics import ResolvedMetric, ValueMetric
from mergemill.bench.regrading import RegradedRun, RunRegrader
from mergemill.bench.reports import ReportRequest, build_report, list_remarks
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.running import BenchRequest, run_bench
from mergemill.bench.sets import freeze
from mergemill.execution import grader_version
from mergemill.execution.grader_version import compute_grader_version, compute_scenario_grader_version
from mergemill.execution.progress import CountProgress
from mergemill.grading.grading import TaskGrader, make_unscored
from mergemill.grading.progress import ScoreProgress
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.queries.bench import resolve_run
from taskdb.records import Task
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.rollouts import Rollout
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.bench.making import LIMITS, add_run, find_row, make_scored
from tests.mergemill.bench.making import report as report_runs
from tests.mergemill.bench.reviews import FALSE, FOUND, KNOWN, add_review_task, encode_review
from tests.samplers.worlds.database import add_world, make_settings
from tests.samplers.worlds.local_server import needs_root, open_local_server
from tests.taskdb.lineages import make_url
from worlds.examples.loading import load_example_scenarios, load_example_world

VALUE = 0.75
"""Average reward of the finding: 1 for two reviews, and 0.25 for the control."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(db=make_url(tmp_path), store=tmp_path / "mergemill-store")


@pytest.fixture
def tasks(settings: Settings, tmp_path: Path) -> list[Task]:
    """Three reviews, the set `first`; the last one is a control."""
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")
    with Store.open(settings.storage.db) as store:
        made = [add_review_task(store, artifacts, number, () if number == 3 else KNOWN) for number in (1, 2, 3)]
        freeze(store, "first", made, LIMITS, held_out=False)
    return made


def add_reviews(settings: Settings, tasks: list[Task], folder: Path, **fields: Any) -> BenchRun:
    """Add a run that finds the known defect in each file, whose scores are 0 by the grader `old`."""
    submission = open_artifacts(settings.storage).put(encode_review(FOUND))
    with Store.open(settings.storage.db) as store:
        bench_set = store.load_all(BenchSet)[-1]
    given: dict[str, Any] = {"grader": "old", "submission": submission, "runs": 1}
    return add_run(folder, bench_set, tasks, lambda *_: 0.0, **given | fields)


def regrade(settings: Settings, name: str, **fields: Any) -> RegradedRun:
    with Store.open(settings.storage.db) as store:
        regrader = RunRegrader(
            grader=TaskGrader(store, settings),
            make_progress=lambda total: ScoreProgress(CountProgress("submission", total)),
            **fields,
        )
        return regrader.regrade(resolve_run(store, name))


def read_scores(settings: Settings) -> set[tuple[float | None, str]]:
    """Return value and grader of all scores that rollouts were stored with."""
    with Store.open(settings.storage.db) as store:
        return {(rollout.value, rollout.score.grader) for rollout in store.load_all(Rollout) if rollout.score}


def test_new_scores_count_and_the_first_ones_are_kept(settings: Settings, tasks: list[Task], tmp_path: Path) -> None:
    first = add_reviews(settings, tasks, tmp_path)
    before = report_runs(tmp_path, first)
    result = regrade(settings, "first/react/m")
    assert (result.n_scored, result.n_regraded, result.n_changed) == (3, 3, 3)
    assert result.run.graders == (compute_grader_version(),)
    assert result.run.rollouts == first.rollouts
    assert read_scores(settings) == {(0.0, "old")}
    made = report_runs(tmp_path, result.run)
    assert find_row(made["figures"], column="resolved", group="")["mean"] == round(2 / 3, 6)
    assert find_row(made["figures"], column="value", group="")["mean"] == VALUE
    described = made["runs"][0]
    assert (described["graders"], described["regraded"], described["flags"]) == ([compute_grader_version()], 3, [])
    assert "first/react/m: 3 rollouts graded again since" in list_remarks(made)
    assert report_runs(tmp_path, first) == before


def test_nothing_is_graded_twice_and_the_report_stays_as_it_is(
    settings: Settings, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(settings, tasks, tmp_path)
    add_reviews(settings, tasks, tmp_path, checkpoint="b")
    run = regrade(settings, "first/react/m").run
    made = json.dumps(report_runs(tmp_path, run))
    monkeypatch.setattr(TaskGrader, "grade", lambda *_: pytest.fail("it is graded again"))
    again = regrade(settings, "first/react/m")
    assert (again.n_regraded, again.run.id) == (0, run.id)
    assert json.dumps(report_runs(tmp_path, again.run)) == made
    assert regrade(settings, "first/react/m@b").n_regraded == 3  # equal submissions, graded for the first run


def test_a_run_of_the_present_version_is_left_as_it_is(settings: Settings, tasks: list[Task], tmp_path: Path) -> None:
    run = add_reviews(settings, tasks, tmp_path, grader=compute_grader_version())
    before = report_runs(tmp_path, run)
    result = regrade(settings, "first/react/m")
    assert (result.n_scored, result.n_regraded, result.run.id) == (3, 0, run.id)
    assert report_runs(tmp_path, result.run) == before


def test_the_command_makes_runs_comparable(settings: Settings, tasks: list[Task], tmp_path: Path) -> None:
    add_reviews(settings, tasks, tmp_path, checkpoint="a")
    add_reviews(settings, tasks, tmp_path, checkpoint="b", grader="")
    submission = open_artifacts(settings.storage).put(encode_review(FALSE))
    add_reviews(settings, tasks, tmp_path, checkpoint="c", submission=submission, grader=compute_grader_version())
    options = ("--db", settings.storage.db)
    words = ("bench", "report", "first/react/m@a", "first/react/m@b", "--against", "first/react/m@c", *options)
    stopped = run_mergemill(*words, cwd=tmp_path)
    assert stopped.exit_code == 3
    assert "mergemill bench regrade first/react/m@a first/react/m@b" in " ".join(stopped.stderr.split())
    done = run_mergemill("bench", "regrade", "first/react/m@a", "first/react/m@b", *options, cwd=tmp_path)
    assert (done.exit_code, done.stdout.count("3 of 3 rollouts graded again, 3 with another value")) == (0, 2)
    compared = run_mergemill(*words, "--format", "json", cwd=tmp_path)
    rows = json.loads(compared.stdout)["differences"]
    assert {row["difference"] for row in rows if row["column"] == "value"} == {VALUE}


def test_the_same_command_grades_what_failed(
    settings: Settings, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(settings, tasks, tmp_path)
    grade = TaskGrader.grade_persistently

    def fail_once(grader: TaskGrader, submission: Any) -> Any:
        fails = submission.task.name == tasks[1].name
        return make_unscored(submission.task.name, "the disk is full") if fails else grade(grader, submission)

    with monkeypatch.context() as patch:
        patch.setattr(TaskGrader, "grade_persistently", fail_once)
        result = regrade(settings, "first/react/m")
    assert (result.n_regraded, result.failures) == (2, {75: 1})
    with pytest.raises(Transient, match="1 rollouts not graded again"):
        result.raise_failures()
    assert report_runs(tmp_path, result.run)["runs"][0]["flags"] == ["mixed-graders"]
    result = regrade(settings, "first/react/m")
    assert (result.n_regraded, result.failures.total()) == (1, 0)
    assert report_runs(tmp_path, result.run)["runs"][0]["flags"] == []


def test_a_run_that_goes_on_keeps_its_new_scores(
    settings: Settings, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = {"scaffold": "noop", "model": ""}
    run = add_reviews(settings, tasks, tmp_path, **agent)
    regraded = regrade(settings, "first/noop").run
    monkeypatch.setattr("mergemill.bench.running.sample_subjects", lambda *_, **__: 0)
    with Store.open(settings.storage.db) as store:
        bench_set = store.get(BenchSet, run.parent)
        request = BenchRequest(bench_set=bench_set, scaffolds=("noop",), model="", runs=1)
        (same,), _ = run_bench(store, request, settings, SamplingProgress)
        assert same.id == regraded.id
        more = BenchRequest(bench_set=bench_set, scaffolds=("noop",), model="", runs=2)
        store.add(*(make_scored(task, 2, 0.0, grader="later", **agent) for task in tasks))
        (longer,), _ = run_bench(store, more, settings, SamplingProgress)
    assert (len(longer.rollouts), longer.graders) == (6, ("later", "old"))  # another run, of two rollouts each


def test_a_subject_of_a_file_without_a_row_is_empty_again(
    settings: Settings, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(settings, tasks, tmp_path, scaffold="predictions", model="theirs", submission=None)
    monkeypatch.setattr(TaskGrader, "grade", lambda *_: pytest.fail("nothing was submitted"))
    result = regrade(settings, "first/predictions/theirs")
    assert (result.n_regraded, result.n_changed) == (3, 0)


@needs_root
def test_scenarios_are_graded_by_the_state_that_their_calls_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(tmp_path)
    artifacts = open_artifacts(settings.storage)
    with Store.open(settings.storage.db) as store:
        definitions = load_example_scenarios("library_loans")[:2]
        scenarios = add_world(store, artifacts, load_example_world("library_loans"), definitions)
        bench_set = freeze(store, "worlds", scenarios, LIMITS, held_out=False)
        request = BenchRequest(bench_set=bench_set, scaffolds=("oracle", "noop"), model="", runs=1)
        runs, _ = run_bench(store, request, settings, SamplingProgress, open_local_server)
    before = report_worlds(settings, runs)
    monkeypatch.setattr(grader_version, "SCENARIO_PACKAGES", ("guest",))
    for run, name in zip(runs, ("worlds/oracle", "worlds/noop"), strict=True):
        result = regrade(settings, name, open_server=open_local_server)
        assert (result.n_scored, result.n_regraded, result.n_changed) == (2, 2, 0)
        assert result.run.graders == (compute_scenario_grader_version(),) != run.graders
        assert report_worlds(settings, [result.run])["figures"] == [
            row for row in before["figures"] if row["run"] == name
        ]


@needs_root
def test_calls_that_lead_elsewhere_keep_their_score(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    artifacts, notes = open_artifacts(settings.storage), list[str]()
    with Store.open(settings.storage.db) as store:
        definitions = load_example_scenarios("library_loans")[:1]
        scenarios = add_world(store, artifacts, load_example_world("library_loans"), definitions)
        bench_set = freeze(store, "worlds", scenarios, LIMITS, held_out=False)
    state = {"exchange": 0, "tree": "0" * 64}
    fields: dict[str, Any] = {"submission": artifacts.put_text("[]"), "states": (state,), "grader": "old", "runs": 1}
    run = add_run(tmp_path, bench_set, scenarios, lambda *_: 1.0, url=settings.storage.db, **fields)
    result = regrade(settings, "worlds/react/m", open_server=open_local_server, notify=notes.append)
    assert (result.n_regraded, result.run.id) == (0, run.id)
    assert notes == [f"attempt 1, {scenarios[0].name}: its calls lead to another state than they did (run it again)"]
    with pytest.raises(InputError, match="1 rollouts could not be graded again"):
        result.raise_failures()


def report_worlds(settings: Settings, runs: list[BenchRun]) -> dict[str, Any]:
    with Store.open(settings.storage.db) as store:
        request = ReportRequest(runs=runs, metrics=(ResolvedMetric(), ValueMetric()))
        return build_report(store, ReviewMaterials.open(settings.storage, open_artifacts(settings.storage)), request)
