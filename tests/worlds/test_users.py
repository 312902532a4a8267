"""Users: the script, and the model with its prompt, over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from backends.llm.client import ChatModel
from core.config import Settings
from core.errors import Transient
from core.settings.machine import HostSettings
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure, run_model_server
from tests.worlds.programs import TASK, make_scenario
from worlds.users import STOP_MARK, ModelUser, make_scripted_user

MakeUser = Callable[[], ModelUser]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with run_model_server() as opened:
        yield opened


@pytest.fixture
def make_user(server: ModelServer) -> Iterator[MakeUser]:
    with closing(
        ChatModel(
            Settings(llm=server.url, model="scripted").llm,
            HostSettings(),
            first_pause=0.01,
        )
    ) as model:
        yield lambda: ModelUser(model, TASK)


def test_a_scripted_user_gives_the_exact_words_away_and_stops() -> None:
    user = make_scripted_user(make_scenario())
    lines = [user.greet()]
    while lines[-1] != STOP_MARK:
        lines.append(user.answer("and then?"))
    assert len(lines) == 4
    assert " ".join(lines[1:-1]) == TASK


def test_a_model_plays_the_user(server: ModelServer, make_user: MakeUser) -> None:
    server.set_answers(
        ScriptedAnswer(text="<think>I greet.</think>Hello!"),
        ScriptedAnswer(text="Rename the item I-1."),
        ScriptedAnswer(text=STOP_MARK),
    )
    user = make_user()
    assert [user.greet(), user.answer("How can I help?"), user.answer("Done.")] == [
        "Hello!",
        "Rename the item I-1.",
        STOP_MARK,
    ]
    (system, first), last = server.requests[0]["messages"], server.requests[-1]["messages"]
    assert TASK in system["content"]
    assert STOP_MARK in system["content"]
    assert TASK not in first["content"]
    assert [message["content"] for message in last[2:]] == [
        "Hello!",
        "How can I help?",
        "Rename the item I-1.",
        "Done.",
    ]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert user.usage.requests == 3


def test_unusable_answers_are_requested_again(server: ModelServer, make_user: MakeUser) -> None:
    server.set_answers(ScriptedAnswer(text=STOP_MARK), ScriptedAnswer(text=" "), ScriptedAnswer(text="Hello!"))
    assert make_user().greet() == "Hello!"
    server.set_answers(ScriptedAnswer(text=STOP_MARK))
    with pytest.raises(Transient, match="plays no user"):
        make_user().greet()


def test_words_without_an_answer_are_no_part_of_the_conversation(server: ModelServer, make_user: MakeUser) -> None:
    server.set_answers(ScriptedAnswer(text="Hello!"), ScriptedAnswer(text=""))
    user = make_user()
    user.greet()
    with pytest.raises(Transient):
        user.answer("What?")
    server.set_answers(ScriptedAnswer(text="Rename it."))
    assert user.answer("What shall I do?") == "Rename it."
    assert "What?" not in str(server.requests[-1]["messages"])


def test_an_endpoint_that_fails_is_transient(server: ModelServer, make_user: MakeUser) -> None:
    server.set_answers(ScriptedFailure(status=429, headers={"Retry-After": "9999"}))
    with pytest.raises(Transient):
        make_user().greet()
