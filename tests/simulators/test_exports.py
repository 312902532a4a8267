"""Rows of every format: what trainers read of them, and `environment: simulated` on each row and card."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from simulators.exports.formats import FORMATS
from simulators.seeds.reading import read_seeds
from tests.exporters.consumers import install, run_command
from tests.llama_factory import read_as_llama_factory
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import (
    PLAIN,
    THOUGHT,
    answer_well,
    find_case,
    is_verdict,
    make_random,
    read_lines,
    simulate,
    write_answer,
    write_seeds,
)
from tests.simulators.test_packs import write_pack

N_SEEDS, N_SAMPLES = 6, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of both profiles on the same seeds, in `default` and `simia`."""
    folder = tmp_path_factory.mktemp("exports")
    write_seeds(folder / "seeds.json", range(N_SEEDS))
    with ScriptedModel(answer_well) as model:
        for profile in ("default", "simia"):
            words = ("--per-seed", str(N_SAMPLES), "--profile", profile, "--out", profile, "--simulate-pause", "0")
            done = simulate(folder, model, *words, "--seeds-license", "MIT")
            assert (done.exit_code, done.lines[-1]["kept"]) == (0, N_SEEDS * N_SAMPLES), done.stderr
    return folder


@pytest.mark.parametrize("profile", ["default", "simia"])
@pytest.mark.parametrize("name", ["sharegpt", "sharegpt-hermes"])
def test_llama_factory_trains_every_row_and_every_answer(folder: Path, profile: str, name: str) -> None:
    rows = read_as_llama_factory(folder / profile / name)
    assert len(rows) == N_SEEDS * N_SAMPLES == len(read_lines(folder / profile / name / "train.jsonl"))
    for row in rows:
        texts = "".join(row["texts"])
        assert texts.count("get_order_details") >= 1
        assert texts.count("Shall I cancel it?") == 1
        assert "Yes please" not in texts
        assert ("<tools>" in row["system"]) == (name == "sharegpt-hermes")


def test_reasoning_is_apart_in_default_and_visible_in_simia(folder: Path) -> None:
    for row in read_lines(folder / "default" / "messages" / "train.jsonl"):
        thinking = [m for m in row["messages"] if m.get("reasoning_content")]
        assert [m["reasoning_content"] for m in thinking] == [THOUGHT]
        assert thinking[0]["content"] == ""
        assert all("<think>" not in m["content"] for m in row["messages"])
    for row in read_lines(folder / "simia" / "messages" / "train.jsonl"):
        assert all("reasoning_content" not in m for m in row["messages"])
        assert [m["content"] for m in row["messages"] if m.get("tool_calls")][1] == THOUGHT


