"""`mergemill sample` on scenarios in a container of worlds, and what follows from it, as a user does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.samplers.worlds.database import make_database
from tests.samplers.worlds.player import AGENT, ScenarioPlayer

pytestmark = pytest.mark.docker
WORLD = "library_loans"
BUSY, VISIT = f"{WORLD}.busy_morning", f"{WORLD}.school_visit"


def play(request: ModelRequest) -> Turn:
    """Solve one scenario, and do half of the other one."""
    name = ScenarioPlayer().find(request).name
    return ScenarioPlayer(n_calls=None if name == BUSY else 3)(request)


def test_from_scenarios_to_training_data(tmp_path: Path) -> None:
    make_database(tmp_path, [WORLD])
    proof = run_mergemill("sample", "--environment", "synthetic", "--scaffold", "oracle,noop", "--json", cwd=tmp_path)
    assert proof.exit_code == 0, proof.stderr
    *events, summary = proof.lines
    assert {(event["task"], event["scaffold"], event["value"], event["environment"]) for event in events} == {
        (name, scaffold, value, "synthetic")
        for name in (BUSY, VISIT)
        for scaffold, value in (("oracle", 1.0), ("noop", 0.0))
    }
    assert (summary["planned"], summary["new"], summary["left"], summary["resolved"]) == (4, 4, 0, 2)
    with ScriptedModel(play) as model:
        words = ("sample", "--world", WORLD, "--scaffold", "tools", "--model", AGENT, "--upstream", model.url)
        first = run_mergemill(*words, "--attempts", "1", "--json", cwd=tmp_path)
        paid = model.paid
        more = run_mergemill(*words, "--attempts", "2", "--json", cwd=tmp_path)
        assert model.paid == 2 * paid
        again = run_mergemill(*words, "--attempts", "2", "--json", cwd=tmp_path)
        assert model.paid == 2 * paid
    assert [result.exit_code for result in (first, more, again)] == [0, 0, 0], first.stderr + more.stderr
    assert [result.lines[-1]["new"] for result in (first, more, again)] == [2, 2, 0]
    rates = {
        row["name"]: row
        for row in run_mergemill("difficulty", "--world", WORLD, "--scaffold", "tools", "--json", cwd=tmp_path).lines
    }
    assert (rates[BUSY]["n"], rates[BUSY]["c"], rates[BUSY]["mean_value"]) == (2, 2, 1.0)
    assert rates[VISIT]["c"] == 0
    assert 0 < rates[VISIT]["mean_value"] < 1
    selected = run_mergemill("trajectories", "select", "--world", WORLD, "--json", cwd=tmp_path)
    expected = {"event": "summary", "trajectories": 4, "selected": 1, "held_out": 0}  # equal calls are duplicates
    assert selected.lines[-1] == expected
    done = run_mergemill(
        "trajectories", "export", "--world", WORLD, "--format", "sharegpt", "--out", "sft", "--json", cwd=tmp_path
    )
    assert (done.exit_code, done.json["rows"]) == (0, 1), done.stderr
    (row,) = [json.loads(line) for line in (tmp_path / "sft" / "train.jsonl").read_text().splitlines()]
    assert (row["instance_id"], row["environment"], row["resolved"]) == (BUSY, "synthetic", True)
    assert len(json.loads(row["tools"])) == 16
