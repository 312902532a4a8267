"""`mergemill grade --predictions`: every row gets one score, whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from core.errors import Transient
from core.settings.group import replace_values
from mergemill.agents.sampling.task_sampler import make_oracle
from mergemill.cli.grading.predictions import grade_predictions
from mergemill.execution.grader_version import compute_grader_version
from mergemill.grading import grading
from mergemill.grading.grading import Submission, TaskGrader
from mergemill.grading.predictions import PredictionRun, ScoreFile, read_predictions, select_missing
from taskdb.records import Score
from taskdb.store import Store
from tests.cli import CommandResult, make_command_environment, open_mergemill, run_mergemill, start_mergemill
from tests.graded_tasks import NO_FINDINGS, GradedTasks, make_reviews
from tests.taskdb.lineages import make_url


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> GradedTasks:
    return make_reviews(tmp_path_factory.mktemp("reviews"))


@pytest.fixture
def reviews(made: GradedTasks, tmp_path: Path) -> GradedTasks:
    """A copy of the database, to be written."""
    shutil.copytree(made.folder, tmp_path / "copy")
    return GradedTasks(tmp_path / "copy", made.gold)


def write_rows(folder: Path, rows: list[Any]) -> None:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "p.jsonl").write_text("".join(f"{line}\n" for line in lines))


def grade(reviews: GradedTasks, *options: str) -> CommandResult:
    words = ("grade", "--predictions", "p.jsonl", "--out", "s.jsonl", "--db", make_url(reviews.folder), *options)
    return run_mergemill(*words, cwd=reviews.folder)


def read_scores(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()]


def make_rows(reviews: GradedTasks) -> list[dict[str, Any]]:
    """Two models: one is always right, one finds nothing."""
    right = [{"task": name, "review": reviews.gold[name], "model_name_or_path": "right"} for name in reviews.tasks]
    blind = [
        {"instance_id": name, "review": json.loads(NO_FINDINGS), "model_name_or_path": "blind"}
        for name in reviews.tasks
    ]
    return [*right, *blind]


def make_many_rows(reviews: GradedTasks) -> list[dict[str, Any]]:
    """Rows for a command that is ended on the way: a busy machine may look at its scores seconds later."""
    return [{**row, "model_name_or_path": f"m{n}"} for n in range(200) for row in make_rows(reviews)]


def test_each_row_gets_a_score_with_its_instance_and_model(reviews: GradedTasks) -> None:
    write_rows(reviews.folder, make_rows(reviews))
    done = grade(reviews, "--workers", "4", "--json")
    assert done.exit_code == 0, done.stderr
    assert [line["event"] for line in done.lines] == ["score"] * 12 + ["summary"]
    assert (done.lines[-1]["graded"], done.lines[-1]["resolved"]) == (12, 6)
    scores = read_scores(reviews.folder)
    assert sorted((s["instance_id"], s["model_name_or_path"], s["value"]) for s in scores) == sorted(
        (name, model, value) for name in reviews.tasks for model, value in (("right", 1.0), ("blind", 0.0))
    )
    with Store.open(reviews.settings.storage.db) as store:
        for score in scores:
            task = TaskGrader(store, reviews.settings).find_task(score["instance_id"], "review")
            assert (score["task_id"], score["task"]) == (task.id, task.name)
    stored = run_mergemill(
        "sql",
        "SELECT count(*) AS n FROM scores",
        "--json",
        cwd=reviews.folder,
        MERGEMILL_DB=reviews.settings.storage.db,
    )
    assert stored.json["n"] == 12


def test_an_object_of_rows_by_name_over_several_lines_is_graded(reviews: GradedTasks) -> None:
    first, second = reviews.tasks[:2]
    rows = {first: {"instance_id": first, "review": reviews.gold[first]}, second: {"review": None}, "nothing": ""}
    (reviews.folder / "p.jsonl").write_text(json.dumps(rows, indent=2))
    done = grade(reviews, "--json")
    assert done.exit_code == 3
    assert {score["instance_id"]: score["value"] for score in read_scores(reviews.folder)} == {first: 1.0, second: 0.0}
    assert [line.split(": ")[1] for line in done.stderr.splitlines() if "p.jsonl, " in line] == [
        "p.jsonl, line 1, row 3"
    ]


def test_malformed_rows_are_named_by_line_after_the_others_are_graded(reviews: GradedTasks) -> None:
    name = reviews.tasks[0]
    write_rows(
        reviews.folder,
        [
            "{",
            {"task": name, "review": NO_FINDINGS},
            "[]",
            "",
            {"review": NO_FINDINGS},
            {"task": name},
            {"task": name, "review": "", "patch": ""},
            {"task": name, "patch": "diff"},
            {"task": "nothing", "patch": ""},
            {"task": name, "review": 7},
            {"task": "\udcff", "review": ""},
            {"task": name, "review": "half a character: \ud83d"},
            {"task": name, "review": reviews.gold[name]},
        ],
    )
    done = grade(reviews, "--json")
    assert done.exit_code == 3
    assert sorted(score["value"] for score in read_scores(reviews.folder)) == [0.0, 0.0, 1.0]
    named = [line.split(": ")[1] for line in done.stderr.splitlines() if "p.jsonl, line" in line]
    assert named == [f"p.jsonl, line {n}" for n in (1, 3, 5, 6, 7, 8, 9, 10, 11)]
    assert "Traceback" not in done.stderr


def test_a_change_names_the_task_that_takes_the_submission(reviews: GradedTasks) -> None:
    """All tasks of the sample's changes are reviews, several of each change."""
    write_rows(reviews.folder, [{"instance_id": "ada__sums-1", "review": NO_FINDINGS}])
    done = grade(reviews)
    assert done.exit_code == 3
    assert "ada__sums-1 is ambiguous, 2 tasks match" in done.stderr


