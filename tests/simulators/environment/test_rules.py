"""What is answered and checked by rule: broken calls, invalid calls, repeated queries, contradicting results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from simulators.domains.pack import load_pack
from simulators.environment.agent_turn import parse_agent_text, read_agent_calls
from tests.samplers.scripted_model import ModelRequest, Turn
from tests.simulators.environment.making import EMAIL, FIND, ORDER, begin, play, play_episodes, say, tag
from tests.simulators.making import read_prompt
from tests.simulators.test_packs import copy_pack

CANCEL = {"name": "cancel_pending_order", "arguments": {"order_id": "#W4000000", "reason": "no longer needed"}}
BROKEN = {
    "no JSON": ("<tool_call>{broken</tool_call>", "no JSON"),
    "no end": ('<tool_call>{"name": "calculate", "arguments": {}}', "do not pair"),
    "no beginning": ('{"name": "calculate", "arguments": {}}</tool_call>', "do not pair"),
    "nested": ("<tool_call><tool_call>{}</tool_call>", "do not pair"),
    "no name": ('<tool_call>{"arguments": {}}</tool_call>', "without a name"),
    "no object": ('<tool_call>{"name": "calculate", "arguments": [1]}</tool_call>', "are no object"),
    "no tags": ('{"name": "calculate", "arguments": {"expression": "1"}}', "outside of its tags"),
    "no tags and no end": ('{"name": "calculate"', "outside of its tags"),
    "in a fence": ('Let me see.\n```json\n{"name": "calculate", "arguments": {}}\n```', "outside of its tags"),
    "another marker": ('FUNCTION_CALL: {"name": "x"}', "outside of its tags"),
    "empty": ("  ", "the turn is empty"),
    "thought alone": ("<think>Hm.</think>", "the turn is empty"),
    "several": (tag(ORDER, ORDER), "2 calls in one turn"),
    "unknown tool": (
        tag({"name": "refund", "arguments": {}}),
        "there is no tool refund; tools: find_user_id_by_email,",
    ),
    "missing": (tag({"name": "get_order_details", "arguments": {}}), "get_order_details without order_id"),
    "too many": (tag({**ORDER, "arguments": {**ORDER["arguments"], "all": True}}), "get_order_details with all"),
    "type": (tag({"name": "get_order_details", "arguments": {"order_id": 4}}), "4 is not of type 'string'"),
    "format": (tag({"name": "find_user_id_by_email", "arguments": {"email": "ana"}}), "contains no '@'"),
    "unseen id": (tag({"name": "get_order_details", "arguments": {"order_id": "#W1"}}), "order_id #W1 was not found"),
}


def fail(request: ModelRequest) -> Turn:
    raise AssertionError(f"the simulator was called: {read_prompt(request)[-500:]}")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_call_is_answered_by_an_error_that_says_so(tmp_path: Path, name: str) -> None:
    text, expected = BROKEN[name]
    with play_episodes(tmp_path, fail) as (service, model):
        said = say(service, begin(service, seed=0), text)
        assert not model.requests
    assert said["observation"].startswith("Error: ")
    assert expected in said["observation"]
    assert (said["answered_by"], said["done"], said["turn"]) == ("rule", False, 1)


@pytest.mark.parametrize("name", [name for name in BROKEN if name not in ("empty", "thought alone")])
def test_profile_simia_leaves_them_to_the_simulator(tmp_path: Path, name: str) -> None:
    def explain(request: ModelRequest) -> Turn:
        assert "answer with an error of the tool interface that says what is wrong" in read_prompt(request)
        return Turn(text="Error: not like that")

    with play_episodes(tmp_path, explain, profile="simia") as (service, _):
        said = say(service, begin(service, seed=0), BROKEN[name][0])
    assert (said["observation"], said["answered_by"]) == ("Error: not like that", "simulator")


@pytest.mark.parametrize(
    "text",
    ["Your total is {20}.", 'You said "name": what is it?', "A <b>tag</b>", "Use it as {name}, please.", "[1, 2]"],
)
def test_words_for_the_person_are_no_call(text: str) -> None:
    turn = parse_agent_text(text)
    assert (turn.problem, turn.calls, turn.text) == ("", (), text)


@pytest.mark.parametrize(
    "call",
    [
        {"name": "get_order_details", "arguments": {"order_id": "#W4000000"}},
        {"name": "get_order_details", "arguments": '{"order_id": "#W4000000"}'},
        {
            "type": "function",
            "id": "c1",
            "function": {"name": "get_order_details", "arguments": '{"order_id": "#W4000000"}'},
        },
    ],
)
def test_calls_that_were_parsed_before_are_read(call: dict[str, Any]) -> None:
    turn = read_agent_calls("Let me look.", [call])
    assert [parsed_call.arguments for parsed_call in turn.calls] == [{"order_id": "#W4000000"}]
    assert turn.raw == "Let me look.\n" + tag(ORDER)
    assert not turn.problem


def test_parsed_calls_that_are_broken_are_answered_by_an_error(tmp_path: Path) -> None:
    turn = read_agent_calls("", [{"function": {"name": "get_order_details", "arguments": "{broken"}}])
    with play_episodes(tmp_path, fail) as (service, _):
        assert "arguments that are no JSON" in say(service, begin(service, seed=0), turn)["observation"]


def test_an_id_may_be_used_once_somebody_gave_it(tmp_path: Path) -> None:
    with play_episodes(tmp_path) as (service, _):
        episode = begin(service, seed=0)
        assert "was not found" in say(service, episode, tag(ORDER))["observation"]
        assert say(service, episode, "Your email?")["observation"] == EMAIL
        assert json.loads(say(service, episode, tag(ORDER))["observation"])["order_id"] == "#W4000000"


def test_an_id_that_was_made_up_stays_unknown_though_an_error_has_named_it(tmp_path: Path) -> None:
    made_up = {**ORDER, "arguments": {"order_id": "#W1"}}
    with play_episodes(tmp_path) as (service, _):
        episode = begin(service, seed=0)
        first, second = (say(service, episode, tag(made_up)) for _ in range(2))
        assert first["observation"] == second["observation"] == "Error: order_id #W1 was not found"
        assert (second["answered_by"], second["done"]) == ("rule", False)


def test_a_query_has_the_same_result_until_something_is_changed(tmp_path: Path) -> None:
    numbers = iter(range(100))

    def count(request: ModelRequest) -> Turn:
        turn = play(request)
        return Turn(text=turn.text.replace("20", str(next(numbers))))

    with play_episodes(tmp_path, count) as (service, model):
        episode = begin(service, seed=0)
        say(service, episode, "Your email?")
        first = say(service, episode, tag(ORDER))
        again = say(service, episode, tag(ORDER, before="Let me look again.\n"))
        assert (again["observation"], again["answered_by"]) == (first["observation"], "rule")
        say(service, episode, tag(CANCEL))
        third = say(service, episode, tag(ORDER))
        assert (third["answered_by"], third["observation"] == first["observation"]) == ("simulator", False)
        assert len(model.requests) == 4


@pytest.mark.parametrize("wrong", ["#W9999999", "#w9999999 "])
def test_a_result_with_another_id_is_requested_again(tmp_path: Path, wrong: str) -> None:
    answers = iter([json.dumps({"order_id": wrong}), json.dumps({"order_id": "W4000000", "status": "pending"})])

    def answer(request: ModelRequest) -> Turn:
        return (
            Turn(text=EMAIL)
            if "Your email?" in read_prompt(request).rpartition("latest turn")[2]
            else Turn(text=next(answers))
        )

    with play_episodes(tmp_path, answer) as (service, model):
        episode = begin(service, seed=0)
        say(service, episode, "Your email?")
        assert json.loads(say(service, episode, tag(ORDER))["observation"])["status"] == "pending"
        record = service.get(episode)
    assert [call["used"] for call in record["calls"]] == [True, False, True]
    assert len(model.requests) == 3


def test_results_that_contradict_their_calls_give_null(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Turn:
        turn = play(request)
        return Turn(text=turn.text.replace('"order_id": "#W4', '"order_id": "#W5'))

    with play_episodes(tmp_path, answer) as (service, _):
        episode = begin(service, seed=0)
        say(service, episode, "Your email?")
        failed = say(service, episode, tag(ORDER))
    assert (failed["reward"], failed["done"]) == (None, True)
    assert "has order_id #W5000000, and #W4000000 was given" in failed["infrastructure_error"]


def test_several_calls_of_a_turn_are_answered_in_their_order(tmp_path: Path) -> None:
    """Errors by rule and results of one request of the simulator stand where their calls stand."""
    pack = load_pack("retail")
    pack = replace(pack, format=pack.format.model_copy(update={"parallel_calls": True}))
    prompts: list[str] = []

    def answer(request: ModelRequest) -> Turn:
        prompts.append(read_prompt(request))
        if "find_user_id_by_email" in prompts[-1].rpartition("The turn has")[2]:
            return Turn(text="<tool_response>\nana\n</tool_response>\n<tool_response>\n[]\n</tool_response>")
        return Turn(text=EMAIL)

    with play_episodes(tmp_path, answer, pack=pack) as (service, _):
        episode = begin(service, seed=0)
        say(service, episode, "Your email?")
        products = {"name": "list_all_product_types", "arguments": {}}
        said = say(service, episode, tag(FIND, {"name": "refund", "arguments": {}}, products))
    first, second, third = said["observation"].split("\n")
    assert (first, second.split(";")[0], third) == ("ana", "Error: there is no tool refund", "[]")
    assert said["answered_by"] == "simulator"
    assert "The turn has 2 calls that need a result" in prompts[-1]


@pytest.mark.parametrize("texts", [("one result",), ("<tool_response>a</tool_response>",)])
def test_too_few_results_are_not_used(tmp_path: Path, texts: Sequence[str]) -> None:
    pack = load_pack("retail")
    pack = replace(pack, format=pack.format.model_copy(update={"parallel_calls": True}))
    with play_episodes(tmp_path, lambda _: Turn(text=texts[0]), pack=pack) as (service, _):
        products = {"name": "list_all_product_types", "arguments": {}}
        failed = say(service, begin(service, seed=0), tag(products, {**products, "arguments": {}}))
    assert failed["reward"] is None
    assert "results, and 2 calls were made" in failed["infrastructure_error"]


def test_rules_can_be_switched_off(tmp_path: Path) -> None:
    with play_episodes(tmp_path, lambda _: Turn(text="Error: odd"), rules=False) as (service, _):
        assert say(service, begin(service, seed=0), "<tool_call>{")["observation"] == "Error: odd"


def test_queries_of_a_pack_must_be_tools(tmp_path: Path) -> None:
    folder = copy_pack(tmp_path / "retail")
    path = folder / "validators.toml"
    path.write_text(path.read_text().replace('"calculate"', '"guess"'))
    with pytest.raises(InputError, match="queries: there is no tool guess"):
        load_pack(str(folder))
