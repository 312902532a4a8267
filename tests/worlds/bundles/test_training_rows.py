"""Rows for supervised training: what LLaMA-Factory trains of them, rows in = rows out; every answer once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.llama_factory import read_as_llama_factory
from tests.worlds.bundles.making import bundle_examples, write_examples
from training_data.conversations import build_alpaca_rows, build_sharegpt_rows
from training_data.sources import LeftOutError
from worlds.bundles.contents import BundledScenario, BundledWorld, WorldConversation
from worlds.bundles.training_rows import SolvedScenario

N_SCENARIOS = 6


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def first_case() -> tuple[BundledWorld, BundledScenario, WorldConversation]:
    world = next(world for world in bundle_examples() if world.name == "library_loans")
    scenario = world.scenarios[0]
    assert scenario.conversation is not None
    return world, scenario, scenario.conversation


def test_alpaca_trains_each_answer_once_and_no_row_is_dropped(tmp_path: Path) -> None:
    counts = write_examples("alpaca", tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "train.jsonl")
    trained = read_as_llama_factory(tmp_path / "out", mask_history=True)
    assert len(trained) == len(rows) == counts.rows
    assert all(len(row["texts"]) == 1 for row in trained)
    wanted = [
        text
        for world in bundle_examples()
        for scenario in world.scenarios
        for text in [*(call.tool for call in scenario.conversation.calls), "Task Completed"]  # type: ignore[union-attr]
    ]
    texts = [text for row in trained for text in row["texts"]]
    assert len(texts) == len(wanted)
    for text, name in zip(texts, wanted, strict=True):
        assert text == name if name == "Task Completed" else json.loads(text.split("\n")[1])["name"] == name
    settings = yaml.safe_load((tmp_path / "out" / "llamafactory.yaml").read_text())
    assert (settings["mask_history"], settings["cutoff_len"]) == (True, 32768)
    assert settings["dataset"] in json.loads((tmp_path / "out" / "dataset_info.json").read_text())


def test_alpaca_rows_hold_what_came_before_without_thoughts() -> None:
    world, scenario, conversation = first_case()
    thinking = tuple(
        {**message, "reasoning_content": f"Thought {at}."} if message["role"] == "assistant" else message
        for at, message in enumerate(conversation.messages)
    )
    rows = build_alpaca_rows(SolvedScenario(world, scenario, replace(conversation, messages=thinking)), 0)
    assert [row["turn"] for row in rows] == list(range(len(conversation.calls) + 1))
    assert rows[0]["instruction"] == scenario.definition.task
    assert rows[0]["output"].startswith("<think>\nThought 2.\n</think>\n\n<tool_call>\n{")
    for row in rows[1:]:
        result = row["instruction"].removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")
        assert json.loads(result)["success"] is True
        assert len(row["history"]) == row["turn"]
        assert "Thought" not in json.dumps(row["history"])
        assert row["output"].count("<think>") == 1
    first = rows[1]["history"][0]
    assert first == [scenario.definition.task, rows[0]["output"].partition("</think>\n\n")[2]]
    assert "<tools>\n" in rows[0]["system"]
    tools = rows[0]["system"].partition("<tools>\n")[2].partition("\n</tools>")[0].splitlines()
    assert [json.loads(line)["function"]["name"] for line in tools] == [tool.name for tool in world.analysis.tools]
    assert world.definition.documentation.strip() in rows[0]["system"]


def test_sharegpt_trains_every_answer_and_no_row_is_dropped(tmp_path: Path) -> None:
    counts = write_examples("sharegpt", tmp_path / "out")
    trained = read_as_llama_factory(tmp_path / "out")
    assert len(trained) == counts.rows == N_SCENARIOS
    played = [scenario for world in bundle_examples() for scenario in world.scenarios]
    for row, scenario in zip(trained, played, strict=True):
        assert scenario.conversation is not None
        assert row["texts"] == [
            *(f"<{call.tool} {json.dumps(dict(call.arguments))}>" for call in scenario.conversation.calls),
            "Task Completed",
        ]


def test_messages_have_the_results_of_the_world_and_a_loss_on_the_agent_alone(tmp_path: Path) -> None:
    write_examples("messages", tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "train.jsonl")
    assert len(rows) == N_SCENARIOS
    for row in rows:
        roles = [message["role"] for message in row["messages"]]
        assert roles == ["system", "user", *["assistant", "tool"] * row["n_calls"], "assistant"]
        assert all(("weight" in message) == (message["role"] == "assistant") for message in row["messages"])
        for call, result in zip(row["messages"][2:-1:2], row["messages"][3:-1:2], strict=True):
            assert result["tool_call_id"] == call["tool_calls"][0]["id"]
            assert json.loads(result["content"])["success"] is True
        assert json.loads(row["tools"])[0]["type"] == "function"
    lent = next(row for row in rows if row["scenario"] == "library_loans.busy_morning")
    results = [json.loads(message["content"]) for message in lent["messages"] if message["role"] == "tool"]
    assert results[2] == {"success": True, "message": "B-14 is lent to M-2", "loan_id": "L-31"}


@pytest.mark.parametrize("name", ["alpaca", "sharegpt", "messages"])
def test_every_row_and_the_card_are_marked_as_synthetic(name: str, tmp_path: Path) -> None:
    write_examples(name, tmp_path / "out")
    for row in read_lines(tmp_path / "out" / "train.jsonl"):
        marks = (row["environment"], row["license"], row["source"], row["model"], row["reward"], row["certified"])
        assert marks == ("synthetic", "Apache-2.0", "oracle", "", 1.0, True)
    assert len({row["id"] for row in read_lines(tmp_path / "out" / "train.jsonl")}) == len(
        read_lines(tmp_path / "out" / "train.jsonl")
    )


def test_a_conversation_that_does_not_alternate_is_refused() -> None:
    world, scenario, conversation = first_case()
    broken = SolvedScenario(world, scenario, replace(conversation, messages=conversation.messages[:-1]))
    with pytest.raises(LeftOutError, match="alternate"):
        build_sharegpt_rows(broken, 0)
    with pytest.raises(LeftOutError, match="alternate"):
        build_alpaca_rows(broken, 0)
