"""Files of submissions of others: SWE-bench, SWT-Bench and reviews, and rows that cannot be graded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from core.errors import InputError
from mergemill.bench.metrics import PerformanceMetric
from mergemill.bench.scoring import ScoredFile, ScoreRequest, score_file
from mergemill.bench.sets import freeze
from mergemill.execution.grader_version import compute_grader_version
from mergemill.execution.progress import CountProgress
from mergemill.grading.grading import TaskGrader
from mergemill.grading.progress import ScoreProgress
from taskdb.artifacts import Artifacts
from taskdb.records import Kind, Score, Task
from taskdb.records.bench import BenchSet
from taskdb.records.oracles import PerformanceOracle, TestWritingOracle
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.bench.making import LIMITS, add_run, find_row, make_set, report
from tests.mergemill.bench.reviews import FALSE, FOUND, KNOWN, add_review_task
from tests.mergemill.bench.test_held_out import add_relative
from tests.mergemill.bench.test_sets import replace_task
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.worlds import make_scenario, make_world

FIX, TESTS = "diff --git a/greet.py b/greet.py\n", "diff --git a/test_greet.py b/test_greet.py\n"
WRITING = TestWritingOracle(mutants=(), variants=(), gold_spans=())
WRITING_NAME = "ada__greet-1.test-writing"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(db=make_url(tmp_path), store=tmp_path / "mergemill-store")


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    """A set `first`: two bug fixes, the tests of one of them, tests alone, and three reviews; scores of patches."""
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")
    writing = {"kind": Kind.TEST_WRITING, "oracle": WRITING}
    with Store.open(make_url(tmp_path)) as store:
        made = [
            add_lineage(store, 1),
            add_lineage(store, 2, task_fields={**writing, "name": "ada__greet-2.test-writing"}),
            add_lineage(store, 3),
            *(add_review_task(store, artifacts, n, () if n == 6 else KNOWN) for n in (4, 5, 6)),
        ]
        freeze(store, "first", made, LIMITS, held_out=False)
        for task, patch, value in ((made[0], FIX, 1.0), (made[1], TESTS, 0.5), (made[2], FIX, 0.0)):
            score = Score(
                task=task.name,
                value=value,
                resolved=value == 1.0,
                f2p_rate=1.0,
                p2p_rate=1.0,
                grader=compute_grader_version(),
            )
            store.add_score(score, task.id, hashlib.sha256(patch.encode()).hexdigest())
    return made


@contextmanager
def open_grader(settings: Settings) -> Iterator[tuple[TaskGrader, BenchSet]]:
    with Store.open(settings.storage.db) as store:
        yield TaskGrader(store, settings), store.load_all(BenchSet)[-1]


def score_rows(settings: Settings, path: Path, content: str) -> ScoredFile:
    """Score a file with some content, without an engine."""
    path.write_text(content)
    with open_grader(settings) as (grader, bench_set):
        request = ScoreRequest(bench_set=bench_set, path=path)
        return score_file(grader, request, lambda total: ScoreProgress(CountProgress("submission", total)))


def read_values(folder: Path, scored: ScoredFile, metric: str = "value") -> dict[str, float]:
    """Return run -> average of a column."""
    figures = report(folder, *scored.runs)["figures"]
    return {row["run"]: row["mean"] for row in figures if row["column"] == metric}


def make_lines(*rows: Any) -> str:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)


def test_a_file_of_swe_bench_is_scored_model_by_model(settings: Settings, tasks: list[Task], tmp_path: Path) -> None:
    rows = [
        {"instance_id": "ada__greet-1", "model_name_or_path": "a", "model_patch": FIX, "full_output": "..."},
        {"instance_id": "ada__greet-3", "model_name_or_path": "a", "model_patch": ""},
        {"instance_id": "ada__greet-1", "model_name_or_path": "b/c", "model_patch": None},
    ]
    scored = score_rows(settings, tmp_path / "preds.jsonl", make_lines(*rows))
    assert read_values(tmp_path, scored) == {
        "first/predictions/a": pytest.approx(1 / 6, abs=1e-6),
        "first/predictions/b/c": 0.0,
    }
    assert scored.missing == {"a": 4, "b/c": 5}
    assert [len(run.rollouts) for run in scored.runs] == [6, 6]
    again = score_rows(settings, tmp_path / "preds.jsonl", make_lines(*rows))
    assert [run.id for run in again.runs] == [run.id for run in scored.runs]


def test_a_file_of_swt_bench_is_for_the_tests_of_a_change(
    settings: Settings, tasks: list[Task], tmp_path: Path
) -> None:
    rows = {
        "ada__greet-2": {"model_name_or_path": "a", "model_patch": TESTS},
        "ada__greet-3": {"model_name_or_path": "a", "model_patch": FIX},  # it has a bug fix, so this is a fix
    }
    scored = score_rows(settings, tmp_path / "preds.json", json.dumps(rows, indent=1))
    assert not scored.submitted.malformed
    assert read_values(tmp_path, scored) == {"first/predictions/a": pytest.approx(0.5 / 6, abs=1e-6)}


@pytest.mark.parametrize("form", ["object", "list", "comments", "text"])
def test_files_of_reviews_are_scored_in_any_form(
    form: str, settings: Settings, tasks: list[Task], tmp_path: Path
) -> None:
    comment = {"path": "cart.py", "line": FOUND["first_line"], "start_line": None, "body": FOUND["claim"]}
    given: dict[str, Any] = {
        "object": {"review": {"findings": [FOUND]}},
        "list": {"review": [FOUND]},
        "comments": {"comments": [comment]},
        "text": {"review": json.dumps({"findings": [FOUND]})},
    }
    rows: list[dict[str, Any]] = [
        {"instance_id": "ada__greet-4", "model_name_or_path": "a", **given[form]},
        {"task": tasks[4].id, "model_name_or_path": "a", "review": {"findings": [FOUND, FALSE]}},
        {"instance_id": "ada__greet-6.review-1", "model_name_or_path": "a", "review": '{"findings": []}'},
    ]
    scored = score_rows(settings, tmp_path / "reviews.json", json.dumps(rows))
    assert not scored.submitted.malformed
    assert read_values(tmp_path, scored) == {"first/predictions/a": pytest.approx(2.25 / 6, abs=1e-6)}
    assert read_values(tmp_path, scored, "resolved") == {"first/predictions/a": pytest.approx(2 / 6, abs=1e-6)}


GOOD = {"instance_id": "ada__greet-1", "model_name_or_path": "a", "model_patch": FIX}
MALFORMED = (
    "not JSON",
    '{"instance_id": "ada__greet-1", "model_patch"',
    '"a text"',
    "[]",
    {"model_name_or_path": "a", "model_patch": FIX},
    {"instance_id": 7, "model_patch": FIX},
    {"instance_id": "ada__greet-1", "model_name_or_path": "a"},
    {"instance_id": "ada__greet-1", "model_patch": FIX, "review": "{}"},
    {"instance_id": "ada__greet-1", "model_patch": ["diff"]},
    {"instance_id": "ada__greet-4.review-1", "model_patch": FIX},
)


def test_malformed_foreign_and_repeated_rows_are_named_and_the_others_scored(
    settings: Settings, tasks: list[Task], tmp_path: Path
) -> None:
    foreign = {**GOOD, "instance_id": "ada__greet-9"}
    repeated = {**GOOD, "instance_id": tasks[0].name, "model_patch": "diff --git a/x b/x\n"}
    (tmp_path / "preds.jsonl").write_text(make_lines(*MALFORMED[:2], GOOD, *MALFORMED[2:], foreign, repeated))
    words = ("bench", "score", "first", "--predictions", "preds.jsonl", "--db", settings.storage.db)
    given = ("--format", "json", "--metric", "resolved,value")
    done = run_mergemill(*words, *given, cwd=tmp_path)
    assert done.exit_code == 3
    assert "11 rows could not be graded; the others are scored" in done.stderr
    described = done.json["predictions"]
    assert [row["place"] for row in described["malformed"]] == [f"line {n}" for n in (1, 2, *range(4, 12))]
    assert described["not_in_set"] == [{"place": "line 12", "problem": "ada__greet-9 is not in the set"}]
    assert described["repeated"] == [
        {"place": "line 13", "problem": f"{tasks[0].name} has a row at line 3 already, which counts"}
    ]
    for row in described["malformed"] + described["not_in_set"] + described["repeated"]:
        assert f"preds.jsonl, {row['place']}: {row['problem']}" in done.stderr
    assert described["missing"] == {"a": 5}
    assert find_row(done.json["figures"], column="resolved")["mean"] == pytest.approx(1 / 6, abs=1e-6)
    shown = run_mergemill("bench", "report", "first/predictions/a", *words[-2:], *given, cwd=tmp_path)
    assert shown.json["figures"] == done.json["figures"]
    assert run_mergemill(*words[:3], *words[-2:], cwd=tmp_path).exit_code == 2


def test_a_changed_subject_scenarios_and_a_file_without_rows_stop(
    settings: Settings, tasks: list[Task], tmp_path: Path
) -> None:
    (tmp_path / "preds.jsonl").write_text(make_lines(GOOD))
    with open_grader(settings) as (grader, bench_set):
        subject = bench_set.subjects[0].model_copy(update={"grading": "0" * 64})
        changed = bench_set.model_copy(update={"subjects": (subject, *bench_set.subjects[1:])})
        scenario = bench_set.model_copy(update={"subjects": (subject.model_copy(update={"kind": "scenario"}),)})
        for stopped, line in ((changed, "changed-subject"), (scenario, "take no predictions")):
            request = ScoreRequest(bench_set=stopped, path=tmp_path / "preds.jsonl")
            with pytest.raises(InputError, match=line):
                score_file(grader, request, lambda total: ScoreProgress(CountProgress("submission", total)))
    with pytest.raises(InputError, match="has no prediction"):
        score_rows(settings, tmp_path / "empty.jsonl", "\n")


def test_of_a_mixed_set_the_tasks_are_scored_and_the_scenarios_named(
    settings: Settings, tasks: list[Task], tmp_path: Path
) -> None:
    world = make_world()
    scenario = make_scenario(world)
    with Store.open(settings.storage.db) as store:
        store.add(world, scenario)
        freeze(store, "mixed", [tasks[0], tasks[2], scenario], LIMITS, held_out=False)
        # A scenario that is not as it was does not matter here.
        store.add(make_scenario(world, task="Lend four books."))
    rows = (
        GOOD,
        {**GOOD, "instance_id": scenario.name},
        {**GOOD, "instance_id": scenario.id},
        {**GOOD, "instance_id": world.name},
    )
    (tmp_path / "preds.jsonl").write_text(make_lines(*rows))
    words = ("bench", "score", "mixed", "--predictions", "preds.jsonl", "--db", settings.storage.db, "--format")
    done = run_mergemill(*words, "json", cwd=tmp_path)
    assert (done.exit_code, done.json["left_out"], done.json["unpredicted"]) == (3, [], [scenario.name]), done.stderr
    described = done.json["predictions"]
    assert [row["place"] for row in described["malformed"]] == ["line 2", "line 3", "line 4"]
    assert {row["problem"] for row in described["malformed"]} == {
        f"{scenario.name} is a scenario, which takes no predictions"
    }
    assert (described["missing"], described["not_in_set"], described["left_out"]) == ({"a": 1}, [], [])
    figure = find_row(done.json["figures"], column="value")
    assert (figure["mean"], figure["n"]) == (0.5, 2)
    (tmp_path / "preds.jsonl").write_text(make_lines(GOOD))
    done = run_mergemill(*words, "table", cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"1 of 3 subjects take no predictions: {scenario.name}\n")


def test_rows_of_changed_subjects_are_named_and_graded_as_no_other_task(
    settings: Settings, tasks: list[Task], tmp_path: Path
) -> None:
    with Store.open(settings.storage.db) as store:
        writing = add_relative(store, tasks[0], "test-writing", kind=Kind.TEST_WRITING, oracle=WRITING)
        freeze(store, "second", [tasks[0], writing, tasks[2]], LIMITS, held_out=False)
        replace_task(store, tasks[0], hints="Look at the greeting.")
    rows = (GOOD, {**GOOD, "instance_id": tasks[0].name}, {**GOOD, "instance_id": "ada__greet-3"})
    (tmp_path / "preds.jsonl").write_text(make_lines(*rows))
    words = ("bench", "score", "second", "--predictions", "preds.jsonl", "--db", settings.storage.db)
    assert "changed-subject" in run_mergemill(*words, cwd=tmp_path).stderr
    done = run_mergemill(*words, "--changed", "skip", "--format", "json", cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    described = done.json["predictions"]
    assert [row["place"] for row in described["left_out"]] == ["line 1", "line 2"]
    for row in described["left_out"]:
        assert row["problem"].startswith(f"changed-subject: {tasks[0].name} is left out: its id is ")
        assert f"preds.jsonl, {row['place']}: {row['problem']}" in done.stderr
    assert (described["malformed"], described["not_in_set"]) == ([], [])
    assert (described["missing"], done.json["left_out"]) == ({"a": 1}, [tasks[0].name])
    assert find_row(done.json["figures"], column="value")["n"] == 2


def test_speed_is_compared_with_the_experts(tmp_path: Path) -> None:
    oracle = PerformanceOracle(workload="0" * 64, tests=("t",), clock="cpu", ratio=2.0, threshold=1.5)
    fields = {"kind": Kind.PERFORMANCE, "oracle": oracle}
    bench_set, made = make_set(tmp_path, 2, task_fields=fields)
    run = add_run(tmp_path, bench_set, made, lambda n, _: float(n == 0), runs=1, parts={"ratio": 3.0})
    figures = report(tmp_path, run, metrics=(PerformanceMetric(),))["figures"]
    assert find_row(figures, column="speedup")["median"] == 3.0
    assert find_row(figures, column="speedup_of_expert")["median"] == 1.5
    assert find_row(figures, column="reaches_expert")["mean"] == 0.5
    failed = add_run(tmp_path, bench_set, made, lambda *_: 0.0, runs=1, model="slow")
    assert (
        find_row(report(tmp_path, failed, metrics=(PerformanceMetric(),))["figures"], column="speedup")["median"] == 1
    )
