"""Conversations with valid, invalid and repeated replies of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from backends.llm.client import ChatModel
from backends.llm.meter import TokenBudget, UsageMeter
from builders.agent.conversation import GIVE_UP_TOOL, TEST_TOOL, Conversation
from builders.agent.guards import MAX_IDLE_CALLS, MAX_INVALID_REPLIES, MAX_REPEATS, ConversationStoppedError, StopReason
from builders.agent.tools import AgentTool, EndTurn, ToolArguments, Toolbox
from builders.agent.transcript import Transcript
from core.errors import InputError, Transient
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure, ScriptedResponse, ScriptedToolCall

Client = Callable[..., ChatModel]


class Word(ToolArguments):
    """Arguments of `echo`."""

    word: str


class Nothing(ToolArguments):
    """No arguments."""


class Why(ToolArguments):
    """Arguments of `give_up`."""

    why: str = ""


def make_toolbox(words: list[str]) -> Toolbox:
    """A tool that echoes a word, and the two that end a turn."""

    def echo(arguments: Word) -> str:
        words.append(arguments.word)
        return f"Echo: {arguments.word}."

    def make_end(tool: str) -> Callable[[Any], str]:
        def end(arguments: Any) -> str:
            raise EndTurn(tool, getattr(arguments, "why", ""))

        return end

    return Toolbox(
        [
            AgentTool(name="echo", description="Echo a word.", arguments=Word, function=echo),
            AgentTool(name=TEST_TOOL, description="Test the plan.", arguments=Nothing, function=make_end(TEST_TOOL)),
            AgentTool(name=GIVE_UP_TOOL, description="Give up.", arguments=Why, function=make_end(GIVE_UP_TOOL)),
        ]
    )


def start(model: ChatModel, words: list[str] | None = None, **changes: Any) -> Conversation:
    arguments = {"meter": UsageMeter(), "seconds_left": lambda: 30.0, "answer_tokens": 256, **changes}
    return Conversation(model, make_toolbox([] if words is None else words), "Be brief.", **arguments)


def run_until_stopped(conversation: Conversation) -> ConversationStoppedError:
    with pytest.raises(ConversationStoppedError) as raised:
        conversation.run_round("Repair it.")
    return raised.value


TESTS = ScriptedAnswer(calls=(ScriptedToolCall(TEST_TOOL),))


def test_a_round_runs_calls_until_the_model_requests_a_test(server: ModelServer, client: Client) -> None:
    words: list[str] = []
    server.set_answers(
        ScriptedAnswer(
            text="First.", calls=(ScriptedToolCall("echo", {"word": "a"}), ScriptedToolCall("echo", {"word": "b"}))
        ),
        TESTS,
        TESTS,
    )
    conversation = start(client(), words)
    conversation.run_round("Repair it.")
    assert words == ["a", "b"]
    conversation.run_round("It still fails.")
    last = server.requests[-1]["messages"]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert last[-1]["content"] == "It still fails."
    assert last[-1]["tool_call_id"] == last[-2]["tool_calls"][0]["id"]


def test_calls_after_a_test_call_are_not_run(server: ModelServer, client: Client) -> None:
    words: list[str] = []
    server.set_answers(
        ScriptedAnswer(calls=(ScriptedToolCall(TEST_TOOL), ScriptedToolCall("echo", {"word": "late"}))), TESTS
    )
    conversation = start(client(), words)
    conversation.run_round("Repair it.")
    conversation.run_round("Again.")
    assert words == []
    results = [message for message in server.requests[-1]["messages"] if message["role"] == "tool"]
    assert sorted(message["content"] for message in results) == ["Again.", "Not done: `test` ended your turn."]


def test_a_model_gives_up_with_a_rationale(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall(GIVE_UP_TOOL, {"why": "It needs a licence."}),)))
    end = run_until_stopped(start(client()))
    assert (end.stop, end.detail) == (StopReason.GAVE_UP, "It needs a licence.")


@pytest.mark.parametrize(
    "reply",
    [
        ScriptedAnswer(text="I am a teapot."),
        ScriptedAnswer(text="Let me think. " * 9, finish="length"),
        ScriptedAnswer(),
        ScriptedAnswer(calls=(ScriptedToolCall("sudo", {"word": "x"}),)),
        ScriptedAnswer(calls=(ScriptedToolCall("echo", "not json at all"),)),
        ScriptedAnswer(calls=(ScriptedToolCall("echo", {"volume": 3}),)),
    ],
    ids=["words", "a cut answer", "nothing", "an unknown tool", "broken arguments", "wrong arguments"],
)
def test_invalid_replies_are_returned_as_errors_and_end_the_conversation_at_a_limit(
    server: ModelServer, client: Client, reply: ScriptedResponse
) -> None:
    server.set_answers(reply)
    assert run_until_stopped(start(client())).stop == StopReason.INVALID_REPLIES
    assert len(server.requests) == MAX_INVALID_REPLIES
    assert all(message["content"] or message.get("tool_calls") for message in server.requests[-1]["messages"])


def test_a_valid_reply_resets_the_count_of_invalid_ones(server: ModelServer, client: Client) -> None:
    server.set_answers(
        ScriptedAnswer(text="Hm."),
        ScriptedAnswer(calls=(ScriptedToolCall("ehco", {"word": "x"}),)),
        ScriptedAnswer(calls=(ScriptedToolCall("echo", {}),)),
        TESTS,
    )
    conversation = start(client())
    conversation.run_round("Repair it.")
    contents = [message["content"] for message in server.requests[-1]["messages"]]
    assert "Use one of: echo, test, give_up" in contents[3]
    assert "Did you mean echo?" in contents[5]
    assert contents[7] == "Not done: word: Field required."


def test_repeated_calls_get_a_remark_and_then_end_the_conversation(server: ModelServer, client: Client) -> None:
    words: list[str] = []
    server.set_answers(ScriptedAnswer(calls=(ScriptedToolCall("echo", {"word": "a"}),)))
    assert run_until_stopped(start(client(), words)).stop == StopReason.LOOP
    assert len(words) == MAX_REPEATS
    assert "This call was made before" in server.requests[-1]["messages"][-1]["content"]


def test_many_calls_without_an_edit_end_the_conversation(server: ModelServer, client: Client) -> None:
    def call_echo(request: Mapping[str, Any]) -> ScriptedResponse:
        return ScriptedAnswer(calls=(ScriptedToolCall("echo", {"word": str(len(request["messages"]))}),))

    server.script = call_echo
    assert run_until_stopped(start(client())).stop == StopReason.IDLE
    assert len(server.requests) == MAX_IDLE_CALLS


def test_token_cost_and_time_budgets_end_a_conversation(server: ModelServer, client: Client) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    numbers = iter(range(100))
    server.script = lambda _: ScriptedAnswer(
        calls=(ScriptedToolCall("echo", {"word": str(next(numbers))}),), usage=usage
    )
    tokens = start(client(), meter=UsageMeter(TokenBudget(tokens=3000)))
    assert run_until_stopped(tokens).stop == StopReason.BUDGET
    assert tokens.meter.tokens == 3300
    money = start(client(llm_price_prompt=1000), meter=UsageMeter(TokenBudget(cost=1.5)))
    assert run_until_stopped(money).stop == StopReason.BUDGET
    assert money.meter.cost == 2.0
    assert run_until_stopped(start(client(), seconds_left=lambda: 0.0)).stop == StopReason.BUDGET


def test_a_failing_endpoint_raises_instead_of_ending_the_conversation(server: ModelServer, client: Client) -> None:
    server.set_answers(ScriptedFailure(status=500))
    with pytest.raises(Transient):
        start(client()).run_round("Repair it.")
    server.set_answers(ScriptedFailure(status=401))
    with pytest.raises(InputError):
        start(client()).run_round("Repair it.")


def test_a_long_conversation_is_shortened_and_keeps_task_and_last_turns(server: ModelServer, client: Client) -> None:
    numbers = iter(range(100))

    def call_echo(_: Mapping[str, Any]) -> ScriptedResponse:
        number = next(numbers)
        done = number == 20
        return (
            TESTS
            if done
            else ScriptedAnswer(calls=(ScriptedToolCall("echo", {"word": f"{number} " + "x" * 1500}),), usage=None)
        )

    server.script = call_echo
    conversation = start(client(llm_context=4096))
    conversation.run_round("Repair it.")
    sizes = [sum(len(str(message)) for message in request["messages"]) for request in server.requests]
    assert max(sizes) / 4 < 4096 + 500
    last = server.requests[-1]["messages"]
    assert [message["content"] for message in last[:1]] == ["Be brief."]
    assert last[1]["content"].startswith("Repair it.\n[Earlier turns")
    assert "19 xxx" in last[-1]["content"]
    answered = {message["tool_call_id"] for message in last if message["role"] == "tool"}
    assert answered == {call["id"] for message in last for call in message.get("tool_calls", ())}
    assert len(conversation.build_transcript().events) > 40


def test_a_conversation_that_the_endpoint_rejects_as_too_long_is_shortened(server: ModelServer, client: Client) -> None:
    def reject_long(request: Mapping[str, Any]) -> ScriptedResponse:
        if len(str(request["messages"])) > 8000:
            return ScriptedFailure(status=400, message="the request exceeds the available context size")
        return TESTS

    server.script = reject_long
    conversation = start(client())
    conversation.run_round("Repair it. " + "log line\n" * 3000)
    assert len(server.requests) > 1
    assert any(event.event == "trimmed" for event in conversation.build_transcript().events)

    server.set_answers(ScriptedFailure(status=400, message="the request exceeds the available context size"))
    assert run_until_stopped(start(client())).stop == StopReason.CONTEXT


def test_the_transcript_contains_all_messages_and_their_cost(server: ModelServer, client: Client) -> None:
    server.set_answers(
        ScriptedFailure(status=503),
        ScriptedAnswer(text="Let me see.", calls=(ScriptedToolCall("echo", {"word": "a"}),)),
        TESTS,
    )
    conversation = start(client(llm_price_completion=1000))
    conversation.run_round("Repair it.")
    transcript = Transcript.from_bytes(conversation.build_transcript().to_bytes())
    assert transcript == conversation.build_transcript()
    assert transcript.format_markdown() == (
        '## system\nBe brief.\n\n## user\nRepair it.\n\n## model\nLet me see.\n-> echo {"word": "a"}\n\n'
        "## result of echo\nEcho: a.\n\n## model\n-> test {}\n\n## ended: test\n\n"
    )
    assert (transcript.requests, transcript.failed_requests, transcript.cost) == (3, 1, 0.02)
    assert (transcript.model, len(transcript.prompts)) == ("scripted", 64)
