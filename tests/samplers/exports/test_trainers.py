"""Training data read by the code of trainers as it is on PyPI: rows in are rows trained, and the right texts are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from samplers.trajectories.build import build_trajectories
from taskdb.artifacts import Artifacts
from taskdb.store import Store
from tests.exporters.consumers import install, install_harbor
from tests.samplers.exports import trainer_programs as programs
from tests.samplers.exports.test_training_data import export, read_rows
from tests.samplers.exports.trainer_programs import make_tokenizer, read
from tests.samplers.selection.making import PATCH
from tests.samplers.stored import add_rollout, make_branched_exchanges
from tests.samplers.test_trajectory_commands import run
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.test_rollouts import make_rollout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a plain conversation, one with token ids, and one with a branch."""
    folder = tmp_path_factory.mktemp("trained")
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    with Store.open(make_url(folder)) as store:
        task = add_lineage(store)
        add_rollout(store, artifacts, task, 1)
        add_rollout(store, artifacts, task, 2, token_ids=True)
        rollout = make_rollout(task, 3, submission=artifacts.put(PATCH.replace(b"hello", b"branch")))
        store.add(rollout, *build_trajectories(rollout, make_branched_exchanges(), artifacts))
    assert run(folder, "trajectories", "select").exit_code == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("words", [("messages",), ("messages", "--per-request"), ("sharegpt",), ("parquet",)])
def test_datasets_loads_every_row(folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    report = export(folder, tmp_path / "out", "--format", *words)
    command = install("datasets==5.2.0", sys.executable)
    rows = read(command, programs.DATASETS, tmp_path / "out", cwd=tmp_path)
    assert len(rows) == report["rows"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--hermes",), ("--per-request",), ("--per-request", "--hermes")])
def test_llama_factory_trains_every_row(folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    report = export(folder, tmp_path / "out", "--format", "sharegpt", *words)
    command = programs.install_llama_factory()
    mask = "yes" if "--per-request" in words else "no"
    tokenizer = make_tokenizer(command, tmp_path)
    rows = read(command, programs.LLAMA_FACTORY, tmp_path / "out", tokenizer, mask, cwd=tmp_path)
    assert len(rows) == report["rows"]
    trained = "".join(row["trained"] for row in rows)
    assert trained.count("Done.") == 2
    assert trained.count("Branch one.") == 1
    assert trained.count("Where is the greeting?") == trained.count("I look first.") == 1
    assert trained.count('"command": "pwd"') == 1
    assert "Greet politely." not in trained
    assert "def greet" not in trained
    if mask == "no":  # the branch shares answers, which ShareGPT cannot mask
        assert list(report["left_out"].values()) == [1]
    else:
        assert (report["left_out"], trained.count("Branch two.")) == ({}, 1)


@pytest.mark.slow
def test_trl_trains_every_answer_of_whole_conversations(folder: Path, tmp_path: Path) -> None:
    export(folder, tmp_path / "out", "--format", "messages", "--system", "drop")
    whole = [row for row in read_rows(tmp_path / "out") if all("weight" not in message for message in row["messages"])]
    (tmp_path / "out" / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in whole))
    command = programs.install_trl()
    tokenizer = make_tokenizer(command, tmp_path)
    rows = read(command, programs.TRL, tmp_path / "out", tokenizer, cwd=tmp_path)
    assert len(rows) == len(whole) == 3
    trained = "".join(row["trained"] for row in rows)
    assert trained.count("Done.") == 2
    assert (trained.count("Branch one."), trained.count("<call>bash")) == (1, 5)
    assert "Greet politely." not in trained
    assert all('"name": "bash"' in row["all"] for row in rows)


@pytest.mark.slow
def test_axolotl_trains_the_answers_of_weight_1_alone(folder: Path, tmp_path: Path) -> None:
    report = export(folder, tmp_path / "out", "--format", "messages")
    command = programs.install_axolotl()
    tokenizer = make_tokenizer(command, tmp_path)
    rows = read(command, programs.AXOLOTL, tmp_path / "out", tokenizer, cwd=tmp_path)
    assert len(rows) == report["rows"] == 4
    trained = "".join(row["trained"] for row in rows)
    assert trained.count("Branch one.") == trained.count("Branch two.") == 1
    assert trained.count("I look first.") == 1  # it is context in the other branch
    assert sum(row["all"].count("I look first.") for row in rows) == 2
    assert "<call>bash" in trained
    assert "Greet politely." not in trained


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--per-request",), ("--system", "drop")])
def test_harbor_validates_every_document(folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    report = export(folder, tmp_path / "out", "--format", "atif", *words)
    rows = read(install_harbor(), programs.HARBOR, tmp_path / "out", cwd=tmp_path)
    assert len(rows) == report["rows"] > 0
    assert [row["errors"] for row in rows] == [[]] * len(rows)