@pytest.mark.parametrize("profile", ["default", "simia"])
def test_messages_have_a_result_for_each_call_and_a_loss_on_the_agent_alone(folder: Path, profile: str) -> None:
    for row in read_lines(folder / profile / "messages" / "train.jsonl"):
        assert row["messages"][0]["role"] == "system"
        assert all(("weight" in m) == (m["role"] == "assistant") for m in row["messages"])
        assert {m["weight"] for m in row["messages"] if m["role"] == "assistant"} == {1}
        waiting: list[str] = []
        for message in row["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] == waiting.pop(0)
            else:
                assert not waiting
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                waiting.append(call["id"])
        tools = json.loads(row["tools"])
        assert tools[0]["type"] == "function"


def test_every_row_and_card_is_marked_as_simulated(folder: Path) -> None:
    for profile in ("default", "simia"):
        out = folder / profile
        cards = [out / "README.md", *(out / row_format.name / "README.md" for row_format in FORMATS)]
        for card in cards:
            text = card.read_text()
            front = yaml.safe_load(text.split("---")[1])
            assert (front["environment"], front["license"]) == ("simulated", "mit")
            assert "\nenvironment: simulated\n" in text.split("---", 2)[2]
            assert "| simulator | `scripted` |" in text
            assert f"| profile | `{profile}` |" in text
            assert "| licences of the seeds | MIT (12) |" in text
            assert "| 4 tools | 12 | 0 | 0 | 12 |" in text
        for path in (*out.rglob("train.jsonl"), out / "trajectories.jsonl"):
            assert all(row["environment"] == "simulated" and row["license"] == "MIT" for row in read_lines(path))
        table = pq.read_table(out / "parquet" / "data").to_pylist()
        assert {row["environment"] for row in table} == {"simulated"}
        assert json.loads((out / "run.json").read_text())["environment"] == "simulated"


def test_the_table_holds_the_same_messages(folder: Path) -> None:
    rows = read_lines(folder / "default" / "messages" / "train.jsonl")
    table = pq.read_table(folder / "default" / "parquet" / "data").to_pylist()
    assert [json.loads(line["messages"]) for line in table] == [row["messages"] for row in rows]
    assert [json.loads(line["metadata"]) for line in table] == [row["metadata"] for row in rows]


@pytest.mark.parametrize("name", ["sharegpt", "sharegpt-hermes", "messages"])
def test_own_rows_are_seeds_with_the_same_turns(folder: Path, name: str) -> None:
    wanted = read_lines(folder / "default" / "trajectories.jsonl")
    seeds = read_seeds(folder / "default" / name)
    assert seeds.problems == []
    turns = [[turn.to_json() for turn in seed.conversation.body] for seed in seeds.seeds]
    assert turns == [expected["turns"] for expected in wanted]
    assert {len(seed.conversation.tools) for seed in seeds.seeds} == {15}


def test_what_a_format_cannot_hold_is_counted_on_the_card(tmp_path: Path) -> None:
    """In profile `simia` nothing checks the order of turns, and LLaMA-Factory would drop such rows in silence."""
    write_seeds(tmp_path / "seeds.json", range(3))

    def answer(request: ModelRequest) -> Turn:
        end = {1: "HUMAN: Thank you."}.get(find_case(request), "")
        return Turn(text=f"{write_answer(make_random(request))}\n{end}")

    with ScriptedModel(answer) as model:
        done = simulate(tmp_path, model, "--per-seed", "1", "--profile", "simia", "--simulate-pause", "0")
    reason = "turns of user and model do not alternate"
    assert done.lines[-1]["left_out"]["sharegpt-hermes"] == {reason: 1}, done.stderr
    assert done.lines[-1]["rows"] == {"sharegpt": 2, "sharegpt-hermes": 2, "messages": 3, "parquet": 3}
    card = (tmp_path / "out" / "sharegpt" / "README.md").read_text()
    assert f"1 trajectory left out of this format: {reason}" in card
    assert len(read_as_llama_factory(tmp_path / "out" / "sharegpt")) == 2


def test_only_the_formats_that_are_named_are_written(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", [1])
    with ScriptedModel(answer_well) as model:
        done = simulate(tmp_path, model, "--per-seed", "1", "--format", "messages,parquet")
        assert done.lines[-1]["rows"] == {"messages": 1, "parquet": 1}, done.stderr
        assert not (tmp_path / "out" / "sharegpt").exists()
        wrong = simulate(tmp_path, model, "--per-seed", "1", "--format", "messages,csv")
    assert (wrong.exit_code, "--format: csv is unknown" in wrong.stderr) == (2, True)


def test_calls_at_once_are_kept_where_the_pack_permits_them(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", [1])
    schema = {"type": "object", "properties": {"lamp": {"type": "string"}}, "required": ["lamp"]}
    tool = {"name": "switch", "description": "Switch a lamp.", "parameters": schema}
    write_pack(tmp_path / "lamps", tools=[tool], format="parallel_calls = true\nturn_tolerance = 5\n")
    text = (
        "HUMAN: Switch both lamps.\nFUNCTION_CALL: <think>Both.</think>\n"
        '[{"name": "switch", "arguments": {"lamp": "a"}}, {"name": "switch", "arguments": {"lamp": "b"}}]\n'
        "OBSERVATION: on, on\nASSISTANT: They are on."
    )

    def answer(request: ModelRequest) -> Turn:
        return answer_well(request) if is_verdict(request) else Turn(text=text)

    with ScriptedModel(answer) as model:
        done = simulate(tmp_path, model, *PLAIN, "--domain", "lamps")
    assert (done.exit_code, done.lines[-1]["dropped"]) == (0, {}), done.stderr
    calls = [call for text in read_as_llama_factory(tmp_path / "out" / "sharegpt")[0]["texts"] for call in [text]]
    assert calls[0] == '<think>\nBoth.\n</think>\n\n<switch {"lamp": "a"}><switch {"lamp": "b"}>'
    messages = read_lines(tmp_path / "out" / "messages" / "train.jsonl")[0]["messages"]
    assert [m.get("tool_call_id") for m in messages if m["role"] == "tool"] == ["call_1", "call_2"]
    hermes = read_lines(tmp_path / "out" / "sharegpt-hermes" / "train.jsonl")[0]["conversations"][1]["value"]
    assert hermes.count("<tool_call>") == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sharegpt", "sharegpt-hermes", "messages", "parquet"])
def test_datasets_loads_every_row(folder: Path, tmp_path: Path, name: str) -> None:
    program = (
        "import json, sys\nfrom datasets import load_dataset\n"
        "for row in load_dataset(sys.argv[1], split='train'):\n"
        "    print(json.dumps({'id': row['id'], 'environment': row['environment']}))\n"
    )
    command = install("datasets==5.2.0", sys.executable)
    for profile in ("default", "simia"):
        output = run_command(command, "python", "-c", program, folder / profile / name, cwd=tmp_path)
        rows = [json.loads(line) for line in output.splitlines() if line.startswith('{"id"')]
        assert len(rows) == N_SEEDS * N_SAMPLES
        assert {row["environment"] for row in rows} == {"simulated"}


def test_answers_of_the_scripted_simulator_differ() -> None:
    texts = {write_answer(random.Random(number)) for number in range(50)}
    assert len(texts) == 50
