"""Answers that are data, over real HTTP: whatever a model writes, one gets what was asked for or the reason why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from backends.llm.base import Message
from backends.llm.client import ATTEMPTS, ChatModel
from backends.llm.meter import Budget, BudgetSpentError, Meter
from backends.llm.structured import Answered, structured
from mergemill.errors import InputError, Transient
from taskdb.answers import Answers
from tests.llm.server import Fails, ModelServer, Says

Client = Callable[..., ChatModel]


class Weather(BaseModel):
    """What the sky does."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})
    sky: Literal["clear", "cloudy"]
    degrees: int


QUESTION = (Message(role="system", text="Answer in JSON."), Message(role="user", text="How is the weather?"))
CLEAR = '{"sky": "clear", "degrees": 21}'


def ask(
    model: ChatModel, answers: Answers | None = None, *, sample: int = 1, meter: Meter | None = None
) -> Answered[Weather]:
    return structured(model, QUESTION, Weather, meter=meter or Meter(), sample=sample, answers=answers)


@pytest.mark.parametrize(
    "text",
    [
        CLEAR, f"```json\n{CLEAR}\n```", f"Here it is:\n\n```\n{CLEAR}\n```\nAnything else?", f"The answer is {CLEAR}.",
        f"<think>{{'sky': 'cloudy'}}? No.</think>\n{CLEAR}", "{'sky': 'clear', 'degrees': 21,}",
        '{"sky": "clear", "degrees": 21',
        '{sky: "clear", degrees: 21}', '{"sky": "clear", "degrees": "21", "wind": "none"}',
    ],
)  # fmt: skip
def test_an_answer_is_read_however_it_is_wrapped_or_broken(server: ModelServer, client: Client, text: str) -> None:
    server.says(Says(text=text))
    answered = ask(client())
    assert answered.value == Weather(sky="clear", degrees=21)
    assert (answered.problem, answered.kept, len(server.asked)) == ("", False, 1)


def test_the_endpoint_is_given_the_schema(server: ModelServer, client: Client) -> None:
    server.says(Says(text=CLEAR))
    ask(client())
    held = server.asked[0]["response_format"]
    assert held["type"] == "json_schema"
    assert held["json_schema"]["strict"] is True
    assert held["json_schema"]["schema"]["properties"]["sky"]["enum"] == ["clear", "cloudy"]
    assert held["json_schema"]["schema"]["additionalProperties"] is False


def test_an_endpoint_without_schemas_is_asked_without_from_then_on(server: ModelServer, client: Client) -> None:
    server.shapes = False
    server.says(Says(text=CLEAR))
    model = client()
    assert ask(model).value == ask(model).value == Weather(sky="clear", degrees=21)
    assert ["response_format" in request for request in server.asked] == [True, False, False]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ('{"sky": "green", "degrees": 21}', "sky: Input should be 'clear' or 'cloudy'"),
        ('{"sky": "clear"}', "degrees: Field required"),
        ("It is a fine day.", "no JSON object"),
        ("", "no JSON object"),
        ("[1, 2, 3]", "no JSON object"),
        ('{"a":' * 5000, "no JSON object"),
    ],
)
def test_what_does_not_fit_is_told_back_once(server: ModelServer, client: Client, bad: str, told: str) -> None:
    server.says(Says(text=bad), Says(text=CLEAR))
    answered = ask(client())
    assert answered.value == Weather(sky="clear", degrees=21)
    roles = [message["role"] for message in server.asked[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert (
        told in server.asked[1]["messages"][-1]["content"]
        or "no JSON object" in server.asked[1]["messages"][-1]["content"]
    )
    assert all(message["content"] for message in server.asked[1]["messages"])


def test_what_does_not_fit_twice_is_refused_with_the_reason(server: ModelServer, client: Client) -> None:
    server.says(Says(text="no"), Says(text='{"sky": "green", "degrees": 21}'), Says(text=CLEAR))
    answered = ask(client())
    assert answered.value is None
    assert answered.problem == "sky: Input should be 'clear' or 'cloudy'"
    assert len(server.asked) == 2
    assert [message.role for message in answered.talk] == ["system", "user", "assistant", "user", "assistant"]


def test_an_answer_that_was_cut_at_the_limit_is_not_repaired(server: ModelServer, client: Client) -> None:
    server.says(Says(text='{"sky": "clear", "degrees": 2', finish="length"))
    answered = ask(client())
    assert answered.value is None
    assert "cut off" in answered.problem


@pytest.mark.parametrize(
    "fault", [Fails(status=500), Fails(status=429, headers={"Retry-After": "0"}), Says(text=CLEAR, cut=2)]
)
def test_an_endpoint_that_fails_is_transient_and_no_answer(
    server: ModelServer, client: Client, fault: Says | Fails
) -> None:
    server.says(fault)
    with pytest.raises(Transient):
        ask(client())
    assert len(server.asked) == ATTEMPTS


def test_a_refused_key_is_the_users_to_mend(server: ModelServer, client: Client) -> None:
    server.says(Fails(status=401, message="Incorrect API key"))
    with pytest.raises(InputError):
        ask(client())


def test_the_second_question_is_not_asked_when_the_budget_is_spent(server: ModelServer, client: Client) -> None:
    server.says(Says(text="no", usage={"prompt_tokens": 90, "completion_tokens": 10}), Says(text=CLEAR))
    with pytest.raises(BudgetSpentError):
        ask(client(), meter=Meter(Budget(tokens=100)))
    assert len(server.asked) == 1


def test_a_good_answer_is_kept_for_who_asks_the_same(server: ModelServer, client: Client, tmp_path: Path) -> None:
    server.says(Says(text="no"), Says(text=CLEAR), Says(text=CLEAR.replace("21", "22")))
    meter, answers = Meter(), Answers(tmp_path)
    first = ask(client(), answers)
    again = ask(client(), Answers(tmp_path), meter=meter)
    assert (first.value, first.kept) == (again.value, False)
    assert again.kept
    assert (len(server.asked), meter.tokens) == (2, 0)
    other = ask(client(), answers, sample=2)
    assert other.value == Weather(sky="clear", degrees=22)
    ask(client(model="another"), answers)
    assert len(server.asked) == 4


def test_no_refused_answer_is_kept_and_damage_is_asked_again(
    server: ModelServer, client: Client, tmp_path: Path
) -> None:
    answers = Answers(tmp_path)
    server.says(Says(text="no"))
    ask(client(), answers)
    assert not list(tmp_path.rglob("*.zst"))
    server.says(Says(text=CLEAR))
    ask(client(), answers)
    (file,) = tmp_path.rglob("*.zst")
    file.write_bytes(file.read_bytes()[:-3])
    assert not ask(client(), answers).kept
    assert ask(client(), answers).kept


def test_another_model_at_the_same_place_learns_for_itself_and_stops_with_the_first(
    server: ModelServer, client: Client
) -> None:
    server.shapes = False
    server.says(Says(text=CLEAR))
    model = client()
    ask(model)
    second = model.other("second")
    assert second.name == "second"
    assert model.other("second") is second
    assert second.other("scripted") is model
    ask(second)
    assert [(one["model"], "response_format" in one) for one in server.asked] == [
        ("scripted", True), ("scripted", False), ("second", True), ("second", False)
    ]  # fmt: skip
    assert json.dumps(server.asked[-1]["messages"]) == json.dumps(server.asked[0]["messages"])
