"""Profile `default`: of 100 conversations with 20 errors of known kind exactly these 20 fall, each under its reason."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import (
    PLAIN,
    accept_seed,
    find_case,
    is_verdict,
    make_seed,
    read_lines,
    read_prompt,
    simulate,
    write_answer,
    write_seeds,
)

N_SEEDS = 100
UNFILTERED = ("--simulate-prefilter", "off", *PLAIN)
BENCHMARK_TEXT = "the quick envoy of Ruritania returned seven silver spoons to the shop on Monday"


def draw(number: int) -> random.Random:
    return random.Random(f"case {number}")


def change(**blocks: str) -> Callable[[int], Turn]:
    return lambda number: Turn(text=write_answer(draw(number), **blocks))


def make_call(name: str, **arguments: Any) -> str:
    return "FUNCTION_CALL: " + json.dumps({"name": name, "arguments": arguments})


def repeat_nearly(number: int) -> Turn:
    """The conversation of seed 1 with another last sentence."""
    return Turn(text=write_answer(draw(1)) + f" And thank you, number {number}.")


ERRORS: dict[int, tuple[str, Callable[[int], Turn]]] = {
    5: ("empty", lambda number: Turn(text=" \n")),
    10: ("truncated", lambda number: Turn(text=write_answer(draw(number))[:900], finish="length")),
    15: ("unparsable", lambda number: Turn(text="I cannot help with that.")),
    20: ("unparsable", lambda number: Turn(text="SYSTEM: You serve.\n\n" + write_answer(draw(number)))),
    25: ("empty-turn", change(question="ASSISTANT:")),
    30: ("duplicate", lambda number: Turn(text=write_answer(draw(0)))),
    35: ("several-calls", change(offer="ASSISTANT: <tool_call>{}</tool_call>")),
    40: ("several-calls", change(look='FUNCTION_CALL: [{"name": "get_order_details", "arguments": {}}]')),
    45: ("arguments", change(look='FUNCTION_CALL: {"name": "get_order_details", "arguments": "the order"}')),
    50: ("arguments", change(look='FUNCTION_CALL: {"name": "list_all_product_types"}')),
    55: ("call", change(look="FUNCTION_CALL: get_order_details(ORDER)")),
    60: ("unknown-tool", change(look=make_call("track_order", order_id="ORDER"))),
    65: ("argument-missing", change(cancel=make_call("cancel_pending_order", order_id="ORDER"))),
    70: ("argument-type", change(cancel=make_call("cancel_pending_order", order_id="ORDER", reason="not liked"))),
    75: ("argument-format", change(find=make_call("find_user_id_by_email", email="nobody"))),
    80: ("turn-order", change(order="")),
    85: ("turn-count", lambda number: Turn(text=f"HUMAN: Is {number} an order?\nASSISTANT: It is none.")),
    90: ("language", lambda number: Turn(text=translate(write_answer(draw(number))))),
    95: ("unseen-id", change(look=make_call("get_order_details", order_id="#W0000001"))),
    99: ("near-duplicate", repeat_nearly),
}


def translate(text: str) -> str:
    """Return a conversation in Chinese, with its markers."""
    chinese = "你好我想取消我的订单因为我下错了请你帮我看一下它的状态然后告诉我可以退回多少钱谢谢你的帮助"
    lines = text.splitlines()
    return "\n".join(
        f"{line.partition(':')[0]}: {chinese} {line.partition('W')[2][:7]}"
        if line.startswith(("HUMAN", "ASSISTANT"))
        else line
        for line in lines
    )


def answer(request: ModelRequest) -> Turn:
    if is_verdict(request):
        return accept_seed(request)
    number = find_case(request)
    _, make = ERRORS.get(number, ("", change()))
    return make(number)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("errors")
    write_seeds(folder / "seeds.json", range(N_SEEDS))
    with ScriptedModel(answer) as model:
        done = simulate(folder, model, *PLAIN)
    assert done.exit_code == 0, done.stderr
    (folder / "summary.json").write_text(json.dumps(done.lines[-1]))
    return folder


def test_exactly_the_erroneous_ones_fall_each_under_its_reason(folder: Path) -> None:
    seeds = {line["id"]: line["line"] - 1 for line in read_lines(folder / "out" / "seeds.jsonl")}
    dropped = read_lines(folder / "out" / "dropped.jsonl")
    assert {seeds[line["seed"]]: line["reason"] for line in dropped} == {n: reason for n, (reason, _) in ERRORS.items()}
    kept = {line["seed"]["line"] - 1 for line in read_lines(folder / "out" / "trajectories.jsonl")}
    assert kept == set(range(N_SEEDS)) - set(ERRORS)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["kept"], sum(summary["dropped"].values()), summary["planned"]) == (80, 20, 100)
    assert all(line["environment"] == "simulated" for line in dropped)


@pytest.mark.parametrize("name", ["sharegpt", "sharegpt-hermes", "messages"])
def test_ids_tools_and_turns_of_every_seed_are_in_the_provenance(folder: Path, name: str) -> None:
    seeds = {line["id"]: line for line in read_lines(folder / "out" / "seeds.jsonl")}
    rows = read_lines(folder / "out" / name / "train.jsonl")
    assert len(rows) == 80
    for row in rows:
        seed = seeds[row["based_on_sample"]]
        number = row["metadata"]["seed_line"] - 1
        assert (row["sample_turns"], row["generated_turns"]) == (12, 12) == (seed["turns"], 12)
        assert row["metadata"]["seed_tools"] == seed["tools"]
        assert seed["tools"] == ["find_user_id_by_email", "get_order_details", "cancel_pending_order"]
        assert row["metadata"]["tools_called"] == seed["tools"]
        assert (row["environment"], row["metadata"]["simulator"]) == ("simulated", "scripted")
        assert seed["file"] == row["metadata"]["seed_file"] == "seeds.json"
        assert seed["line"] == number + 1


def test_an_unusable_answer_is_requested_again_and_each_request_once(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", [1])
    texts = iter(["", "no markers", write_answer(draw(1))])
    with ScriptedModel(lambda request: Turn(text=next(texts))) as model:
        done = simulate(tmp_path, model, *UNFILTERED)
        assert (done.exit_code, done.lines[-1]["kept"], model.paid) == (0, 1, 3), done.stderr
        again = simulate(tmp_path, model, *UNFILTERED)
        assert (again.lines[-1]["kept"], again.lines[-1]["earlier"], model.paid) == (1, 1, 3)
    attempts = [(line["attempt"], line["text"] != "") for line in read_lines(tmp_path / "out" / "calls.jsonl")]
    assert attempts == [(1, False), (2, True), (3, True)]


def test_texts_of_a_benchmark_are_found_by_eight_words_in_a_row(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(3))
    (tmp_path / "bench.jsonl").write_text(json.dumps({"task": {"text": f"Once {BENCHMARK_TEXT}."}}) + "\n")

    def leak(request: ModelRequest) -> Turn:
        number = find_case(request)
        said = {
            0: "THE QUICK envoy of Ruritania, returned seven -- silver spoons",
            1: "the quick envoy of Ruritania left",
        }
        opening = f"HUMAN: {said.get(number, 'Hello')}. Please cancel ORDER."
        return Turn(text=write_answer(draw(number), opening=opening))

    with ScriptedModel(leak) as model:
        done = simulate(tmp_path, model, *UNFILTERED, "--simulate-benchmarks", "bench.jsonl")
    assert (done.exit_code, done.lines[-1]["dropped"]) == (0, {"benchmark": 1}), done.stderr
    dropped = read_lines(tmp_path / "out" / "dropped.jsonl")[0]
    assert dropped["detail"] == "'the quick envoy of ruritania returned seven silver' of bench.jsonl"


def test_a_failure_that_was_ordered_and_did_not_happen_drops_the_conversation(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(4))

    def half(request: ModelRequest) -> Turn:
        assert "One call fails on the way" in read_prompt(request)
        number = find_case(request)
        return Turn(text=write_answer(draw(number), failing=number % 2 == 0))

    with ScriptedModel(half) as model:
        done = simulate(tmp_path, model, *UNFILTERED[:-1], "1")
    assert (done.exit_code, done.lines[-1]["dropped"], done.lines[-1]["kept"]) == (0, {"no-failure": 2}, 2), done.stderr
    rows = read_lines(tmp_path / "out" / "messages" / "train.jsonl")
    assert all(row["metadata"]["failure"] for row in rows)
    assert all(any(m["content"].startswith("Error") for m in row["messages"] if m["role"] == "tool") for row in rows)


def test_each_switch_has_an_effect_of_its_own(tmp_path: Path) -> None:
    """The same answers with a step switched off, from the ledger of the first run."""
    (tmp_path / "seeds.json").write_text(json.dumps([make_seed(number) for number in (1, 95, 99)]))
    with ScriptedModel(answer) as model:
        first = simulate(tmp_path, model, *UNFILTERED)
        assert first.lines[-1]["dropped"] == {"near-duplicate": 1, "unseen-id": 1}, first.stderr
        no_ids = simulate(tmp_path, model, *UNFILTERED, "--simulate-seen-ids", "off")
        assert no_ids.lines[-1]["dropped"] == {"near-duplicate": 1}
        both = simulate(tmp_path, model, *UNFILTERED, "--simulate-seen-ids", "off", "--simulate-near-duplicates", "1")
        assert (both.lines[-1]["dropped"], both.lines[-1]["kept"]) == ({}, 3)
        assert model.paid == 3
