"""Users of conversational episodes: played by a model, or from a script."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from backends.llm.base import Message
from backends.llm.meter import UsageMeter
from backends.llm.prompts import PromptTemplates
from core.errors import Transient

if TYPE_CHECKING:
    from backends.llm.base import LanguageModel
    from worlds.definitions import ScenarioDefinition

STOP_MARK = "###STOP###"
"""Last words of a user, once everything was done."""
PROMPT_DIR = Path(__file__).parent / "prompts"
PROMPT_VERSION = "user-1"
MAX_TRIES = 3
"""Requests for an answer that can be used."""
_THOUGHT = re.compile(r"\A.*</think(ing)?>", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


class SimulatedUser(Protocol):
    """User of an episode."""

    def greet(self) -> str:
        """Return the words that begin the conversation.

        Raises:
            Transient: the model does not answer.
        """
        ...

    def answer(self, text: str) -> str:
        """Return the reply that the user answers to the agent; it contains `STOP_MARK` where the conversation is over.

        Raises:
            Transient: the model does not answer; the agent's words are not part of the conversation then.
        """
        ...


UserFactory = Callable[["ScenarioDefinition"], SimulatedUser]
"""Makes the user of an episode."""


class ScriptedUser:
    """User with a script: its lines in sequence, then the end of the conversation."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._greeting, *self._rest = lines

    def greet(self) -> str:
        """Return the first line."""
        return self._greeting

    def answer(self, text: str) -> str:
        """Return the next line, whatever the agent wrote."""
        del text
        return self._rest.pop(0) if self._rest else STOP_MARK


def make_scripted_user(scenario: ScenarioDefinition) -> ScriptedUser:
    """Return a user who gives a scenario's task away sentence by sentence, word by word as it is written."""
    return ScriptedUser(["Hello, can you help me?", *_SENTENCE_END.split(scenario.task)])


class ModelUser:
    """User played by a model (EnvScaler, section 3.3).

    Args:
        model: model that plays the user.
        task: the request that the user wants, which the agent is not given.
        version: folder of the prompt.
    """

    def __init__(self, model: LanguageModel, task: str, version: str = PROMPT_VERSION) -> None:
        self._model = model
        self._meter = UsageMeter()
        self._messages = list(PromptTemplates(PROMPT_DIR).render_conversation(version, task=task, stop=STOP_MARK))

    @property
    def usage(self) -> UsageMeter:
        """Requests, tokens and cost so far."""
        return self._meter

    def greet(self) -> str:
        """See `SimulatedUser`."""
        text = self._request(self._messages, can_stop=False)
        self._messages.append(Message(role="assistant", text=text))
        return text

    def answer(self, text: str) -> str:
        """See `SimulatedUser`."""
        said = Message(role="user", text=text)
        answer = self._request([*self._messages, said], can_stop=True)
        self._messages += [said, Message(role="assistant", text=answer)]
        return answer

    def _request(self, messages: Sequence[Message], *, can_stop: bool) -> str:
        for _ in range(MAX_TRIES):
            text = _THOUGHT.sub("", self._model.complete(messages, meter=self._meter).text).strip()
            if text and (can_stop or STOP_MARK not in text):
                return text
        raise Transient(f"{self._model.name} plays no user: its answer is empty, or ends what has not begun")