def test_a_command_that_is_killed_at_any_moment_continues_where_it_was(reviews: GradedTasks) -> None:
    rows = make_many_rows(reviews)
    write_rows(reviews.folder, rows)
    words = ("grade", "--predictions", "p.jsonl", "--out", "s.jsonl", "--db", make_url(reviews.folder))
    out = reviews.folder / "s.jsonl"
    for wanted in (1, 150, 300):
        with start_mergemill(*words, cwd=reviews.folder) as command:
            while command.poll() is None and (not out.exists() or out.read_bytes().count(b"\n") < wanted):
                time.sleep(0.002)
    before = out.read_bytes()
    whole = before[: before.rindex(b"\n") + 1]
    assert 300 <= whole.count(b"\n") < len(rows)
    out.write_bytes(whole + b'{"instance_id": "ada__su')  # as a kill in the middle of a write leaves it
    random.Random(1).shuffle(rows)
    write_rows(reviews.folder, rows)
    done = grade(reviews, "--json")
    assert done.exit_code == 0, done.stderr
    assert out.read_bytes().startswith(whole)
    scores = read_scores(reviews.folder)
    assert len(scores) == len(rows)
    assert {(s["instance_id"], s["model_name_or_path"], s["submission"]) for s in scores} == {
        (s["instance_id"], s["model_name_or_path"], s["submission"]) for s in scores if s["value"] is not None
    }
    assert len({(s["instance_id"], s["model_name_or_path"], s["submission"]) for s in scores}) == len(rows)
    again = grade(reviews, "--json")
    assert (again.lines[-1]["graded"], again.lines[-1]["kept"]) == (0, len(rows))


def test_an_output_file_that_holds_something_else_is_not_touched(reviews: GradedTasks) -> None:
    write_rows(reviews.folder, make_rows(reviews))
    (reviews.folder / "s.jsonl").write_text("my notes\n")
    done = grade(reviews)
    assert done.exit_code == 3
    assert "holds something else than scores" in done.stderr
    assert (reviews.folder / "s.jsonl").read_text() == "my notes\n"


