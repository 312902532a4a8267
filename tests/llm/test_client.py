"""Questions to a model over real HTTP: what comes back, whatever the endpoint does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from backends.llm.base import ContextFullError, Message, Reply, Tool
from backends.llm.client import ATTEMPTS, ChatModel
from backends.llm.faults import seconds_to_wait
from backends.llm.meter import Budget, BudgetSpentError, Meter
from mergemill.errors import InputError, Stopped, Transient
from tests.llm.server import Answer, Call, Fails, ModelServer, Says

Client = Callable[..., ChatModel]
RUN = Tool(
    name="run", description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)  # fmt: skip
HELLO = (Message(role="system", text="Be brief."), Message(role="user", text="Hello"))


def ask(model: ChatModel, *tools: Tool, meter: Meter | None = None, deadline: float | None = None) -> Reply:
    return model.complete(HELLO, tools, meter=meter or Meter(), deadline=deadline)


# ------------------------------------------------------------------------------------------------------- good answers


@pytest.mark.parametrize("stream", [True, False])
def test_a_text_comes_whole_with_its_tokens_and_its_cost(server: ModelServer, client: Client, stream: bool) -> None:
    server.stream = stream
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 600}}
    server.says(Says(text="Good evening, äöü €", usage=usage))
    meter = Meter()
    reply = ask(client(llm_price_prompt=2, llm_price_cached=0.5, llm_price_completion=10), meter=meter)
    assert (reply.text, reply.finish, reply.tool_calls) == ("Good evening, äöü €", "stop", ())
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens, reply.usage.completion_tokens) == (1000, 600, 50)
    assert reply.cost == pytest.approx((400 * 2 + 600 * 0.5 + 50 * 10) / 1e6)
    assert meter.cost == reply.cost
    assert meter.tokens == 1050
    assert server.asked[-1]["messages"] == [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [True, False])
def test_tool_calls_are_put_together_from_their_pieces(server: ModelServer, client: Client, stream: bool) -> None:
    server.stream = stream
    calls = (Call("run", {"command": "ls -la /testbed"}), Call("run", {"command": "cat setup.py"}))
    server.says(Says(text="I look around.", calls=calls))
    reply = ask(client(), RUN)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("run", {"command": "ls -la /testbed"}), ("run", {"command": "cat setup.py"})
    ]  # fmt: skip
    assert len({call.id for call in reply.tool_calls}) == 2
    assert server.asked[-1]["tools"][0]["function"]["parameters"] == RUN.parameters


def test_results_go_back_under_the_call_they_answer(server: ModelServer, client: Client) -> None:
    server.says(Says(calls=(Call("run", {"command": "ls"}),)), Says(text="done"))
    model = client()
    first = ask(model, RUN)
    result = Message(role="tool", text="setup.py", call_id=first.tool_calls[0].id, tool="run")
    assert model.complete([*HELLO, first.message, result], [RUN], meter=Meter()).text == "done"
    said, answered = server.asked[-1]["messages"][-2:]
    assert said["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert said["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command": "ls"}'}


def test_tokens_that_nobody_counted_are_estimated(server: ModelServer, client: Client) -> None:
    server.says(Says(text="x" * 400, usage=None))
    usage = ask(client()).usage
    assert usage.estimated
    assert usage.completion_tokens == 100
    assert usage.prompt_tokens > 0


# ------------------------------------------------------------------------------------------------- broken tool calls


@pytest.mark.parametrize(
    "broken",
    [
        "{'command': 'ls'}", '{"command": "ls"', '{command: "ls",}', '```json\n{"command": "ls"}\n```',
        '"{\\"command\\": \\"ls\\"}"',
    ],
)  # fmt: skip
def test_broken_arguments_are_repaired(server: ModelServer, client: Client, broken: str) -> None:
    server.says(Says(calls=(Call("run", broken),)))
    assert ask(client(), RUN).tool_calls[0].arguments == {"command": "ls"}


@pytest.mark.parametrize("broken", ["I would like to run ls", "[1, 2]", "42"])
def test_arguments_that_mean_nothing_are_told_back(server: ModelServer, client: Client, broken: str) -> None:
    server.says(Says(calls=(Call("run", broken),)))
    call = ask(client(), RUN).tool_calls[0]
    assert call.arguments is None
    assert "not a JSON object" in call.problem


def test_a_call_that_was_cut_at_the_limit_is_not_repaired_into_another(server: ModelServer, client: Client) -> None:
    server.says(Says(calls=(Call("run", '{"command": "rm -rf /tmp'),), finish="length"))
    call = ask(client(), RUN).tool_calls[0]
    assert call.arguments is None
    assert "cut off" in call.problem


def test_a_call_without_a_name_or_with_a_wrong_one_is_a_reply(server: ModelServer, client: Client) -> None:
    server.says(Says(calls=(Call("sudo", {"command": "ls"}),)))
    assert ask(client(), RUN).tool_calls[0].name == "sudo"


# ----------------------------------------------------------------------------------------------- models without tools


def test_a_model_without_tools_is_told_of_them_in_words(server: ModelServer, client: Client) -> None:
    server.tools = False
    server.says(Says(text='I look.\n\n```tool\n{"name": "run", "arguments": {"command": "ls"}}\n```\n'))
    model = client()
    first = ask(model, RUN)
    assert first.text == "I look."
    assert [(call.name, call.arguments) for call in first.tool_calls] == [("run", {"command": "ls"})]
    assert ["tools" in request for request in server.asked] == [True, False]
    system, user = server.asked[-1]["messages"]
    assert system["content"].startswith("Be brief.")
    assert '"command"' in system["content"]
    assert user == {"role": "user", "content": "Hello"}

    result = Message(role="tool", text="setup.py", call_id=first.tool_calls[0].id, tool="run")
    model.complete([*HELLO, first.message, result], [RUN], meter=Meter())
    assert len(server.asked) == 3
    roles = [message["role"] for message in server.asked[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert server.asked[-1]["messages"][-1]["content"] == "Result of `run`:\nsetup.py"
    assert '```tool\n{"name": "run"' in server.asked[-1]["messages"][-2]["content"]


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
def test_calls_in_words_are_read_however_they_are_fenced(server: ModelServer, client: Client, text: str) -> None:
    server.tools = False
    server.says(Says(text=text))
    assert ask(client(), RUN).tool_calls[0].arguments == {"command": "ls"}


@pytest.mark.parametrize(
    "text", ['```json\n{"name": "left-pad", "version": "1.0"}\n```', "```sh\nls\n```", "Just words."]
)
def test_other_blocks_are_no_calls(server: ModelServer, client: Client, text: str) -> None:
    server.tools = False
    server.says(Says(text=text))
    reply = ask(client(), RUN)
    assert (reply.text, reply.tool_calls) == (text, ())


def test_a_block_that_cannot_be_understood_is_told_back(server: ModelServer, client: Client) -> None:
    server.tools = False
    server.says(Says(text="```tool\nrun ls\n```"))
    call = ask(client(), RUN).tool_calls[0]
    assert call.arguments is None
    assert "JSON" in call.problem


# ------------------------------------------------------------------------------------------------------------- faults

STREAM = {"Content-Type": "text/event-stream"}
LIMITED = Fails(status=429, message="slow down", headers={"Retry-After": "0"})


@pytest.mark.parametrize(
    "fault",
    [
        Fails(status=500), Fails(status=502, raw=b"<html>Bad gateway</html>"), Fails(status=503), Fails(status=529),
        LIMITED, Fails(status=200, raw=b"data: {nonsense\n\n", headers=STREAM),
        Fails(status=200, raw=b'data: {"error": {"message": "overloaded"}}\n\n', headers=STREAM),
        Fails(status=200, raw=b"<html>Sign in</html>", headers={"Content-Type": "text/html"}),
        Says(text="A long answer that breaks off", cut=3), Says(text="An answer without an end", ends=False),
    ],
    ids=["500", "502", "503", "529", "429", "no JSON", "an error in the stream", "a page", "a cut stream", "no end"],
)  # fmt: skip
def test_what_fails_once_is_asked_again(server: ModelServer, client: Client, fault: Answer) -> None:
    server.says(fault, Says(text="here I am"))
    meter = Meter()
    assert ask(client(), meter=meter).text == "here I am"
    assert (meter.requests, meter.failed) == (2, 1)


@pytest.mark.parametrize("fault", [Fails(status=500), LIMITED, Says(text="A long answer", cut=2)], ids=str)
def test_what_fails_always_is_transient(server: ModelServer, client: Client, fault: Answer) -> None:
    server.says(fault)
    with pytest.raises(Transient):
        ask(client())
    assert len(server.asked) == ATTEMPTS


def test_cut_answers_cost_what_came_of_them(server: ModelServer, client: Client) -> None:
    server.says(Says(text="x" * 70, cut=6), Says(text="whole", usage={"prompt_tokens": 10, "completion_tokens": 1}))
    meter = Meter()
    ask(client(llm_price_completion=1_000_000), meter=meter)
    assert meter.completion_tokens == 1 + 9
    assert meter.cost == 10


def test_retry_after_is_waited_for(server: ModelServer, client: Client) -> None:
    server.says(Fails(status=429, headers={"Retry-After": "1"}), Says(text="yes"))
    ask(client())
    assert server.at[1] - server.at[0] >= 1


def test_an_endpoint_that_wants_a_long_rest_is_left_for_the_next_run(server: ModelServer, client: Client) -> None:
    server.says(Fails(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(Transient, match="429"):
        ask(client())
    assert len(server.asked) == 1


def test_retry_after_is_read_as_seconds_date_or_milliseconds() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert seconds_to_wait({"retry-after": "7"}) == 7
    assert 25 < seconds_to_wait({"retry-after": later}) <= 30
    assert seconds_to_wait({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert seconds_to_wait({"retry-after": "soon"}) == seconds_to_wait({}) == 0


@pytest.mark.parametrize(
    "slow", [Says(text="late", hang=60), Says(text="x" * 500, drip=0.05)], ids=["silent", "dripping"]
)
def test_an_endpoint_that_takes_too_long_is_asked_again(server: ModelServer, client: Client, slow: Answer) -> None:
    server.says(slow, Says(text="now"))
    meter = Meter()
    started = time.monotonic()
    assert ask(client(llm_timeout=0.5), meter=meter).text == "now"
    assert time.monotonic() - started < 5
    assert meter.failed == 1
    assert meter.prompt_tokens > 100  # the request that timed out was read, too


def test_an_endpoint_where_nobody_listens_is_transient(client: Client) -> None:
    with pytest.raises(Transient, match="failed"):
        ask(client(llm="http://127.0.0.1:9/v1"))


def test_no_attempt_is_made_beyond_the_deadline(server: ModelServer, client: Client) -> None:
    server.says(Says(text="late", hang=60))
    started = time.monotonic()
    with pytest.raises(BudgetSpentError, match="time"):
        ask(client(), deadline=started + 0.5)
    assert time.monotonic() - started < 3


def test_stop_ends_what_is_asked(server: ModelServer, client: Client) -> None:
    server.says(Says(text="late", hang=60))
    model = client()
    threading.Timer(0.3, model.stop).start()
    started = time.monotonic()
    with pytest.raises(Stopped):
        ask(model)
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
def test_a_refusal_is_told_once_with_advice_and_without_the_key(
    server: ModelServer, client: Client, status: int, message: str, advice: str
) -> None:
    server.says(Fails(status=status, message=message))
    with pytest.raises(InputError) as raised:
        ask(client(llm_key="sk-secret-1"))
    assert len(server.asked) == 1
    assert server.keys == ["sk-secret-1"]
    assert advice in raised.value.advice
    assert "sk-secret-1" not in raised.value.line()


@pytest.mark.parametrize(
    "fault",
    [
        Fails(status=400, code="context_length_exceeded", message="maximum context length is 8192 tokens"),
        Fails(status=400, message="the request exceeds the available context size, try increasing it"),
        Fails(status=413, message="prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)  # fmt: skip
def test_a_conversation_that_is_too_long_is_told_apart(server: ModelServer, client: Client, fault: Answer) -> None:
    server.says(fault)
    with pytest.raises(ContextFullError):
        ask(client())
    assert len(server.asked) == 1


def test_what_an_endpoint_does_not_know_is_left_out_from_then_on(server: ModelServer, client: Client) -> None:
    server.refused, server.stream_options = "max_tokens", False
    server.says(Says(text="fine"))
    model = client()
    assert ask(model).text == "fine"
    assert ask(model).text == "fine"
    assert len(server.asked) == 4
    assert "stream_options" not in server.asked[-1]
    assert server.asked[-1]["max_completion_tokens"] == 4096


# ------------------------------------------------------------------------------------------------------------ budgets


def test_a_budget_ends_a_conversation_failed_attempts_included(server: ModelServer, client: Client) -> None:
    server.says(Says(text="x" * 700, cut=90))
    meter = Meter(Budget(tokens=400))
    with pytest.raises(BudgetSpentError, match="tokens used, 400 allowed"):
        ask(client(), meter=meter)
    assert 400 <= meter.tokens < 800
    assert len(server.asked) == meter.failed == 3


def test_money_ends_a_conversation(server: ModelServer, client: Client) -> None:
    server.says(Says(text="dear", usage={"prompt_tokens": 0, "completion_tokens": 500}))
    meter, model = Meter(Budget(cost=1.0)), client(llm_price_completion=1000)
    ask(model, meter=meter)
    ask(model, meter=meter)
    with pytest.raises(BudgetSpentError, match=r"1\.0000 spent"):
        ask(model, meter=meter)


def test_an_empty_answer_is_an_answer(server: ModelServer, client: Client) -> None:
    server.says(Says())
    assert ask(client(), RUN).text == ""
    assert len(server.asked) == 1
