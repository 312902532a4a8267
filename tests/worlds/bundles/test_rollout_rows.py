"""Rows for programs that play scenarios: their fields, and that neither solution nor checks are in them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.worlds.bundles.making import write_examples
from tests.worlds.bundles.test_training_rows import read_lines
from worlds.examples.loading import list_example_worlds, load_example_scenarios

SCENARIOS = [scenario.name for world in list_example_worlds() for scenario in load_example_scenarios(world)]


def test_verl_rows_have_the_fields_of_its_data_set(tmp_path: Path) -> None:
    write_examples("verl", tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "train.parquet").to_pylist()
    assert [row["extra_info"]["scenario"] for row in rows] == SCENARIOS
    for number, row in enumerate(rows):
        assert list(row) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        assert row["reward_model"]["style"] == "rule"
        named = json.loads(row["reward_model"]["ground_truth"])
        assert named == {key: row["extra_info"][key] for key in ("world", "scenario", "seed")}
        assert row["extra_info"]["index"] == number
        assert row["extra_info"]["environment"] == "synthetic"
        tools = json.loads(row["extra_info"]["tools"])
        assert {tool["type"] for tool in tools} == {"function"}


def test_ragen_rows_name_an_episode(tmp_path: Path) -> None:
    write_examples("ragen", tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "train.jsonl")
    assert [(row["index"], row["scenario"], row["seed"]) for row in rows] == [
        (number, name, 0) for number, name in enumerate(SCENARIOS)
    ]
    for row in rows:
        assert row["world"] == row["scenario"].partition(".")[0]
        assert row["environment"] == "synthetic"
        assert row["max_actions_per_traj"] == 40
        assert row["task"]
        assert row["env_instruction"]


def test_nemo_gym_rows_have_prompt_tools_and_agent(tmp_path: Path) -> None:
    write_examples("nemo-gym", tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "train.jsonl")
    assert [row["verifier_metadata"]["scenario"] for row in rows] == SCENARIOS
    for row in rows:
        given = row["responses_create_params"]
        assert [message["role"] for message in given["input"]] == ["system", "user"]
        assert len(given["tools"]) == 16
        assert {"type", "name", "description", "parameters", "strict"} == set(given["tools"][0])
        assert row["agent_ref"]["type"] == "responses_api_agents"
        assert row["verifier_metadata"]["environment"] == "synthetic"


@pytest.mark.parametrize("name", ["verl", "ragen", "nemo-gym"])
def test_neither_solution_nor_checks_are_in_a_row(name: str, tmp_path: Path) -> None:
    write_examples(name, tmp_path / "out")
    if name == "verl":
        content = json.dumps(pq.read_table(tmp_path / "out" / "train.parquet").to_pylist())
    else:
        content = (tmp_path / "out" / "train.jsonl").read_text()
    assert "has_paid_part" not in content
    assert "def " not in content
    assert "$result" not in content