def test_an_output_that_is_a_device_is_written_and_not_read(reviews: GradedTasks) -> None:
    """Limited in memory, since /dev/full has no end."""
    write_rows(reviews.folder, make_rows(reviews))
    command = "ulimit -v 8000000; exec mergemill grade --predictions p.jsonl --out /dev/full"
    done = subprocess.run(
        ["bash", "-c", f"{command} --db {make_url(reviews.folder)}"],
        cwd=reviews.folder,
        env=make_command_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 75, done.stderr
    assert "cannot write /dev/full: No space left on device" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["--predictions", "none", "--out", "new"], 3, "cannot read the predictions none"),
        (["--predictions", "p.jsonl", "--out", "no/new"], 3, "there is no folder no"),
        (["--predictions", "p.jsonl"], 2, "takes --out FILE"),
        (["--predictions", "p.jsonl", "--out", "new", "--noop"], 2, "neither a task nor a submission"),
        (["a", "--noop", "--out", "new"], 2, "grade takes a TASK, or --predictions FILE with --out FILE"),
        (["--noop"], 2, "grade takes a TASK"),
        (["--predictions", "p.jsonl", "--out", "new", "--db", "none.db"], 3, "there is no database none.db"),
    ],
)
def test_a_wrong_command_is_one_line_and_leaves_no_file(
    made: GradedTasks, tmp_path: Path, words: list[str], code: int, line: str
) -> None:
    write_rows(tmp_path, make_rows(made))
    done = run_mergemill("grade", *words, cwd=tmp_path, MERGEMILL_DB=made.settings.storage.db)
    assert (done.exit_code, done.stdout) == (code, "")
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "new").exists()


# ------------------------------------------------------------------------------------------- in one process


