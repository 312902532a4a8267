"""Agents on simulated tasks: `mergemill sample` in namespaces, and what is stored and exported of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from taskdb.records.rollouts import Rollout, Trajectory
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.namespaces import require_bubblewrap
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.swe.making import GOLD_LINE, HIDDEN_NAME, TEST_LINE, read_prompt
from tests.simulators.swe.sampling import answer, make_task, sample


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_bubblewrap()
    folder = tmp_path_factory.mktemp("simulated")
    make_task(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the database with its task; the clone of its source is not needed, as the store keeps the base tree."""
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(made / "mergemill.db", copy)
    shutil.copytree(made / "mergemill-store", copy / "mergemill-store")
    return copy


def load(folder: Path) -> tuple[list[Rollout], list[Trajectory]]:
    with Store.open(f"sqlite:///{folder}/mergemill.db", create=False) as store:
        return store.load_all(Rollout), store.load_all(Trajectory)


def is_simulator(request: ModelRequest) -> bool:
    return "You stand in for programs" in read_prompt(request)


def test_an_agent_works_on_true_files_and_is_graded_by_the_simulator(folder: Path) -> None:
    with ScriptedModel(answer) as model:
        words = ("--environment", "simulated", "--scaffold", "react,oracle,noop", "--attempts", "2")
        done = sample(folder, model, *words, named=False)
        assert done.exit_code == 0, done.stderr
        simulated = [request for request in model.requests if is_simulator(request)]
        agents = [read_prompt(request) for request in model.requests if request.tools]
    values = {(line["scaffold"], line["value"]) for line in done.lines[:-1]}
    assert values == {("react", 1.0), ("oracle", 1.0), ("noop", 0.0)}
    assert {line["environment"] for line in done.lines[:-1]} == {"simulated"}
    assert {line["simulated_calls"] for line in done.lines[:-1] if line["scaffold"] == "react"} == {2}
    assert done.lines[-1]["simulated_calls"] == {"known": 3, "fresh": 3, "refused": 2, "unavailable": 0}
    assert len(simulated) == 3  # the second attempt at the same commands is not paid
    assert not [
        text for text in agents if GOLD_LINE.strip() in text or TEST_LINE.strip() in text or HIDDEN_NAME in text
    ]
    assert any("1 passed in 0.01s" in text for text in agents)
    rollouts, trajectories = load(folder)
    assert {rollout.environment for rollout in (*rollouts, *trajectories)} == {"simulated"}
    assert len(trajectories) == 2
    assert (
        run_mergemill("tasks", "list", "--environment", "simulated", "--json", cwd=folder).lines[0]["status"]
        != "certified"
    )
    rows = run_mergemill("sql", "SELECT environment, count(*) AS n FROM rollouts GROUP BY 1", "--json", cwd=folder)
    assert rows.lines == [{"environment": "simulated", "n": 6}]


def test_simulated_trajectories_are_exported_only_on_request(folder: Path) -> None:
    with ScriptedModel(answer) as model:
        assert sample(folder, model, "--scaffold", "react").exit_code == 0
    assert run_mergemill("trajectories", "select", "--environment", "simulated", cwd=folder).exit_code == 0
    refused = run_mergemill("trajectories", "export", "--format", "messages", "--out", "out", cwd=folder)
    assert refused.exit_code == 3
    assert "--with-simulated" in refused.stderr
    words = ("--format", "messages", "--out", "out", "--with-simulated")
    assert run_mergemill("trajectories", "export", *words, cwd=folder).exit_code == 0
    (row,) = map(json.loads, (folder / "out" / "train.jsonl").read_text().splitlines())
    assert row["metadata"]["environment"] == "simulated"
    card = (folder / "out" / "README.md").read_text()
    assert "| `simulated` | 1 |" in card
    assert "a model wrote what test runners, interpreters and builds print" in card
    assert yaml.safe_load(card.split("---")[1])["tags"].count("simulated") == 1
    assert json.loads((folder / "out" / "manifest.json").read_text())["trajectories"][0]["environment"] == "simulated"


def test_a_failing_simulator_is_infrastructure_and_the_same_command_goes_on(folder: Path) -> None:
    def fail(request: ModelRequest) -> Turn:
        return Turn(fault="401") if is_simulator(request) else answer(request)

    with ScriptedModel(fail) as model:
        done = sample(folder, model, "--scaffold", "react")
    assert done.exit_code == 75
    assert {(line["status"], line["reason"]) for line in done.lines[:-1]} == {("infrastructure", "simulator-failed")}
    with ScriptedModel(answer) as model:
        done = sample(folder, model, "--scaffold", "react")
    assert (done.exit_code, done.lines[-1]["resolved"]) == (0, 1)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--scaffold", "codex"), 2, "has no place for the program of codex"),
        (("--scaffold", "noop", "--llm", "off"), 2, "simulated tasks need a model that answers for programs"),
        (("--scaffold", "noop", "--llm", "off", "--cluster", "ray"), 2, "simulated tasks need a model that answers"),
        (("--scaffold", "noop", "--sandbox", "local", "--allow-untrusted-local"), 0, "cannot mount folders"),
    ],
)
def test_what_cannot_work_gets_one_line(folder: Path, words: tuple[str, ...], code: int, message: str) -> None:
    with ScriptedModel(answer) as model:
        done = sample(folder, model, *words)
    assert message in done.stderr + done.stdout
    assert done.exit_code != 1
    if code:
        assert done.exit_code == code


@pytest.mark.docker
def test_containers_of_an_engine_do_the_same(folder: Path) -> None:
    with ScriptedModel(answer) as model:
        done = sample(folder, model, "--scaffold", "react,oracle", "--sandbox", "docker")
    assert done.exit_code == 0, done.stderr
    results = {(line["scaffold"], line["value"], line["simulated_calls"]) for line in done.lines[:-1]}
    assert results == {("react", 1.0, 2), ("oracle", 1.0, 0)}
