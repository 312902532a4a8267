"""Profile `simia`: every rule of the released code, against expectations that were written by hand.

The cases were compared once with the released scripts themselves, which agree on each of them.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simulators.post_processing.steps import STEPS
from tests.samplers.scripted_model import ScriptedModel, Turn
from tests.simulators.making import find_case, read_lines, simulate, write_seeds

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "data" / "simia_cases.toml").read_text(encoding="utf-8")
)["case"]
ABOVE = ("7 system-prompt", "answer")
"""Steps whose cases are all others: each has a system prompt and an answer."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the answer for the seed of a number is the case of that number."""
    folder = tmp_path_factory.mktemp("simia")
    write_seeds(folder / "seeds.json", range(len(CASES)))
    with ScriptedModel(lambda request: Turn(text=CASES[find_case(request)]["answer"])) as model:
        words = ("--per-seed", "1", "--profile", "simia", "--simulate-pause", "0")
        done = simulate(folder, model, *words)
        assert done.exit_code == 0, done.stderr
        assert model.paid == len(CASES)
        body = model.requests[0].body
        assert (body["temperature"], body["max_tokens"]) == (1.0, 60_000)
    (folder / "summary.json").write_text(json.dumps(done.lines[-1]))
    return folder


def read_summary(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


def find_line(folder: Path, number: int) -> str | None:
    """Return the line of the row of a case, as it stands in the file."""
    lines = (folder / "out" / "sharegpt-hermes" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if json.loads(line)["metadata"]["seed_line"] == number + 1), None)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{n}-{CASES[n]['rule']}-{CASES[n]['outcome']}")
def test_a_row_is_byte_for_byte_what_was_written_by_hand(folder: Path, number: int) -> None:
    case = CASES[number]
    line = find_line(folder, number)
    dropped = [
        entry for entry in read_lines(folder / "out" / "dropped.jsonl") if entry["seed"] == name_seed(folder, number)
    ]
    if case["outcome"] == "dropped":
        assert line is None
        assert [entry["reason"] for entry in dropped] == [case["reason"]]
        return
    assert line is not None
    turns = [{"from": speaker, "value": text} for speaker, text in case["turns"]]
    assert f'"conversations": {json.dumps(turns, ensure_ascii=False)}, "system":' in line
    assert dropped == []


def name_seed(folder: Path, number: int) -> str:
    return next(line["id"] for line in read_lines(folder / "out" / "seeds.jsonl") if line["line"] == number + 1)


@pytest.mark.parametrize("rule", [step.name for step in STEPS if step.is_released and step.name not in ABOVE])
def test_each_rule_has_three_conversations_or_more_of_its_outcomes(rule: str) -> None:
    outcomes = Counter(case["outcome"] for case in CASES if case["rule"] == rule)
    assert outcomes.total() >= 3
    assert {"kept", "dropped"} <= set(outcomes) or rule == "2 arguments"  # which drops nothing in the released code


def test_counts_per_step_and_reason_add_up_to_the_input(folder: Path) -> None:
    summary = read_summary(folder)
    wanted = Counter(case["reason"] for case in CASES if case["outcome"] == "dropped")
    assert summary["dropped"] == dict(sorted(wanted.items()))
    assert summary["kept"] + sum(summary["dropped"].values()) == summary["planned"] == len(CASES)
    before = len(CASES)
    for step in summary["steps"]:
        assert step["before"] == before
        assert step["after"] == before - sum(step["dropped"].values())
        before = step["after"]
    assert before == summary["kept"]
    repaired = {step["step"]: step["repaired"] for step in summary["steps"] if step["repaired"]}
    cases = Counter(case["rule"] for case in CASES if case["outcome"] == "repaired" and case["rule"] != "parse")
    assert repaired == cases == {"2 arguments": 4, "5 validators": 1, "6 think": 2}


def test_no_step_beyond_the_released_code_ran(folder: Path) -> None:
    steps = [step["step"] for step in read_summary(folder)["steps"]]
    assert steps == [step.name for step in STEPS if step.is_released]


def test_the_system_prompt_is_that_of_the_pack_with_its_tools(folder: Path) -> None:
    rows = read_lines(folder / "out" / "sharegpt-hermes" / "train.jsonl")
    systems = {row["system"] for row in rows}
    assert len(systems) == 1
    system = systems.pop()
    assert system.startswith("# Shop service\n")
    assert "You serve the customers of a shop." not in system  # the seeds' own
    assert system.count('{"type": "function", "function": {"name": ') == 15
    assert system.endswith('<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>')
    assert "tools" not in rows[0]


def test_what_was_written_before_a_repair_is_kept(folder: Path) -> None:
    by_line = {line["seed"]["line"]: line for line in read_lines(folder / "out" / "trajectories.jsonl")}
    number = next(n for n, case in enumerate(CASES) if case["rule"] == "5 validators" and case["outcome"] == "repaired")
    raw = '{"name": "get_order_details", "arguments": {"order_id": "W18"}}'
    assert by_line[number + 1]["repairs"] == [{"step": "validators", "turn": 2, "raw": raw}]
