"""Exports of sets: bundles, results, predictions and the report, each file with the canary; and lists of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from core.errors import InputError
from derivers.review import build_file_review, write_statement
from exporters import manifest
from mergemill.bench.export import BenchExport, export_bench, flatten_columns
from mergemill.bench.metrics import Metric, OpenValue, Values, load_metric
from mergemill.bench.sets import freeze, read_set
from mergemill.execution.grader_version import compute_grader_version
from mergemill.execution.progress import CountProgress
from mergemill.execution.reporter import Reporter
from miner.benchmarks import load_benchmarks
from samplers.imports.predictions import read_fields, read_prediction_rows
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.records import Kind, Task
from taskdb.records.bench import BenchRun, BenchSet, BenchSubject
from taskdb.records.oracles import Defect
from taskdb.records.rollouts import Rollout
from taskdb.records.worlds import Scenario
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.helpers import TinyRepo
from tests.mergemill.bench.making import LIMITS, add_run, make_scored
from tests.mergemill.bench.test_held_out import add_relative
from tests.mergemill.bench.test_sets import replace_task
from tests.samplers.worlds.database import add_world, make_settings
from tests.samplers.worlds.local_server import needs_root, open_local_server
from tests.taskdb.lineages import add_lineage
from training_data.canaries import MARKED
from worlds.examples.loading import load_example_scenarios, load_example_world

FILES = {"greet.py": "".join(f"line_{n} = {n}\n" for n in range(40))}
QUIET = Reporter(message=lambda _: None, open_progress=CountProgress)
FINDINGS = '{"findings": []}'


def add_review(store: Store, artifacts: Artifacts, number: int, repo: TinyRepo) -> Task:
    """Add a review task, whose material is a file with a defect in its third line."""
    defect = Defect(path="greet.py", first_line=3, last_line=3, claim="The third line is wrong.")
    oracle = build_file_review(FILES, [defect], artifacts)
    fields: dict[str, Any] = {
        "kind": Kind.REVIEW,
        "name": f"ada__greet-{number}.review-1",
        "oracle": oracle,
        "problem_statement": write_statement(oracle, "ada/greet", artifacts),
        "gold_patch": artifacts.put_text("gold"),
        "test_patch": artifacts.put_text(""),
        "eval_script": None,
        "plan": None,
        "image": "",
        "image_digest": "",
        "environment": "none",
        "FAIL_TO_PASS": (),
        "PASS_TO_PASS": (),
    }
    for text in (f"gold ada__greet-{number}", f"test ada__greet-{number}"):
        artifacts.put_text(text)
    source, base = f"git:{repo.path}", repo.git("rev-parse", "HEAD")
    return add_lineage(store, number, source=source, base_commit=base, task_fields=fields)


def make_set(folder: Path, *, with_world: bool = False) -> tuple[Settings, BenchSet, list[Task | Scenario]]:
    """Make a database with a held-out set of three reviews, and of two scenarios if wanted."""
    settings = make_settings(folder)
    artifacts = open_artifacts(settings.storage)
    repo = TinyRepo(folder / "greet")
    repo.commit("Greet", FILES)
    subjects: list[Task | Scenario] = []
    with Store.open(settings.storage.db) as store:
        subjects += [add_review(store, artifacts, number, repo) for number in (1, 2, 3)]
        if with_world:
            scenarios = load_example_scenarios("library_loans")
            subjects += add_world(store, artifacts, load_example_world("library_loans"), scenarios)[:2]
        return settings, freeze(store, "first", subjects, LIMITS, held_out=True), subjects


def export(settings: Settings, bench_set: BenchSet, out: Path, **fields: Any) -> dict[str, Any]:
    metrics = [load_metric(name) for name in ("resolved", "value", "parts", "effort")]
    request = BenchExport(bench_set=bench_set, out=out, metrics=metrics, **fields)
    return export_bench(request, settings, QUIET, open_local_server)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_of_rollouts_that_were_graded_again_have_the_first_score_as_well(tmp_path: Path) -> None:
    settings, bench_set, subjects = make_set(tmp_path)
    fields: dict[str, Any] = {"submission": open_artifacts(settings.storage).put_text(FINDINGS), "grader": "old"}
    add_run(tmp_path, bench_set, subjects, lambda *_: 1.0, runs=1, url=settings.storage.db, **fields)
    export(settings, bench_set, tmp_path / "before")
    done = run_mergemill("bench", "regrade", "first/react/m", "--db", settings.storage.db, cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    export(settings, bench_set, tmp_path / "after")
    graders = (("old", None, None), (compute_grader_version(), 1.0, "old"))
    for folder, value, expected in zip(("before", "after"), (1.0, 0.0), graders, strict=True):
        for row in read_rows(tmp_path / folder / "results.jsonl"):
            assert row["value"] == row["columns"]["value"] == value
            assert (row["grader"], row["first_value"], row["first_grader"]) == expected


@needs_root
def test_an_export_has_all_subjects_and_runs_and_the_canary(tmp_path: Path) -> None:
    settings, bench_set, subjects = make_set(tmp_path, with_world=True)
    submission = open_artifacts(settings.storage).put_text(FINDINGS)
    fields: dict[str, Any] = {"submission": submission, "parts": {"recall": 0.5}, "url": settings.storage.db}
    run = add_run(tmp_path, bench_set, subjects, lambda number, _: float(number == 0), runs=2, **fields)
    out = tmp_path / "out"
    summary = export(settings, bench_set, out)
    assert (summary["tasks"], summary["scenarios"], summary["runs"], summary["rows"]) == (3, 2, 1, 10)
    assert summary["left_out"] == {}
    assert read_set(out / "set.json") == bench_set
    assert manifest.check_manifest(out / "tasks") == []
    folders = sorted(path.name for path in (out / "tasks").iterdir() if (path / "task.toml").is_file())
    assert folders == [subject.name for subject in subjects[:3]]
    rows = read_rows(out / "results.jsonl")
    assert [(row["instance_id"], row["attempt"], row["value"]) for row in rows[:3]] == [
        ("ada__greet-1.review-1", 1, 1.0),
        ("ada__greet-1.review-1", 2, 1.0),
        ("ada__greet-2.review-1", 1, 0.0),
    ]
    task, row = subjects[0], rows[0]
    assert (row["subject_id"], row["run_id"], row["repo"]) == (task.id, run.id, "ada/greet")
    assert row["material_bytes"] is None
    assert (row["grading"], row["submission"]) == (bench_set.subjects[0].grading, submission)
    assert row["columns"]["parts.recall"] == 0.5
    assert row["columns"]["requests"] == 4.0
    calls, predictions, *second = sorted((out / "predictions").iterdir())
    predicted = [read_fields(row.value) for row in read_prediction_rows(predictions)]
    assert [(fields.instance, fields.form, fields.content) for fields in predicted] == [
        (subject.name, "review", FINDINGS.encode()) for subject in subjects[:3]
    ]
    assert ([row["calls"] for row in read_rows(calls)], len(second)) == ([FINDINGS] * 2, 2)
    report = (out / "report.md").read_text()
    done = run_mergemill(
        *("bench", "report", "first/react/m", "--format", "markdown", "--metric", "resolved,value,parts,effort"),
        *("--db", settings.storage.db),
        cwd=tmp_path,
    )
    assert report.partition("\n")[2].strip() == done.stdout.strip()
    check_canary(out, bench_set.canary)
    notes = json.loads((out / "worlds" / "manifest.json").read_text())["notes"]
    assert [(note.partition(":")[0], number) for note, number in notes.items()] == [("held-out", 2)]
    assert "may be training data" in (out / "README.md").read_text()


def check_canary(out: Path, canary: str) -> None:
    """Assert that each file of an export that can have a comment begins with its canary."""
    rows = [out / "results.jsonl", *(out / "predictions").iterdir()]
    bundled = [path for name in MARKED for path in out.rglob(name)]
    marked = [out / "set.json", out / "report.md", *rows, *bundled]
    assert len(marked) == 2 + 5 + 2 + 5 * 4
    for path in marked:
        assert any(canary in line for line in path.read_text().split("\n")[:2]), path


def test_an_export_is_the_same_each_time_and_replaces_only_exports(tmp_path: Path) -> None:
    settings, bench_set, subjects = make_set(tmp_path)
    out = tmp_path / "out"
    assert export(settings, bench_set, out)["runs"] == 0
    assert not (out / "results.jsonl").exists()
    add_run(tmp_path, bench_set, subjects, lambda *_: 1.0, runs=1, url=settings.storage.db)
    export(settings, bench_set, out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    export(settings, bench_set, out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="files that are of no exported set"):
        export(settings, bench_set, out)
    assert (out / "notes.txt").read_text() == "mine"


class SizeMetric(Metric):
    """Number of scored rollouts of the run."""

    amounts = frozenset({"size"})

    def begin_run(self, rollouts: Sequence[Rollout]) -> None:
        self.size = len(rollouts)

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        return {"size": float(self.size)}


def test_metrics_read_the_rollouts_of_each_run_before_its_rows(tmp_path: Path) -> None:
    settings, bench_set, subjects = make_set(tmp_path)
    for model, runs in (("a", 1), ("b", 2)):
        add_run(tmp_path, bench_set, subjects, lambda *_: 1.0, runs=runs, model=model, url=settings.storage.db)
    request = BenchExport(bench_set=bench_set, out=tmp_path / "out", metrics=[SizeMetric()])
    export_bench(request, settings, QUIET, open_local_server)
    sizes = {(row["run"], row["columns"]["size"]) for row in read_rows(tmp_path / "out" / "results.jsonl")}
    assert sizes == {("first/react/a", 3.0), ("first/react/b", 6.0)}


def test_tasks_and_scenarios_have_graders_of_their_own(tmp_path: Path) -> None:
    settings, bench_set, subjects = make_set(tmp_path, with_world=True)
    for model, graders in (("a", "ttt ss"), ("b", "ttt sr"), ("c", "ttu ss")):
        rollouts = [
            make_scored(subject, 1, 1.0, model=model, grader=grader)
            for subject, grader in zip(subjects, graders.replace(" ", ""), strict=True)
        ]
        run = BenchRun(
            parent=bench_set.id,
            name="first",
            scaffold="react",
            scaffold_version="1",
            model=model,
            runs=1,
            rollouts=tuple(rollout.id for rollout in rollouts),
        )
        with Store.open(settings.storage.db) as store:
            store.add(*rollouts, run)
    names = [f"first/react/{model}" for model in "abc"]
    made = run_mergemill("bench", "report", *names, "--format", "json", "--db", settings.storage.db, cwd=tmp_path).json
    assert [run["flags"] for run in made["runs"]] == [[], ["mixed-graders"], ["mixed-graders"]]
    assert [run["graders"] for run in made["runs"]] == [["s", "t"], ["r", "s", "t"], ["s", "t", "u"]]


def test_exported_predictions_get_scores_of_the_present_grader_which_can_be_compared(tmp_path: Path) -> None:
    settings, bench_set, subjects = make_set(tmp_path)
    findings = open_artifacts(settings.storage).put_text(FINDINGS)
    for scaffold, submission in (("noop", None), ("oracle", findings)):
        fields: dict[str, Any] = {"scaffold": scaffold, "model": "", "submission": submission, "grader": ""}
        add_run(tmp_path, bench_set, subjects, lambda *_: 0.0, runs=1, url=settings.storage.db, **fields)
    fields = {"url": settings.storage.db, "grader": compute_grader_version()}
    add_run(tmp_path, bench_set, subjects, lambda *_: 1.0, runs=1, **fields)
    given = ("--db", settings.storage.db, "--store", str(settings.storage.store))
    compare = ("bench", "report", "first/react/m", *given, "--format", "json", "--against")
    for name in ("first/noop", "first/oracle"):
        stopped = run_mergemill(*compare, name, cwd=tmp_path)
        assert stopped.exit_code == 3
        assert f"mergemill bench regrade {name}" in stopped.stderr
    export(settings, bench_set, tmp_path / "out")
    for path in (tmp_path / "out" / "predictions").glob("first-[no]*"):
        done = run_mergemill("bench", "score", "first", "--predictions", str(path), *given, cwd=tmp_path)
        assert done.exit_code == 0, done.stderr
    for name in ("first/noop", "first/oracle"):
        compared = run_mergemill(*compare, f"first/predictions/{name}", cwd=tmp_path)
        assert compared.exit_code == 0, compared.stderr
        assert {row["n"] for row in compared.json["differences"]} == {3}


def test_changed_subjects_stop_an_export_or_are_left_out(tmp_path: Path) -> None:
    settings, _, subjects = make_set(tmp_path)
    task = subjects[0]
    assert isinstance(task, Task)
    with Store.open(settings.storage.db) as store:
        replace_task(store, task, hints="Look at the third line.")
    words = ("bench", "export", "first", "--out", "out", "--db", settings.storage.db)
    stopped = run_mergemill(*words, cwd=tmp_path)
    assert (stopped.exit_code, (tmp_path / "out").exists()) == (3, False)
    assert f"changed-subject: {task.name}" in stopped.stderr
    done = run_mergemill(*words, "--changed", "skip", "--json", cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert (done.json["tasks"], list(done.json["left_out"].values())) == (2, [1])
    assert run_mergemill(*words, "--changed", "maybe", cwd=tmp_path).exit_code == 2
    assert run_mergemill(*words, "--metric", "moon", cwd=tmp_path).exit_code == 2
    assert run_mergemill("bench", "export", "none", *words[3:], cwd=tmp_path).exit_code == 3


def test_an_exported_set_is_a_list_of_benchmark_tasks(tmp_path: Path) -> None:
    settings, bench_set, subjects = make_set(tmp_path)
    add_run(tmp_path, bench_set, subjects, lambda *_: 1.0, runs=1, url=settings.storage.db)
    export(settings, bench_set, tmp_path / "out")
    for lists in (["out"], ["out/set.json"]):
        index = load_benchmarks([str(tmp_path / word) for word in lists])
        assert index.find_by_name("Ada/Greet", 2, "") is not None
        assert index.find_by_name("ada/greet", 4, "") is None
        # Results are no rows of the list: names of their tasks may end in other numbers.
        assert [entry.place for entry in index.numbers.values()] == [f"set.json:{number}" for number in (1, 2, 3)]
    listed = run_mergemill(
        *("tasks", "list", "--json", "--decontaminated", "out", "--db", settings.storage.db), cwd=tmp_path
    )
    assert listed.lines == []


def test_a_whole_export_of_tasks_lacks_variants_of_a_held_out_task(tmp_path: Path) -> None:
    settings, _, subjects = make_set(tmp_path)
    artifacts = open_artifacts(settings.storage)
    held_out = subjects[0]
    assert isinstance(held_out, Task)
    with Store.open(settings.storage.db) as store:
        others = [add_review(store, artifacts, number, TinyRepo(tmp_path / "greet")) for number in (4, 5)]
        add_relative(store, held_out, "review-2", variant_of=held_out.name)
    words = ("export", "--format", "harbor", "--allow-no-controls", "--db", settings.storage.db, "--out")
    done = run_mergemill(*words, "out", cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "4 tasks left out: held-out" in done.stderr
    listed = json.loads((tmp_path / "out" / "manifest.json").read_text())["tasks"]
    assert [task["name"] for task in listed] == [task.name for task in others]


def test_a_column_that_is_open_has_its_bounds_in_a_row() -> None:
    values = {"recall": 0.5, "value": None, "correct": OpenValue(0.0, 1.0)}
    assert flatten_columns(values) == {
        "recall": 0.5,
        "value": None,
        "correct": None,
        "correct.low": 0.0,
        "correct.high": 1.0,
    }
