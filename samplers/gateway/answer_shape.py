"""The shape of an upstream's complete answer, as scaffolds, records and trajectories rely on it.

Fields that are not named here may be anything. An answer of another shape is the upstream's failure, not the agent's.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json

Count = Annotated[int, Field(ge=0)]
TokenIds = list[int]


class _Shape(BaseModel):
    """Base of all of them: nothing is converted."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _CalledFunction(_Shape):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(_Shape):
    function: _CalledFunction | None = None


class _ChatMessage(_Shape):
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_ToolCall] | None = None


class _TokenProbs(_Shape):
    content: list[dict[str, Any]] | None = None


class _Choice(_Shape):
    message: _ChatMessage
    finish_reason: str | None = None
    token_ids: TokenIds | None = None
    prompt_token_ids: TokenIds | None = None
    logprobs: _TokenProbs | None = None


class _PromptDetails(_Shape):
    cached_tokens: Count | None = None


class _CompletionDetails(_Shape):
    reasoning_tokens: Count | None = None


class _ChatUsage(_Shape):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _ChatAnswer(_Shape):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _ChatUsage | None = None
    prompt_token_ids: TokenIds | None = None


class _MessagesUsage(_Shape):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class _Block(_Shape):
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class _MessagesAnswer(_Shape):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _MessagesUsage | None = None


def check_shape(answer: Json, dialect: Dialect) -> None:
    """Check a complete answer of an upstream.

    Raises:
        GatewayFailure: it has another shape.
    """
    shape = _MessagesAnswer if dialect is Dialect.MESSAGES else _ChatAnswer
    try:
        shape.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise refuse_answer(f"{place}: {first['msg']}") from error


def refuse_answer(flaw: str) -> GatewayFailure:
    """Return the failure of an answer of another shape."""
    return GatewayFailure(ExchangeFailure.NONSENSE, f"the upstream's answer has another shape: {flaw}"[:500], 502)
