"""Seeds of every format; what holds no conversation is one line of error, and all else is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from simulators.conversation import DialogueTurn, TurnRole
from simulators.prefilter import judge_by_rules
from simulators.seeds.reading import read_seeds
from simulators.seeds.seed import Seed
from tests.samplers.scripted_model import ScriptedModel, Turn
from tests.samplers.stored import make_database
from tests.samplers.test_trajectory_commands import run
from tests.simulators.making import make_seed, simulate

CALL = {"name": "get_order_details", "arguments": {"order_id": "#W1"}}
TOOL = {"name": "get_order_details", "description": "Return an order.", "parameters": {"type": "object"}}
API_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": CALL["name"], "arguments": json.dumps(CALL["arguments"])},
}
SHAREGPT = {
    "id": "s1",
    "license": "MIT",
    "system": "Be kind.",
    "tools": json.dumps([TOOL]),
    "conversations": [
        {"from": "human", "value": "Show W1."},
        {"from": "function_call", "value": f"<think>\nI look.\n</think>\n{json.dumps(CALL)}"},
        {"from": "observation", "value": "pending"},
        {"from": "gpt", "value": "It is pending."},
    ],
}
MESSAGES = {
    "instance_id": "s1",
    "license": "MIT",
    "tools": json.dumps([{"type": "function", "function": TOOL}]),
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Show W1."}]},
        {"role": "assistant", "content": None, "reasoning_content": "I look.", "tool_calls": [API_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "pending"},
        {"role": "assistant", "content": "It is pending."},
    ],
}
HERMES_SYSTEM = f"Be kind.\n<tools>\n{json.dumps({'type': 'function', 'function': TOOL})}\n</tools>"
HERMES = {
    "id": "s1",
    "license": "MIT",
    "conversations": [
        {"from": "system", "value": HERMES_SYSTEM},
        {"from": "human", "value": "Show W1."},
        {"from": "gpt", "value": f"<think>\nI look.\n</think>\n\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>\n"},
        {"from": "human", "value": "<tool_response>\npending\n</tool_response>"},
        {"from": "gpt", "value": "It is pending."},
    ],
}
HERMES_MESSAGES = {
    "id": "s1",
    "license": "MIT",
    "messages": [
        {"role": "system", "content": HERMES_SYSTEM},
        {"role": "user", "content": "Show W1."},
        {"role": "assistant", "content": f"<think>I look.</think><tool_call>{json.dumps(CALL)}</tool_call>"},
        {"role": "user", "content": "pending"},
        {"role": "assistant", "content": "It is pending."},
    ],
}
ATIF = {
    "schema_version": "ATIF-v1.8",
    "trajectory_id": "s1",
    "agent": {"name": "react", "version": "1", "tool_definitions": [{"type": "function", "function": TOOL}]},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be kind."},
        {"step_id": 2, "source": "user", "message": "Show W1."},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "reasoning_content": "I look.",
            "tool_calls": [{"tool_call_id": "c1", "function_name": CALL["name"], "arguments": CALL["arguments"]}],
            "observation": {"results": [{"source_call_id": "c1", "content": "pending"}]},
        },
        {"step_id": 4, "source": "agent", "message": "It is pending."},
    ],
    "extra": {"license": "MIT", "resolved": True},
}
TAU2 = {
    "timestamp": "2026-01-01",
    "info": {"environment_info": {"domain_name": "retail", "policy": "Be kind.", "tool_defs": [TOOL]}},
    "tasks": [],
    "simulations": [
        {
            "id": "x",
            "task_id": "s1",
            "trial": 0,
            "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "assistant", "content": "Hi! How can I help you?"},
                {"role": "user", "content": "Show W1."},
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "I look.",
                    "tool_calls": [{"id": "c1", **CALL}],
                },
                {"role": "tool", "id": "c1", "content": "pending", "requestor": "assistant"},
                {"role": "assistant", "content": "It is pending."},
            ],
        }
    ],
}
WANTED = (
    DialogueTurn(role=TurnRole.HUMAN, text="Show W1."),
    DialogueTurn(role=TurnRole.FUNCTION_CALL, reasoning="I look."),
    DialogueTurn(role=TurnRole.OBSERVATION, text="pending"),
    DialogueTurn(role=TurnRole.ASSISTANT, text="It is pending."),
)


def read_one(tmp_path: Path, document: Any) -> Seed:
    path = tmp_path / "seeds.json"
    path.write_text(json.dumps(document))
    seeds = read_seeds(path)
    assert seeds.problems == []
    assert len(seeds.seeds) == 1
    return seeds.seeds[0]


@pytest.mark.parametrize(
    ("format_name", "document"),
    [
        ("sharegpt", SHAREGPT),
        ("messages", MESSAGES),
        ("hermes", HERMES),
        ("hermes", HERMES_MESSAGES),
        ("atif", ATIF),
        ("tau2", TAU2),
    ],
)
def test_every_format_gives_the_same_conversation(tmp_path: Path, format_name: str, document: dict[str, Any]) -> None:
    seed = read_one(tmp_path, document)
    assert seed.format == format_name
    body = seed.conversation.body
    assert [turn.role for turn in body] == [turn.role for turn in WANTED]
    assert [(turn.text, turn.reasoning) for turn in body] == [(turn.text, turn.reasoning) for turn in WANTED]
    assert [(call.name, call.arguments) for call in body[1].calls] == [(CALL["name"], CALL["arguments"])]
    assert seed.conversation.system.startswith("Be kind.")
    assert [tool["name"] for tool in seed.conversation.tools] == ["get_order_details"]
    assert seed.name.startswith("s1")
    assert (seed.n_turns, seed.tool_names) == (4, ("get_order_details",))
    assert seed.license == ("unknown" if format_name == "tau2" else "MIT")


def test_a_seed_carries_the_names_of_its_subject(tmp_path: Path) -> None:
    row = {**MESSAGES, "instance_id": "ada__greet-1.bugfix", "task": "Show an order.", "metadata": {"task": "9c1d"}}
    seed = read_one(tmp_path, row)
    assert seed.describe()["subjects"] == ["ada__greet-1.bugfix", "9c1d"]
    assert seed.origin == ("ada__greet-1.bugfix", "9c1d", seed.name)
    assert "subjects" not in read_one(tmp_path, SHAREGPT).describe()


def test_lines_lists_and_tables_are_read_alike(tmp_path: Path) -> None:
    rows = [make_seed(number) for number in range(3)]
    (tmp_path / "list.json").write_text(json.dumps(rows))
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "table.parquet")
    read = [read_seeds(tmp_path / name).seeds for name in ("list.json", "lines.jsonl", "table.parquet")]
    assert [[seed.id for seed in seeds] for seeds in read] == [[seed.id for seed in read[0]]] * 3
    whole = read_seeds(tmp_path)
    assert (len(whole.seeds), whole.n_repeated, whole.problems) == (3, 6, [])


def test_companions_of_an_export_are_no_seeds(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps(SHAREGPT) + "\n")
    (tmp_path / "dataset_info.json").write_text('{"mergemill": {}}')
    (tmp_path / "manifest.json").write_text('{"kind": "x"}')
    (tmp_path / "README.md").write_text("# Card\n")
    seeds = read_seeds(tmp_path)
    assert (len(seeds.seeds), seeds.problems) == (1, [])


def test_a_licence_is_that_of_the_source_else_the_one_given(tmp_path: Path) -> None:
    other = {**SHAREGPT, "id": "s2", "license": "", "conversations": [*SHAREGPT["conversations"]] * 2}
    (tmp_path / "seeds.json").write_text(json.dumps([SHAREGPT, other]))
    seeds = read_seeds(tmp_path / "seeds.json", license_id="CC0-1.0")
    assert [seed.license for seed in seeds.seeds] == ["MIT", "CC0-1.0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("not JSON at all", "seeds.json:1 is no JSON object"),
        ("[1]", "seeds.json:1 is no JSON object"),
        ('{"a": 1}', "it is of none of atif, tau2, hermes, sharegpt, messages"),
        ('{"conversations": []}', "conversations is empty"),
        ('{"conversations": [1]}', "conversations is no list of objects"),
        ('{"conversations": [{"from": "robot", "value": "x"}]}', "the role 'robot' is unknown"),
        ('{"messages": [{"role": "user", "content": "x"}], "tools": "{"}', "its tools are no JSON"),
        ('{"messages": [{"role": "user", "content": "x"}], "tools": [{"a": 1}]}', "a tool has no name"),
        ('{"simulations": [{"messages": 1}]}', "messages is no list of objects"),
        ('{"schema_version": "ATIF-v1.8", "steps": [{"source": "agent", "tool_calls": [{}]}]}', "a call has no name"),
    ],
)
def test_a_file_without_conversations_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "seeds.json").write_text(text)
    with pytest.raises(InputError) as raised:
        read_seeds(tmp_path / "seeds.json")
    line = raised.value.format_line()
    assert message in line
    assert "\n" not in line
    assert "docs/guide/simulate/simulate.md" in line


def test_binary_and_missing_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "seeds.json").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match="it is neither text nor parquet"):
        read_seeds(tmp_path / "seeds.json")
    (tmp_path / "seeds.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="it is neither text nor parquet"):
        read_seeds(tmp_path / "seeds.parquet")
    with pytest.raises(InputError, match="there is no file or folder"):
        read_seeds(tmp_path / "none.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no file ends in \.json, \.jsonl, \.parquet"):
        read_seeds(tmp_path / "empty")


def test_malformed_lines_are_named_and_all_others_are_used(tmp_path: Path) -> None:
    lines = [json.dumps(make_seed(1)), "broken", json.dumps({"conversations": 5}), json.dumps(make_seed(2))]
    (tmp_path / "seeds.jsonl").write_text("\n".join([*lines, *["x"] * 20]) + "\n")
    with ScriptedModel(lambda request: Turn(text="HUMAN: a\nASSISTANT: b")) as model:
        words = ("--per-seed", "1", "--simulate-prefilter", "off", "--profile", "simia", "--simulate-pause", "0")
        done = simulate(tmp_path, model, *words, seeds="seeds.jsonl")
    assert done.exit_code == 3
    summary = done.lines[-1]
    assert (summary["seeds"], summary["kept"], summary["dropped"]) == (2, 1, {"duplicate": 1})
    errors = done.stderr.splitlines()
    assert "seeds.jsonl:2 is no JSON object" in errors[0]
    assert len(errors) == 6
    assert "seeds.jsonl: 17 more lines hold no conversation" in errors[-1]


@pytest.mark.parametrize("words", [("messages",), ("sharegpt",), ("sharegpt", "--hermes"), ("atif",)])
def test_exported_trajectories_are_seeds(tmp_path: Path, words: tuple[str, ...]) -> None:
    make_database(tmp_path)
    assert run(tmp_path, "trajectories", "select").exit_code == 0
    done = run(tmp_path, "trajectories", "export", "--format", *words, "--out", "rows")
    assert done.exit_code == 0, done.stderr
    seeds = read_seeds(tmp_path / "rows")
    assert seeds.problems == []
    seed = seeds.seeds[0]
    assert [turn.role.value for turn in seed.conversation.body] == [
        "human",
        "function_call",
        "observation",
        "assistant",
    ]
    assert (seed.tool_names, [tool["name"] for tool in seed.conversation.tools]) == (("bash",), ["bash"])
    assert judge_by_rules(seed).reason is None
