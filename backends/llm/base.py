"""Language model protocol: a conversation and tools in, a reply out.

A reply with malformed content is a reply; an endpoint that does not answer raises `core.errors.Transient`. The cost of
a conversation is counted by its `meter.UsageMeter`, failed attempts included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from backends.llm.meter import TokenUsage, UsageMeter
from core.errors import InputError

Role = Literal["system", "user", "assistant", "tool"]
CHARS_PER_TOKEN = 4
"""For estimates where the endpoint reports no counts; English and source code have between three and five."""
MESSAGE_TOKENS = 4
"""Tokens of a message beyond its text."""


class ContextLengthError(InputError):
    """The conversation exceeds the model's context length. A shorter reply may be sent."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that a model may call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ResponseSchema:
    """JSON schema of the object that is to be the answer. Not every endpoint enforces it."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A model's call of a tool. `arguments` is None when they cannot be parsed; `problem` is then the reason.

    `written` is the text of the arguments as the model wrote it, empty where a server would reject it. It goes back to
    the model as it is: another text of the same arguments would be other tokens than those that were sampled.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    problem: str = ""
    written: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class Message:
    """A turn of a conversation. `tool_calls` are an assistant's; a tool's result has the id of its call."""

    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """Reply of a model.

    `seconds` include all attempts; `cost` is that of this reply alone, in the currency of the prices. `finish_reason`
    is the API's: `stop`, `tool_calls`, `length` (cut off at the token limit), `content_filter`. `reasoning` is kept for
    people and not sent back.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0
    cost: float = 0.0
    finish_reason: str = "stop"
    reasoning: str = ""

    @property
    def message(self) -> Message:
        """The reply as a turn of the conversation."""
        return Message(role="assistant", text=self.text, tool_calls=self.tool_calls)


class LanguageModel(Protocol):
    """A language model. Threads may share it."""

    name: str
    context_tokens: int
    """Context length: tokens of a conversation, the answer included."""

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        meter: UsageMeter,
        deadline: float | None = None,
        response_schema: ResponseSchema | None = None,
        request_key: str = "",
    ) -> ModelReply:
        """Return the model's next turn.

        Args:
            messages: the conversation.
            tools: tools that the model may call.
            meter: meter that counts usage and cost.
            deadline: monotonic seconds after which no further attempt is made.
            response_schema: response schema of the answer, for endpoints that can enforce it; the conversation must
                describe it, too.
            request_key: sent as `Idempotency-Key`; an endpoint that knows such keys charges a request that is
                repeated after a kill or a broken connection once.

        Raises:
            Transient: all attempts failed.
            ContextLengthError: the conversation is too long.
            BudgetExceededError: the meter's budget is used up.
            InputError: the endpoint rejects key, model or request.
            CancelledRunError: `stop` was called.
        """
        ...

    def get_model(self, name: str) -> LanguageModel:
        """Return another model of the same endpoint; it is stopped with this model."""
        ...

    def stop(self) -> None:
        """Cancel all current and future requests."""
        ...


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors. Threads may share it."""

    name: str

    def embed(self, texts: Sequence[str], *, meter: UsageMeter, request_key: str = "") -> list[list[float]]:
        """Return the vector of each text, in their order, all of the same length.

        Args:
            texts: texts, at least a text.
            meter: meter that counts usage and cost.
            request_key: request key as in `LanguageModel.complete`.

        Raises:
            Transient: all attempts failed.
            InputError: the endpoint rejects key, model or request, or has no embeddings.
            CancelledRunError: `stop` was called.
        """
        ...

    def stop(self) -> None:
        """Cancel all current and future requests."""
        ...


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens a conversation has."""
    return sum(_count_characters(message) // CHARS_PER_TOKEN + MESSAGE_TOKENS for message in messages)


def _count_characters(message: Message) -> int:
    return len(message.text) + sum(len(call.name) + len(str(call.arguments)) for call in message.tool_calls)
