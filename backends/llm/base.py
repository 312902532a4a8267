"""What a language model is: it is given a conversation and tools, and gives one reply.

A reply with nonsense in it is a reply; an endpoint that does not answer is `mergemill.errors.Transient`. What a
conversation has cost is counted by its `meter.Meter`, failed attempts included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from backends.llm.meter import Meter, Usage
from mergemill.errors import InputError

Role = Literal["system", "user", "assistant", "tool"]
CHARS_PER_TOKEN = 4
"""For estimates where nobody counted; English and program text have between three and five."""
MESSAGE_TOKENS = 4
"""What a message costs beyond its text."""


class ContextFullError(InputError):
    """The conversation is longer than the model can read. Make it shorter and ask again."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Something a model may ask for. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What an answer is to look like: the JSON schema of an object. Not every endpoint holds a model to it."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool a model asks for. `arguments` is None when they cannot be understood; `problem` then says why."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation. `calls` are an assistant's; a tool's result names the call it answers."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a model said. `seconds` with all attempts; `cost` of this answer alone, in the money of the prices.

    `finish` is the API's word: `stop`, `tool_calls`, `length` (cut at the limit of an answer), `content_filter`.
    `reasoning`: what it thought aloud; it is kept for people and not sent back.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    cost: float = 0.0
    finish: str = "stop"
    reasoning: str = ""

    @property
    def message(self) -> Message:
        """The reply as a turn of the conversation."""
        return Message(role="assistant", text=self.text, calls=self.tool_calls)


class Model(Protocol):
    """A language model. Threads share one."""

    name: str
    context_tokens: int
    """How long a conversation may be, the answer included."""

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        meter: Meter,
        deadline: float | None = None,
        shape: Shape | None = None,
    ) -> Reply:
        """The next turn. `deadline`: monotonic seconds after which no further attempt is made.

        `shape`: what the endpoint is asked to hold the answer to, where it can; the conversation has to say it, too.

        Raises:
            Transient: no answer could be had, whatever was tried.
            ContextFullError: the conversation is too long.
            BudgetSpentError: the meter's budget is used up.
            InputError: the endpoint refuses: key, model or request are wrong.
            Stopped: somebody called `stop`.
        """
        ...

    def other(self, name: str) -> Model:
        """Another model at the same place; stopped with this one."""
        ...

    def stop(self) -> None:
        """End what is asked now, and all that is asked from now on."""
        ...


def estimate(messages: Sequence[Message]) -> int:
    """About how many tokens a conversation has."""
    return sum(_length(message) // CHARS_PER_TOKEN + MESSAGE_TOKENS for message in messages)


def _length(message: Message) -> int:
    return len(message.text) + sum(len(call.name) + len(str(call.arguments)) for call in message.calls)
