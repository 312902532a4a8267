"""`mergemill trajectories export`: rows, masks, cards, manifests, and what is left out and why."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from samplers.trajectories.build import build_trajectories
from taskdb.artifacts import Artifacts
from taskdb.records import Kind
from taskdb.store import Store
from tests.evaluation.instructions.test_checklist import bind, make_oracle
from tests.samplers.stored import add_rollout, make_branched_exchanges, make_database
from tests.samplers.test_trajectory_commands import run
from tests.samplers.trajectories.making import TASK
from tests.samplers.trajectories.test_build import STOPPED, exchange
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.test_rollouts import make_rollout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with selected trajectories, one of them with token ids."""
    folder = tmp_path_factory.mktemp("training")
    task, _ = make_database(folder)
    with Store.open(make_url(folder)) as store:
        add_rollout(store, Artifacts(folder / "mergemill-store" / "artifacts"), task, 9, token_ids=True)
    assert run(folder, "trajectories", "select").exit_code == 0
    return folder


def export(folder: Path, out: Path, *words: str) -> dict[str, Any]:
    done = run(folder, "trajectories", "export", "--out", str(out), *words, "--json")
    assert done.exit_code == 0, done.stderr
    check_manifest(out)
    report: dict[str, Any] = done.json
    return report


def check_manifest(out: Path) -> None:
    manifest = json.loads((out / "manifest.json").read_text())
    there = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert set(manifest["files"]) == there - {"manifest.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert yaml.safe_load((out / "README.md").read_text().split("---")[1])["license"]


def read_rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]


def test_messages_are_the_selected_main_conversations_with_their_origin(folder: Path, tmp_path: Path) -> None:
    report = export(folder, tmp_path / "out", "--format", "messages")
    rows = read_rows(tmp_path / "out")
    assert (report["rows"], report["trajectories"], report["answers"]) == (2, 2, 4) == (len(rows), 2, 4)
    row = rows[0]
    assert list(row) == [
        "instance_id",
        "environment",
        "repo",
        "license",
        "language",
        "trajectory_id",
        "messages",
        "tools",
        "resolved",
        "metadata",
    ]
    assert row["messages"][-1]["role"] == "assistant"
    assert row["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"command": "ls"}'
    assert json.loads(row["tools"])[0]["function"]["name"] == "bash"
    assert (row["resolved"], row["metadata"]["scaffold"], row["metadata"]["value"]) == (True, "react", 1.0)
    assert sum(token["count"] for token in report["lengths"]["tokens"]) == 2


GUIDED = "You fix bugs.\n\nBe brief.\n\n- Plan first."
"""Text of the system: the scaffold's own, that of `sample --system`, and an instruction of the task."""


def make_instruction_database(folder: Path) -> None:
    """Make a database with a rollout of an instruction task, and a later one of a bug fix."""
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    constraints = (
        bind("plan-first", "plan-before-edit"),
        bind("ask", "answer-ends", turn=2, source="turn", until=2),
        bind("ask-often", "answer-ends", source="memory", overridden_by="ask"),
    )
    verdicts = {"plan-first": "passed", "ask": "failed", "ask-often": "overridden"}
    with Store.open(make_url(folder)) as store:
        fields = {"kind": Kind.INSTRUCTIONS, "oracle": make_oracle(*constraints)}
        task, other = add_lineage(store, 1, task_fields=fields), add_lineage(store, 2)
        rollout = make_rollout(task, added_system=artifacts.put_text("Be brief."))
        assert rollout.score is not None
        rollout = rollout.model_copy(update={"score": rollout.score.model_copy(update={"verdicts": verdicts})})
        exchanges = [exchange(0, [{"role": "system", "content": GUIDED}, TASK], STOPPED)]
        store.add(rollout, *build_trajectories(rollout, exchanges, artifacts))
        add_rollout(store, artifacts, other, 1)


CONSTRAINTS = [
    {"name": "plan-first", "source": "system", "turn": 1, "text": "plan-first", "verdict": "passed"},
    {"name": "ask", "source": "turn", "turn": 2, "text": "ask", "verdict": "failed"},
    {"name": "ask-often", "source": "memory", "turn": 1, "text": "ask-often", "verdict": "overridden"},
]


def test_rows_of_instruction_tasks_have_the_verdicts_and_keep_the_instructions(tmp_path: Path) -> None:
    make_instruction_database(tmp_path)
    words = ("--unselected", "--format")
    export(tmp_path, tmp_path / "kept", *words, "messages")
    rows = {row["instance_id"]: row for row in read_rows(tmp_path / "kept")}
    guided, other = rows["ada__greet-1.bugfix"], rows["ada__greet-2.bugfix"]
    assert json.loads(guided["metadata"]["constraints"]) == CONSTRAINTS
    assert other["metadata"]["constraints"] == "[]"
    assert guided["messages"][0]["content"] == GUIDED
    export(tmp_path, tmp_path / "atif", *words, "atif")
    documents = [json.loads(path.read_text()) for path in (tmp_path / "atif" / "trajectories").iterdir()]
    assert sorted((document["extra"]["constraints"] for document in documents), key=len) == [[], CONSTRAINTS]
    export(tmp_path, tmp_path / "stripped", *words, "messages", "--system", "strip")
    (stripped,) = [row for row in read_rows(tmp_path / "stripped") if row["instance_id"] == guided["instance_id"]]
    assert stripped["messages"][0]["content"] == "You fix bugs.\n\n- Plan first."


def test_a_row_per_request_ends_with_the_only_answer_that_is_trained(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "out", "--format", "messages", "--per-request")
    rows = read_rows(tmp_path / "out")
    assert len(rows) == 4
    weights = [[message.get("weight") for message in row["messages"] if message["role"] == "assistant"] for row in rows]
    assert weights == [[None], [0, 1]] * 2


def test_texts_of_the_system_are_replaced_by_a_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "system.txt").write_text("You are terse.\n")
    export(folder, tmp_path / "out", "--format", "messages", "--system", str(tmp_path / "system.txt"))
    assert {row["messages"][0]["content"] for row in read_rows(tmp_path / "out")} == {"You are terse."}
    export(folder, tmp_path / "dropped", "--format", "messages", "--system", "drop")
    assert {row["messages"][0]["role"] for row in read_rows(tmp_path / "dropped")} == {"user"}