class CountingGrader(TaskGrader):
    """Grader that counts gradings, and whose infrastructure fails as often as `failures` has errors."""

    def __init__(self, store: Store, reviews: GradedTasks, failures: list[Exception | None] | None = None) -> None:
        super().__init__(store, reviews.settings)
        self.failures = failures or []
        self.calls: list[tuple[str, str]] = []

    def grade(self, submission: Submission) -> Score:
        self.calls.append(submission.key)
        if self.failures and (error := self.failures.pop(0)) is not None:
            raise error
        return super().grade(submission)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between the attempts."""
    monkeypatch.setattr(grading, "RETRY_POLICY", grading.RETRY_POLICY.copy(sleep=lambda _: None))


def test_rollouts_and_predictions_are_graded_by_the_same_version(reviews: GradedTasks) -> None:
    with Store.open(reviews.settings.storage.db) as store:
        grader = TaskGrader(store, reviews.settings)
        task = grader.find_task(reviews.tasks[0], "review")
        for content in (b"", reviews.gold[task.name].encode()):
            score = make_oracle(task, grader.open_services(task)).grade(content)
            assert score.grader == compute_grader_version()
            assert score == grader.grade(Submission(task=task, content=content))


def run(reviews: GradedTasks, grader: TaskGrader, out: Path) -> list[dict[str, Any]]:
    """Grade what is missing in a file of scores; return all its lines."""
    rows, malformed = read_predictions(reviews.folder / "p.jsonl", grader)
    assert not malformed
    with ScoreFile(out) as scores:
        for graded in PredictionRun(grader).iterate_scores(select_missing(rows, scores.scored)):
            scores.add(graded.to_fields())
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_equal_submissions_are_graded_once_and_each_row_gets_its_line(reviews: GradedTasks, tmp_path: Path) -> None:
    name = reviews.tasks[0]
    write_rows(reviews.folder, [{"task": name, "review": NO_FINDINGS, "model_name_or_path": model} for model in "aabc"])
    with Store.open(reviews.settings.storage.db) as store:
        grader = CountingGrader(store, reviews)
        scores = run(reviews, grader, tmp_path / "s.jsonl")
        assert sorted(score["model_name_or_path"] for score in scores) == ["a", "a", "b", "c"]
        assert len(grader.calls) == 1
        kept = sorted(scores, key=lambda score: str(score["model_name_or_path"]))[1:3]
        (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(score)}\n" for score in kept))
        again = run(reviews, grader, tmp_path / "s.jsonl")
        assert sorted(score["model_name_or_path"] for score in again) == ["a", "a", "b", "c"]


@pytest.mark.usefixtures("quick")
def test_a_failure_of_the_engine_is_retried_then_null_and_graded_by_the_next_run(
    reviews: GradedTasks, tmp_path: Path
) -> None:
    write_rows(reviews.folder, [{"task": name, "review": reviews.gold[name]} for name in reviews.tasks[:1]])
    gone = Transient("the engine is gone")
    with Store.open(reviews.settings.storage.db) as store:
        (once,) = run(reviews, CountingGrader(store, reviews, [gone, gone]), tmp_path / "once.jsonl")
        assert once["value"] == 1.0
        (lost,) = run(reviews, CountingGrader(store, reviews, [gone] * 3), tmp_path / "lost.jsonl")
        assert (lost["value"], lost["resolved"]) == (None, False)
        assert lost["infrastructure_error"] == "the engine is gone"
        (score,) = run(reviews, CountingGrader(store, reviews), tmp_path / "lost.jsonl")
        assert score["value"] == 1.0


@pytest.mark.usefixtures("quick")
def test_a_bug_in_one_grading_leaves_the_others(reviews: GradedTasks, tmp_path: Path) -> None:
    write_rows(reviews.folder, [{"task": name, "review": reviews.gold[name]} for name in reviews.tasks])
    with Store.open(reviews.settings.storage.db) as store:
        scores = run(reviews, CountingGrader(store, reviews, [None, ValueError("oops")]), tmp_path / "s.jsonl")
    assert sorted(str(score["value"]) for score in scores) == ["1.0"] * 5 + ["None"]


@pytest.mark.usefixtures("quick")
def test_unscored_rows_end_the_command_with_75_before_anything_else(
    reviews: GradedTasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(grader: TaskGrader, submission: Submission) -> Score:
        raise Transient("the engine is gone")

    monkeypatch.setattr(TaskGrader, "grade", fail)
    write_rows(reviews.folder, ["{", *make_rows(reviews)])
    settings = replace_values(reviews.settings, {"workers": 1})
    with pytest.raises(Transient, match="5 submissions unscored"):
        grade_predictions(reviews.folder / "p.jsonl", tmp_path / "s.jsonl", settings, as_json=True)
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["unscored"], summary["left"], summary["malformed"]) == (5, 7, 1)


def test_a_task_that_cannot_be_graded_here_is_unscored_and_graded_once_it_can(reviews: GradedTasks) -> None:
    write_rows(reviews.folder, make_rows(reviews)[:2])
    (reviews.folder / "mergemill-store" / "artifacts").rename(reviews.folder / "gone")
    done = grade(reviews, "--json")
    assert done.exit_code == 3, done.stderr
    assert [score["value"] for score in read_scores(reviews.folder)] == [None, None]
    (reviews.folder / "gone").rename(reviews.folder / "mergemill-store" / "artifacts")
    assert grade(reviews, "--json").exit_code == 0
    assert [score["value"] for score in read_scores(reviews.folder)] == [1.0, 1.0]


def test_ctrl_c_keeps_what_was_graded(reviews: GradedTasks) -> None:
    rows = make_many_rows(reviews)
    write_rows(reviews.folder, rows)
    words = ("grade", "--predictions", "p.jsonl", "--out", "s.jsonl", "--db", make_url(reviews.folder))
    out = reviews.folder / "s.jsonl"
    with open_mergemill(*words, cwd=reviews.folder) as command:
        while not out.exists() or out.read_bytes().count(b"\n") < 5:
            time.sleep(0.002)
        os.kill(command.process.pid, signal.SIGINT)
        command.stdout.read()
        assert "Traceback" not in command.stderr.read()
        assert command.process.wait() == 130
    assert all(score["value"] == (1.0 if score["resolved"] else 0.0) for score in read_scores(reviews.folder))
