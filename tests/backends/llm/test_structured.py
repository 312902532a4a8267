"""Structured answers over real HTTP: a valid value or the problem, for all texts of a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from backends.llm.answers import AnswerCache
from backends.llm.base import Message
from backends.llm.client import MAX_ATTEMPTS, ChatModel
from backends.llm.meter import BudgetExceededError, TokenBudget, UsageMeter
from backends.llm.structured import StructuredAnswer, request_structured
from core.errors import InputError, Transient
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure

Client = Callable[..., ChatModel]


class Weather(BaseModel):
    """What the sky does."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})
    sky: Literal["clear", "cloudy"]
    degrees: int


QUESTION = (Message(role="system", text="Answer in JSON."), Message(role="user", text="How is the weather?"))
CLEAR = '{"sky": "clear", "degrees": 21}'


def query_weather(
    model: ChatModel, answers: AnswerCache | None = None, *, sample: int = 1, meter: UsageMeter | None = None
) -> StructuredAnswer[Weather]:
    return request_structured(model, QUESTION, Weather, meter=meter or UsageMeter(), sample=sample, answers=answers)


@pytest.mark.parametrize(
    "text",
    [
        CLEAR,
        f"```json\n{CLEAR}\n```",
        f"Here it is:\n\n```\n{CLEAR}\n```\nAnything else?",
        f"The answer is {CLEAR}.",
        f"<think>{{'sky': 'cloudy'}}? No.</think>\n{CLEAR}",
        "{'sky': 'clear', 'degrees': 21,}",
        '{"sky": "clear", "degrees": 21',
        '{sky: "clear", degrees: 21}',
        '{"sky": "clear", "degrees": "21", "wind": "none"}',
    ],
)
def test_wrapped_and_malformed_answers_are_parsed(server: ModelServer, client: Client, text: str) -> None:
    server.set_answers(ScriptedAnswer(text=text))
    answered = query_weather(client())
    assert answered.value == Weather(sky="clear", degrees=21)
    assert (answered.problem, answered.is_cached, len(server.requests)) == ("", False, 1)


def test_the_schema_is_sent_to_the_endpoint(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(text=CLEAR))
    query_weather(client())
    held = server.requests[0]["response_format"]
    assert held["type"] == "json_schema"
    assert held["json_schema"]["strict"] is True
    assert held["json_schema"]["schema"]["properties"]["sky"]["enum"] == ["clear", "cloudy"]
    assert held["json_schema"]["schema"]["additionalProperties"] is False


