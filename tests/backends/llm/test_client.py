"""Requests to a model over real HTTP: replies and errors for all behaviours of an endpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from backends.llm.base import ContextLengthError, Message, ModelReply, Tool
from backends.llm.client import MAX_ATTEMPTS, ChatModel
from backends.llm.error_responses import parse_retry_after
from backends.llm.meter import BudgetExceededError, TokenBudget, UsageMeter
from core.errors import CancelledRunError, InputError, Transient
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure, ScriptedResponse, ScriptedToolCall

Client = Callable[..., ChatModel]
RUN = Tool(
    name="run",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
HELLO = (Message(role="system", text="Be brief."), Message(role="user", text="Hello"))


def query_model(
    model: ChatModel, *tools: Tool, meter: UsageMeter | None = None, deadline: float | None = None
) -> ModelReply:
    return model.complete(HELLO, tools, meter=meter or UsageMeter(), deadline=deadline)


# ------------------------------------------------------------------------------------------------------- good answers


@pytest.mark.parametrize("stream", [True, False])
def test_a_text_is_complete_with_its_tokens_and_cost(server: ModelServer, client: Client, stream: bool) -> None:
    server.stream = stream
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 600}}
    server.set_answers(ScriptedAnswer(text="Good evening, äöü €", usage=usage))
    meter = UsageMeter()
    reply = query_model(client(llm_price_prompt=2, llm_price_cached=0.5, llm_price_completion=10), meter=meter)
    assert (reply.text, reply.finish_reason, reply.tool_calls) == ("Good evening, äöü €", "stop", ())
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens, reply.usage.completion_tokens) == (1000, 600, 50)
    assert reply.cost == pytest.approx((400 * 2 + 600 * 0.5 + 50 * 10) / 1e6)
    assert meter.cost == reply.cost
    assert meter.tokens == 1050
    assert server.requests[-1]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]


@pytest.mark.parametrize("stream", [True, False])
def test_tool_calls_are_assembled_from_chunks(server: ModelServer, client: Client, stream: bool) -> None:
    server.stream = stream
    calls = (
        ScriptedToolCall("run", {"command": "ls -la /testbed"}),
        ScriptedToolCall("run", {"command": "cat setup.py"}),
    )
    server.set_answers(ScriptedAnswer(text="I look around.", calls=calls))
    reply = query_model(client(), RUN)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("run", {"command": "ls -la /testbed"}),
        ("run", {"command": "cat setup.py"}),
    ]
    assert len({call.id for call in reply.tool_calls}) == 2
    assert server.requests[-1]["tools"][0]["function"]["parameters"] == RUN.parameters


def test_tool_results_are_sent_with_the_id_of_their_call(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall("run", {"command": "ls"}),)), ScriptedAnswer(text="done"))
    model = client()
    first = query_model(model, RUN)
    result = Message(role="tool", text="setup.py", tool_call_id=first.tool_calls[0].id, tool_name="run")
    assert model.complete([*HELLO, first.message, result], [RUN], meter=UsageMeter()).text == "done"
    call, answer = server.requests[-1]["messages"][-2:]
    assert call["tool_calls"][0]["id"] == answer["tool_call_id"]
    assert call["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command": "ls"}'}


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"command":"ls","path": "\u00e9t\u00e9"}', '{"command":"ls","path": "\u00e9t\u00e9"}'),
        ("{'command': 'ls'}", '{"command": "ls"}'),
        ('"{\\"command\\": \\"ls\\"}"', '{"command": "ls"}'),
        ("I would like to run ls", "{}"),
    ],
)
def test_arguments_go_back_as_the_model_wrote_them_unless_a_server_would_reject_them(
    server: ModelServer, client: Client, written: str, sent: str
) -> None:
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall("run", written),)), ScriptedAnswer(text="done"))
    model = client()
    first = query_model(model, RUN)
    result = Message(role="tool", text="setup.py", tool_call_id=first.tool_calls[0].id, tool_name="run")
    model.complete([*HELLO, first.message, result], [RUN], meter=UsageMeter())
    assert server.requests[-1]["messages"][-2]["tool_calls"][0]["function"]["arguments"] == sent


def test_tokens_that_the_endpoint_does_not_count_are_estimated(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(text="x" * 400, usage=None))
    usage = query_model(client()).usage
    assert usage.estimated
    assert usage.completion_tokens == 100
    assert usage.prompt_tokens > 0


# ------------------------------------------------------------------------------------------------- broken tool calls


@pytest.mark.parametrize(
    "broken",
    [
        "{'command': 'ls'}",
        '{"command": "ls"',
        '{command: "ls",}',
        '```json\n{"command": "ls"}\n```',
        '"{\\"command\\": \\"ls\\"}"',
    ],
)
def test_broken_arguments_are_repaired(server: ModelServer, client: Client, broken: str) -> None:
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall("run", broken),)))
    assert query_model(client(), RUN).tool_calls[0].arguments == {"command": "ls"}


@pytest.mark.parametrize("broken", ["I would like to run ls", "[1, 2]", "42"])
def test_unparsable_arguments_are_reported(server: ModelServer, client: Client, broken: str) -> None:
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall("run", broken),)))
    call = query_model(client(), RUN).tool_calls[0]
    assert call.arguments is None
    assert "not a JSON object" in call.problem


def test_a_call_that_was_cut_off_is_not_repaired(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall("run", '{"command": "rm -rf /tmp'),), finish="length"))
    call = query_model(client(), RUN).tool_calls[0]
    assert call.arguments is None
    assert "cut off" in call.problem


def test_a_call_without_a_name_or_with_a_wrong_one_is_a_reply(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall("sudo", {"command": "ls"}),)))
    assert query_model(client(), RUN).tool_calls[0].name == "sudo"


# ----------------------------------------------------------------------------------------------- models without tools


def test_a_model_without_tool_calls_receives_tools_as_text(server: ModelServer, client: Client) -> None:
    server.supports_tools = False
    server.set_answers(
        ScriptedAnswer(text='I look.\n\n```tool\n{"name": "run", "arguments": {"command": "ls"}}\n```\n')
    )
    model = client()
    first = query_model(model, RUN)
    assert first.text == "I look."
    assert [(call.name, call.arguments) for call in first.tool_calls] == [("run", {"command": "ls"})]
    assert ["tools" in request for request in server.requests] == [True, False]
    system, user = server.requests[-1]["messages"]
    assert system["content"].startswith("Be brief.")
    assert '"command"' in system["content"]
    assert user == {"role": "user", "content": "Hello"}

    result = Message(role="tool", text="setup.py", tool_call_id=first.tool_calls[0].id, tool_name="run")
    model.complete([*HELLO, first.message, result], [RUN], meter=UsageMeter())
    assert len(server.requests) == 3
    roles = [message["role"] for message in server.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert server.requests[-1]["messages"][-1]["content"] == "Result of `run`:\nsetup.py"
    assert '```tool\n{"name": "run"' in server.requests[-1]["messages"][-2]["content"]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "run", "arguments": {"command": "ls"}}\n```',
        '```\n{"name": "run", "parameters": {"command": "ls"}}\n```',
        '<tool_call>\n{"name": "run", "arguments": {"command": "ls"}}\n</tool_call>',
        '```tool\n{"name": "run", "arguments": {"command": "ls",}}',
        "```tool\n{'name': 'run', 'arguments': {'command': 'ls'}}\n```",
    ],
)
def test_text_tool_calls_are_parsed_in_any_fence(server: ModelServer, client: Client, text: str) -> None:
    server.supports_tools = False
    server.set_answers(ScriptedAnswer(text=text))
    assert query_model(client(), RUN).tool_calls[0].arguments == {"command": "ls"}


@pytest.mark.parametrize(
    "text", ['```json\n{"name": "left-pad", "version": "1.0"}\n```', "```sh\nls\n```", "Just words."]
)
def test_other_blocks_are_not_tool_calls(server: ModelServer, client: Client, text: str) -> None:
    server.supports_tools = False
    server.set_answers(ScriptedAnswer(text=text))
    reply = query_model(client(), RUN)
    assert (reply.text, reply.tool_calls) == (text, ())


def test_an_unparsable_block_is_reported(server: ModelServer, client: Client) -> None:
    server.supports_tools = False
    server.set_answers(ScriptedAnswer(text="```tool\nrun ls\n```"))
    call = query_model(client(), RUN).tool_calls[0]
    assert call.arguments is None
    assert "JSON" in call.problem


# ------------------------------------------------------------------------------------------------------------- faults

STREAM = {"Content-Type": "text/event-stream"}
LIMITED = ScriptedFailure(status=429, message="slow down", headers={"Retry-After": "0"})


@pytest.mark.parametrize(
    "fault",
    [
        ScriptedFailure(status=500),
        ScriptedFailure(status=502, raw=b"<html>Bad gateway</html>"),
        ScriptedFailure(status=503),
        ScriptedFailure(status=529),
        LIMITED,
        ScriptedFailure(status=200, raw=b"data: {nonsense\n\n", headers=STREAM),
        ScriptedFailure(status=200, raw=b'data: {"error": {"message": "overloaded"}}\n\n', headers=STREAM),
        ScriptedFailure(status=200, raw=b"<html>Sign in</html>", headers={"Content-Type": "text/html"}),
        ScriptedAnswer(text="A long answer that breaks off", cut=3),
        ScriptedAnswer(text="An answer without an end", ends=False),
    ],
    ids=["500", "502", "503", "529", "429", "no JSON", "an error in the stream", "a page", "a cut stream", "no end"],
)
def test_a_failed_request_is_retried(server: ModelServer, client: Client, fault: ScriptedResponse) -> None:
    server.set_answers(fault, ScriptedAnswer(text="here I am"))
    meter = UsageMeter()
    assert query_model(client(), meter=meter).text == "here I am"
    assert (meter.requests, meter.failed_requests) == (2, 1)


@pytest.mark.parametrize(
    "fault", [ScriptedFailure(status=500), LIMITED, ScriptedAnswer(text="A long answer", cut=2)], ids=str
)
def test_persistent_failure_is_transient(server: ModelServer, client: Client, fault: ScriptedResponse) -> None:
    server.set_answers(fault)
    with pytest.raises(Transient):
        query_model(client())
    assert len(server.requests) == MAX_ATTEMPTS


def test_the_usage_of_interrupted_answers_is_counted(server: ModelServer, client: Client) -> None:
    server.set_answers(
        ScriptedAnswer(text="x" * 70, cut=6),
        ScriptedAnswer(text="whole", usage={"prompt_tokens": 10, "completion_tokens": 1}),
    )
    meter = UsageMeter()
    query_model(client(llm_price_completion=1_000_000), meter=meter)
    assert meter.completion_tokens == 1 + 9
    assert meter.cost == 10


def test_retry_after_delays_the_next_attempt(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedFailure(status=429, headers={"Retry-After": "1"}), ScriptedAnswer(text="yes"))
    query_model(client())
    assert server.request_times[1] - server.request_times[0] >= 1


def test_a_long_retry_after_is_an_error_at_once(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedFailure(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(Transient, match="429"):
        query_model(client())
    assert len(server.requests) == 1


def test_retry_after_is_parsed_as_seconds_date_or_milliseconds() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert parse_retry_after({"retry-after": "7"}) == 7
    assert 25 < parse_retry_after({"retry-after": later}) <= 30
    assert parse_retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert parse_retry_after({"retry-after": "soon"}) == parse_retry_after({}) == 0


@pytest.mark.parametrize(
    "slow",
    [ScriptedAnswer(text="late", hang=60), ScriptedAnswer(text="x" * 500, drip=0.05)],
    ids=["silent", "dripping"],
)
def test_a_request_that_times_out_is_retried(server: ModelServer, client: Client, slow: ScriptedResponse) -> None:
    server.set_answers(slow, ScriptedAnswer(text="now"))
    meter = UsageMeter()
    started = time.monotonic()
    assert query_model(client(llm_timeout=0.5), meter=meter).text == "now"
    assert time.monotonic() - started < 5
    assert meter.failed_requests == 1
    assert meter.prompt_tokens > 100  # the request that timed out was read, too


def test_an_unreachable_endpoint_is_transient(client: Client) -> None:
    with pytest.raises(Transient, match="failed"):
        query_model(client(llm="http://127.0.0.1:9/v1"))


def test_no_attempt_is_made_beyond_the_deadline(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(text="late", hang=60))
    started = time.monotonic()
    with pytest.raises(BudgetExceededError, match="time"):
        query_model(client(), deadline=started + 0.5)
    assert time.monotonic() - started < 3


def test_stop_cancels_a_request(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(text="late", hang=60))
    model = client()
    threading.Timer(0.3, model.stop).start()
    started = time.monotonic()
    with pytest.raises(CancelledRunError):
        query_model(model)
    assert time.monotonic() - started < 3


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        (401, "Incorrect API key provided: sk-secret-1", "MERGEMILL_LLM_KEY"),
        (403, "not for you", "MERGEMILL_LLM_KEY"),
        (404, "The model `scripted` does not exist", "--model"),
        (402, "Payment required", "add credit"),
        (429, "You exceeded your current quota: insufficient_quota", "add credit"),
        (400, "messages[0]: unknown role", "OpenAI-compatible"),
    ],
)
def test_a_rejected_request_is_an_error_with_advice_and_without_the_key(
    server: ModelServer, client: Client, status: int, message: str, advice: str
) -> None:
    server.set_answers(ScriptedFailure(status=status, message=message))
    with pytest.raises(InputError) as raised:
        query_model(client(llm_key="sk-secret-1"))
    assert len(server.requests) == 1
    assert server.keys == ["sk-secret-1"]
    assert advice in raised.value.advice
    assert "sk-secret-1" not in raised.value.format_line()


@pytest.mark.parametrize(
    "fault",
    [
        ScriptedFailure(status=400, code="context_length_exceeded", message="maximum context length is 8192 tokens"),
        ScriptedFailure(status=400, message="the request exceeds the available context size, try increasing it"),
        ScriptedFailure(status=413, message="prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
def test_exceeding_the_context_length_is_an_error_of_its_own(
    server: ModelServer, client: Client, fault: ScriptedResponse
) -> None:
    server.set_answers(fault)
    with pytest.raises(ContextLengthError):
        query_model(client())
    assert len(server.requests) == 1


def test_a_rejected_feature_is_not_requested_again(server: ModelServer, client: Client) -> None:
    server.rejected_parameter, server.stream_options = "max_tokens", False
    server.set_answers(ScriptedAnswer(text="fine"))
    model = client()
    assert query_model(model).text == "fine"
    assert query_model(model).text == "fine"
    assert len(server.requests) == 4
    assert "stream_options" not in server.requests[-1]
    assert server.requests[-1]["max_completion_tokens"] == 4096


# ------------------------------------------------------------------------------------------------------------ budgets


def test_the_token_budget_includes_failed_attempts(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(text="x" * 700, cut=90))
    meter = UsageMeter(TokenBudget(tokens=400))
    with pytest.raises(BudgetExceededError, match="tokens used, 400 allowed"):
        query_model(client(), meter=meter)
    assert 400 <= meter.tokens < 800
    assert len(server.requests) == meter.failed_requests == 3


def test_the_cost_budget_ends_a_conversation(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(text="dear", usage={"prompt_tokens": 0, "completion_tokens": 500}))
    meter, model = UsageMeter(TokenBudget(cost=1.0)), client(llm_price_completion=1000)
    query_model(model, meter=meter)
    query_model(model, meter=meter)
    with pytest.raises(BudgetExceededError, match=r"1\.0000 spent"):
        query_model(model, meter=meter)


def test_an_empty_answer_is_an_answer(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer())
    assert query_model(client(), RUN).text == ""
    assert len(server.requests) == 1