def test_tokens_have_masks_and_those_without_are_named(folder: Path, tmp_path: Path) -> None:
    done = run(folder, "trajectories", "export", "--format", "parquet", "--out", str(tmp_path / "out"))
    assert "1 row left out: the upstream gave no token ids" in done.stderr
    [row] = pq.read_table(tmp_path / "out" / "data").to_pylist()
    assert row["input_ids"] == [1, 2, 3, 4, 5, 100, 200, 300, 101, 201]
    assert row["loss_mask"] == [0, 0, 0, 0, 0, 1, 1, 0, 1, 1]
    assert row["logprobs"][5] == -0.5
    assert row["parents"] == list(range(-1, 9))
    report = export(folder, tmp_path / "requests", "--format", "parquet", "--per-request")
    assert report["rows"] == 2
    assert report["left_out"] == {"the upstream gave no token ids": 1}
    rows = pq.read_table(tmp_path / "requests" / "data").to_pylist()
    assert [sum(row["loss_mask"]) for row in rows] == [2, 2]


def test_sharegpt_is_what_llama_factory_is_told_it_is(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "out", "--format", "sharegpt")
    row = read_rows(tmp_path / "out")[0]
    assert [conversation["from"] for conversation in row["conversations"]] == [
        "human",
        "function_call",
        "observation",
        "gpt",
    ]
    info = json.loads((tmp_path / "out" / "dataset_info.json").read_text())["mergemill"]
    assert set(info["columns"].values()) <= set(row)
    export(folder, tmp_path / "hermes", "--format", "sharegpt", "--hermes")
    row = read_rows(tmp_path / "hermes")[0]
    assert [conversation["from"] for conversation in row["conversations"]] == ["human", "gpt", "tool", "gpt"]
    assert '"name": "bash"' in row["system"]


def test_a_branch_that_shares_answers_is_left_out_where_there_are_no_masks(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")
    with Store.open(make_url(tmp_path)) as store:
        rollout = make_rollout(add_lineage(store))
        store.add(rollout, *build_trajectories(rollout, make_branched_exchanges(), artifacts))
    report = export(tmp_path, tmp_path / "out", "--format", "sharegpt", "--unselected")
    assert (report["rows"], report["answers"]) == (1, 3)
    assert report["left_out"] == {"ShareGPT has no masks, and not every answer in it is trained": 1}
    report = export(tmp_path, tmp_path / "masked", "--format", "messages", "--unselected")
    assert (report["rows"], report["answers"], report["left_out"]) == (2, 4, {})
    report = export(tmp_path, tmp_path / "requests", "--format", "sharegpt", "--per-request", "--unselected")
    assert (report["rows"], report["answers"], report["left_out"]) == (4, 4, {})


def test_results_of_tools_stand_in_the_step_that_called_in_atif(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "out", "--format", "atif")
    documents = [json.loads(path.read_text()) for path in (tmp_path / "out" / "trajectories").iterdir()]
    assert len(documents) == 2
    steps = documents[0]["steps"]
    assert [step["step_id"] for step in steps] == [1, 2, 3, 4]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent"]
    assert steps[2]["observation"]["results"][0]["source_call_id"] == steps[2]["tool_calls"][0]["tool_call_id"]


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (("--format", "csv"), 2, "--format: csv is unknown"),
        (("--format", "messages", "--hermes"), 2, "--hermes is a form of"),
        (("--format", "parquet", "--system", "drop"), 2, "tokens as they were sampled"),
        (("--format", "messages", "--system", "nowhere"), 3, "--system: cannot read nowhere"),
        (("--format", "messages", "--model", "other"), 3, "no trajectory matches"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(
    folder: Path, tmp_path: Path, words: tuple[str, ...], exit_code: int, message: str
) -> None:
    done = run(folder, "trajectories", "export", "--out", str(tmp_path / "out"), *words)
    assert (done.exit_code, done.stderr.count("\n")) == (exit_code, 1)
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_with_files_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = run(folder, "trajectories", "export", "--out", str(tmp_path), "--format", "messages")
    assert done.exit_code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