def test_an_endpoint_without_schemas_receives_none_from_then_on(server: ModelServer, client: Client) -> None:
    server.supports_schemas = False
    server.set_answers(ScriptedAnswer(text=CLEAR))
    model = client()
    assert query_weather(model).value == query_weather(model).value == Weather(sky="clear", degrees=21)
    assert ["response_format" in request for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ('{"sky": "green", "degrees": 21}', "sky: Input should be 'clear' or 'cloudy'"),
        ('{"sky": "clear"}', "degrees: Field required"),
        ("It is a fine day.", "no JSON object"),
        ("", "no JSON object"),
        ("[1, 2, 3]", "no JSON object"),
        ('{"a":' * 5000, "no JSON object"),
    ],
)
def test_validation_errors_are_sent_back_once(server: ModelServer, client: Client, bad: str, problem: str) -> None:
    server.set_answers(ScriptedAnswer(text=bad), ScriptedAnswer(text=CLEAR))
    answered = query_weather(client())
    assert answered.value == Weather(sky="clear", degrees=21)
    roles = [message["role"] for message in server.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert (
        problem in server.requests[1]["messages"][-1]["content"]
        or "no JSON object" in server.requests[1]["messages"][-1]["content"]
    )
    assert all(message["content"] for message in server.requests[1]["messages"])


def test_a_second_invalid_answer_is_returned_as_a_problem(server: ModelServer, client: Client) -> None:
    server.set_answers(
        ScriptedAnswer(text="no"), ScriptedAnswer(text='{"sky": "green", "degrees": 21}'), ScriptedAnswer(text=CLEAR)
    )
    answered = query_weather(client())
    assert answered.value is None
    assert answered.problem == "sky: Input should be 'clear' or 'cloudy'"
    assert len(server.requests) == 2
    assert [message.role for message in answered.messages] == ["system", "user", "assistant", "user", "assistant"]


def test_an_answer_that_was_cut_off_is_not_repaired(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(text='{"sky": "clear", "degrees": 2', finish="length"))
    answered = query_weather(client())
    assert answered.value is None
    assert "cut off" in answered.problem


@pytest.mark.parametrize(
    "fault",
    [
        ScriptedFailure(status=500),
        ScriptedFailure(status=429, headers={"Retry-After": "0"}),
        ScriptedAnswer(text=CLEAR, cut=2),
    ],
)
def test_a_failing_endpoint_is_transient_and_not_an_answer(
    server: ModelServer, client: Client, fault: ScriptedAnswer | ScriptedFailure
) -> None:
    server.set_answers(fault)
    with pytest.raises(Transient):
        query_weather(client())
    assert len(server.requests) == MAX_ATTEMPTS


def test_a_rejected_key_is_an_input_error(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedFailure(status=401, message="Incorrect API key"))
    with pytest.raises(InputError):
        query_weather(client())


def test_no_second_request_is_sent_when_the_budget_is_used_up(server: ModelServer, client: Client) -> None:
    server.set_answers(
        ScriptedAnswer(text="no", usage={"prompt_tokens": 90, "completion_tokens": 10}), ScriptedAnswer(text=CLEAR)
    )
    with pytest.raises(BudgetExceededError):
        query_weather(client(), meter=UsageMeter(TokenBudget(tokens=100)))
    assert len(server.requests) == 1


def test_a_valid_answer_is_cached_by_prompt(server: ModelServer, client: Client, tmp_path: Path) -> None:
    server.set_answers(
        ScriptedAnswer(text="no"), ScriptedAnswer(text=CLEAR), ScriptedAnswer(text=CLEAR.replace("21", "22"))
    )
    meter, answers = UsageMeter(), AnswerCache(tmp_path)
    first = query_weather(client(), answers)
    again = query_weather(client(), AnswerCache(tmp_path), meter=meter)
    assert (first.value, first.is_cached) == (again.value, False)
    assert again.is_cached
    assert (len(server.requests), meter.tokens) == (2, 0)
    other = query_weather(client(), answers, sample=2)
    assert other.value == Weather(sky="clear", degrees=22)
    query_weather(client(model="another"), answers)
    assert len(server.requests) == 4


def test_invalid_answers_are_not_cached_and_damaged_ones_are_requested_again(
    server: ModelServer, client: Client, tmp_path: Path
) -> None:
    answers = AnswerCache(tmp_path)
    server.set_answers(ScriptedAnswer(text="no"))
    query_weather(client(), answers)
    assert not list(tmp_path.rglob("*.zst"))
    server.set_answers(ScriptedAnswer(text=CLEAR))
    query_weather(client(), answers)
    (file,) = tmp_path.rglob("*.zst")
    file.write_bytes(file.read_bytes()[:-3])
    assert not query_weather(client(), answers).is_cached
    assert query_weather(client(), answers).is_cached


def test_another_model_of_the_endpoint_has_its_own_features_and_is_stopped_with_the_first(
    server: ModelServer, client: Client
) -> None:
    server.supports_schemas = False
    server.set_answers(ScriptedAnswer(text=CLEAR))
    model = client()
    query_weather(model)
    second = model.get_model("second")
    assert second.name == "second"
    assert model.get_model("second") is second
    assert second.get_model("scripted") is model
    query_weather(second)
    assert [(request["model"], "response_format" in request) for request in server.requests] == [
        ("scripted", True),
        ("scripted", False),
        ("second", True),
        ("second", False),
    ]
    assert json.dumps(server.requests[-1]["messages"]) == json.dumps(server.requests[0]["messages"])
