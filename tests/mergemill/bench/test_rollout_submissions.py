"""Submissions to instruction tasks in files of predictions: written, read again, and refused without answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from evaluation.instructions.submission import read_submission, write_submission
from mergemill.bench.scoring import ScoredFile, ScoreRequest, score_file
from mergemill.bench.sets import freeze
from mergemill.execution.progress import CountProgress
from mergemill.grading.grading import TaskGrader
from mergemill.grading.progress import ScoreProgress
from samplers.imports.predictions import read_fields, read_prediction_rows
from samplers.rollouts.conversation import pack_requests
from samplers.trajectories.requests import ModelRequest
from taskdb.artifacts import open_artifacts
from taskdb.records import Kind, Task
from taskdb.records.bench import BenchSet
from taskdb.records.rollouts import Rollout
from taskdb.store import Store
from tests.evaluation.instructions.conversations import bash, make_answers
from tests.evaluation.instructions.test_checklist import CLOSE, PUSH, make_oracle
from tests.helpers import TinyRepo
from tests.mergemill.bench.making import LIMITS, add_run
from tests.mergemill.bench.test_export import FILES, export, read_rows
from tests.samplers.imports.test_imports import ATIF
from tests.samplers.test_trajectory_commands import run
from tests.taskdb.lineages import add_lineage, make_url

NAME = "ada__greet-1.instructions-1"
PATCH = "diff --git a/greet.py b/greet.py\n"
SUBMISSION = write_submission(PATCH.encode(), make_answers(["I look.", bash("ls")], "The end."), ["close"])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(db=make_url(tmp_path), store=tmp_path / "mergemill-store")


@pytest.fixture
def bench_set(settings: Settings, tmp_path: Path) -> BenchSet:
    """A set of an instruction task without an image."""
    artifacts = open_artifacts(settings.storage)
    repo = TinyRepo(tmp_path / "greet")
    repo.commit("Greet", FILES)
    fields: dict[str, Any] = {
        "kind": Kind.INSTRUCTIONS,
        "name": NAME,
        "oracle": make_oracle(PUSH, CLOSE).model_copy(update={"dutiful": artifacts.put(SUBMISSION)}),
        "gold_patch": artifacts.put_text(PATCH),
        "test_patch": artifacts.put_text(""),
        "eval_script": None,
        "plan": None,
        "image": "",
        "image_digest": "",
        "environment": "none",
        "FAIL_TO_PASS": (),
        "PASS_TO_PASS": (),
    }
    base = repo.git("rev-parse", "HEAD")
    with Store.open(settings.storage.db) as store:
        task = add_lineage(store, source=f"git:{repo.path}", base_commit=base, task_fields=fields)
        return freeze(store, "first", [task], LIMITS, held_out=True)


def load_task(settings: Settings) -> Task:
    with Store.open(settings.storage.db, create=False) as store:
        return store.load_all(Task)[-1]


def score(settings: Settings, bench_set: BenchSet, path: Path, messages: list[str]) -> ScoredFile:
    with Store.open(settings.storage.db) as store:
        request = ScoreRequest(bench_set=bench_set, path=path)

        def make_progress(total: int) -> ScoreProgress:
            return ScoreProgress(CountProgress("submission", total))

        return score_file(TaskGrader(store, settings), request, make_progress, messages.append)


def test_exported_predictions_are_the_submissions_byte_for_byte(
    settings: Settings, bench_set: BenchSet, tmp_path: Path
) -> None:
    submission = open_artifacts(settings.storage).put(SUBMISSION)
    fields: dict[str, Any] = {"submission": submission, "url": settings.storage.db}
    add_run(tmp_path, bench_set, [load_task(settings)], lambda *_: 1.0, runs=2, **fields)
    summary = export(settings, bench_set, tmp_path / "out")
    assert (summary["rows"], sum(summary["left_out"].values())) == (2, 1)
    files = sorted((tmp_path / "out" / "predictions").iterdir())
    assert len(files) == 2
    for path in files:
        (row,) = read_prediction_rows(path)
        assert row.value["canary"] == bench_set.canary
        fields = vars(read_fields(row.value))
        assert (fields["instance"], fields["form"], fields["content"]) == (NAME, "rollout", SUBMISSION)
    assert {row["submission"] for row in read_rows(tmp_path / "out" / "results.jsonl")} == {submission}


@pytest.mark.parametrize("value", [SUBMISSION.decode(), json.loads(SUBMISSION)], ids=["text", "object"])
def test_a_rollout_is_a_text_or_the_object_itself(value: Any, tmp_path: Path) -> None:
    for document in ({"instance_id": NAME, "rollout": value}, {NAME: {"rollout": value}}):
        (tmp_path / "p.json").write_text(json.dumps(document))
        (row,) = read_prediction_rows(tmp_path / "p.json")
        fields = read_fields(row.value)
        assert (fields.instance, fields.form, fields.content) == (NAME, "rollout", SUBMISSION)


def test_predictions_without_their_requests_are_named_and_have_no_value(
    settings: Settings, bench_set: BenchSet, tmp_path: Path
) -> None:
    rows = [
        {"instance_id": NAME, "model_name_or_path": "patch", "model_patch": PATCH},
        {"instance_id": NAME, "model_name_or_path": "silent", "rollout": {"patch": PATCH, "answers": []}},
    ]
    (tmp_path / "p.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    messages: list[str] = []
    scored = score(settings, bench_set, tmp_path / "p.jsonl", messages)
    (malformed,) = scored.submitted.malformed
    assert malformed.place == "line 1"
    assert malformed.problem.startswith(f"no-log: a submission to {NAME} needs the requests of its rollout")
    assert [message for message in messages if "line 2" in message and "no-log" in message]
    assert [(run.model, run.rollouts) for run in scored.runs] == [("silent", ())]
    assert scored.failures.total() == 1


def test_imported_conversations_are_part_of_the_submission(
    settings: Settings, bench_set: BenchSet, tmp_path: Path
) -> None:
    document = json.dumps(ATIF).replace("TASK", NAME)
    (tmp_path / "trajectory.json").write_text(document)
    prediction = {"instance_id": NAME, "model_patch": PATCH}
    (tmp_path / "p.jsonl").write_text(json.dumps(prediction))
    done = run(tmp_path, "trajectories", "import", "trajectory.json", "p.jsonl")
    assert done.exit_code == 0, done.stderr
    with Store.open(settings.storage.db, create=False) as store:
        complete, silent = store.load_all(Rollout)
    given = json.loads(open_artifacts(settings.storage).get(complete.submission or ""))
    assert given["patch"] == ATIF["extra"]["model_patch"]  # type: ignore[index]
    assert [(answer["exchange"], answer["turn"]) for answer in given["answers"]] == [(0, 1), (1, 1)]
    assert given["answers"][0]["message"]["tool_calls"][0]["function"]["name"] == "bash"
    assert (silent.submission, silent.reason, silent.value) == (None, "no-log", None)


def test_answers_of_imported_conversations_belong_to_the_turn_that_the_user_was_in() -> None:
    first = {"role": "user", "content": "Greet."}
    answer = {"role": "assistant", "content": "Done."}
    second = {"role": "user", "content": "Go  on.\n- Be brief."}
    requests = [
        ModelRequest(exchange=0, messages=(first,), answer=answer),
        ModelRequest(exchange=1, messages=(first, answer, second), answer=answer),
        ModelRequest(exchange=2, messages=(first, answer, second, answer), answer=None),
        ModelRequest(exchange=3, messages=(first,), answer=answer),
    ]
    turns = ["Go on. - Be brief.", "Thanks."]
    given = read_submission(pack_requests(b"", requests, turns, {"brief": "turn-2", "close": "turn-3"}))
    assert [(item.exchange, item.turn) for item in given.answers] == [(0, 1), (1, 2), (3, 2)]
    assert given.not_delivered == ("close",)
