"""What a conversation does with what a model says, however sensible that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from backends.llm.client import ChatModel
from backends.llm.meter import Budget, Meter
from builders.agent.conversation import GIVE_UP, TEST, Conversation
from builders.agent.guards import IDLE, NONSENSE, REPEATS, Stop, StoppedError
from builders.agent.tools import Arguments, Entry, Toolbox, TurnOver
from builders.agent.transcript import Transcript
from mergemill.errors import InputError, Transient
from tests.llm.server import Answer, Call, Fails, ModelServer, Says

Client = Callable[..., ChatModel]


class Word(Arguments):
    """Arguments of `say`."""

    word: str


class Nothing(Arguments):
    """No arguments."""


class Why(Arguments):
    """Arguments of `give_up`."""

    why: str = ""


def toolbox(said: list[str]) -> Toolbox:
    """A tool that echoes, and the two that end a turn."""

    def say(asked: Word) -> str:
        said.append(asked.word)
        return f"You said {asked.word}."

    def end(tool: str) -> Callable[[Any], str]:
        def over(asked: Any) -> str:
            raise TurnOver(tool, getattr(asked, "why", ""))

        return over

    return Toolbox([
        Entry(name="say", description="Say a word.", arguments=Word, does=say),
        Entry(name=TEST, description="Test the plan.", arguments=Nothing, does=end(TEST)),
        Entry(name=GIVE_UP, description="Give up.", arguments=Why, does=end(GIVE_UP)),
    ])  # fmt: skip


def conversation(model: ChatModel, said: list[str] | None = None, **about: Any) -> Conversation:
    given = {"meter": Meter(), "left": lambda: 30.0, "answer_tokens": 256, **about}
    return Conversation(model, toolbox([] if said is None else said), "Be brief.", **given)


def stopped(talk: Conversation) -> StoppedError:
    with pytest.raises(StoppedError) as raised:
        talk.round("Mend it.")
    return raised.value


TESTS = Says(calls=(Call(TEST),))


def test_a_round_does_what_is_asked_until_a_test_is_wanted(server: ModelServer, client: Client) -> None:
    said: list[str] = []
    server.says(Says(text="First.", calls=(Call("say", {"word": "a"}), Call("say", {"word": "b"}))), TESTS, TESTS)
    talk = conversation(client(), said)
    talk.round("Mend it.")
    assert said == ["a", "b"]
    talk.round("It still fails.")
    last = server.asked[-1]["messages"]
    assert [message["role"] for message in last] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "tool"
    ]  # fmt: skip
    assert last[-1]["content"] == "It still fails."
    assert last[-1]["tool_call_id"] == last[-2]["tool_calls"][0]["id"]


def test_what_is_asked_for_after_a_test_is_not_done(server: ModelServer, client: Client) -> None:
    said: list[str] = []
    server.says(Says(calls=(Call(TEST), Call("say", {"word": "late"}))), TESTS)
    talk = conversation(client(), said)
    talk.round("Mend it.")
    talk.round("Again.")
    assert said == []
    results = [message for message in server.asked[-1]["messages"] if message["role"] == "tool"]
    assert sorted(message["content"] for message in results) == ["Again.", "Not done: `test` ended your turn."]


def test_a_model_gives_up_and_says_why(server: ModelServer, client: Client) -> None:
    server.says(Says(calls=(Call(GIVE_UP, {"why": "It needs a licence."}),)))
    end = stopped(conversation(client()))
    assert (end.stop, end.detail) == (Stop.GAVE_UP, "It needs a licence.")


@pytest.mark.parametrize(
    "nonsense",
    [
        Says(text="I am a teapot."), Says(text="Let me think. " * 9, finish="length"),
        Says(), Says(calls=(Call("sudo", {"word": "x"}),)),
        Says(calls=(Call("say", "not json at all"),)), Says(calls=(Call("say", {"volume": 3}),)),
    ],
    ids=["words", "a cut answer", "nothing", "an unknown tool", "broken arguments", "wrong arguments"],
)  # fmt: skip
def test_nonsense_is_told_back_and_ends_after_some(server: ModelServer, client: Client, nonsense: Answer) -> None:
    server.says(nonsense)
    assert stopped(conversation(client())).stop == Stop.NONSENSE
    assert len(server.asked) == NONSENSE
    assert all(message["content"] or message.get("tool_calls") for message in server.asked[-1]["messages"])


def test_a_model_that_comes_to_its_senses_goes_on(server: ModelServer, client: Client) -> None:
    server.says(Says(text="Hm."), Says(calls=(Call("sya", {"word": "x"}),)), Says(calls=(Call("say", {}),)), TESTS)
    talk = conversation(client())
    talk.round("Mend it.")
    told = [message["content"] for message in server.asked[-1]["messages"]]
    assert "Use one of: say, test, give_up" in told[3]
    assert "Did you mean say?" in told[5]
    assert told[7] == "Not done: word: Field required."


def test_the_same_call_again_and_again_is_told_and_then_ended(server: ModelServer, client: Client) -> None:
    said: list[str] = []
    server.says(Says(calls=(Call("say", {"word": "a"}),)))
    assert stopped(conversation(client(), said)).stop == Stop.LOOP
    assert len(said) == REPEATS
    assert "You have done this before" in server.asked[-1]["messages"][-1]["content"]


def test_much_looking_and_no_doing_is_ended(server: ModelServer, client: Client) -> None:
    def looks(request: Mapping[str, Any]) -> Answer:
        return Says(calls=(Call("say", {"word": str(len(request["messages"]))}),))

    server.script = looks
    assert stopped(conversation(client())).stop == Stop.IDLE
    assert len(server.asked) == IDLE


def test_tokens_money_and_time_end_a_conversation(server: ModelServer, client: Client) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    numbers = iter(range(100))
    server.script = lambda _: Says(calls=(Call("say", {"word": str(next(numbers))}),), usage=usage)
    tokens = conversation(client(), meter=Meter(Budget(tokens=3000)))
    assert stopped(tokens).stop == Stop.BUDGET
    assert tokens.meter.tokens == 3300
    money = conversation(client(llm_price_prompt=1000), meter=Meter(Budget(cost=1.5)))
    assert stopped(money).stop == Stop.BUDGET
    assert money.meter.cost == 2.0
    assert stopped(conversation(client(), left=lambda: 0.0)).stop == Stop.BUDGET


def test_a_dead_endpoint_is_no_verdict(server: ModelServer, client: Client) -> None:
    server.says(Fails(status=500))
    with pytest.raises(Transient):
        conversation(client()).round("Mend it.")
    server.says(Fails(status=401))
    with pytest.raises(InputError):
        conversation(client()).round("Mend it.")


def test_a_long_conversation_is_cut_and_keeps_its_task_and_its_last_turns(server: ModelServer, client: Client) -> None:
    numbers = iter(range(100))

    def looks(_: Mapping[str, Any]) -> Answer:
        number = next(numbers)
        done = number == 20
        return TESTS if done else Says(calls=(Call("say", {"word": f"{number} " + "x" * 1500}),), usage=None)

    server.script = looks
    talk = conversation(client(llm_context=4096))
    talk.round("Mend it.")
    sizes = [sum(len(str(message)) for message in request["messages"]) for request in server.asked]
    assert max(sizes) / 4 < 4096 + 500
    last = server.asked[-1]["messages"]
    assert [message["content"] for message in last[:1]] == ["Be brief."]
    assert last[1]["content"].startswith("Mend it.\n[Earlier turns")
    assert "19 xxx" in last[-1]["content"]
    answered = {message["tool_call_id"] for message in last if message["role"] == "tool"}
    assert answered == {call["id"] for message in last for call in message.get("tool_calls", ())}
    assert len(talk.transcript().events) > 40


def test_an_endpoint_that_finds_a_conversation_too_long_gets_a_shorter_one(server: ModelServer, client: Client) -> None:
    def picky(request: Mapping[str, Any]) -> Answer:
        if len(str(request["messages"])) > 8000:
            return Fails(status=400, message="the request exceeds the available context size")
        return TESTS

    server.script = picky
    talk = conversation(client())
    talk.round("Mend it. " + "log line\n" * 3000)
    assert len(server.asked) > 1
    assert any(event.event == "trimmed" for event in talk.transcript().events)

    server.says(Fails(status=400, message="the request exceeds the available context size"))
    assert stopped(conversation(client())).stop == Stop.CONTEXT


def test_the_transcript_holds_all_that_was_said_and_what_it_cost(server: ModelServer, client: Client) -> None:
    server.says(Fails(status=503), Says(text="Let me see.", calls=(Call("say", {"word": "a"}),)), TESTS)
    talk = conversation(client(llm_price_completion=1000))
    talk.round("Mend it.")
    told = Transcript.from_bytes(talk.transcript().to_bytes())
    assert told == talk.transcript()
    assert told.readable() == (
        "## system\nBe brief.\n\n## user\nMend it.\n\n## model\nLet me see.\n-> say {\"word\": \"a\"}\n\n"
        "## result of say\nYou said a.\n\n## model\n-> test {}\n\n## ended: test\n\n"
    )  # fmt: skip
    assert (told.requests, told.failed_requests, told.cost) == (3, 1, 0.02)
    assert (told.model, len(told.prompts)) == ("scripted", 64)
