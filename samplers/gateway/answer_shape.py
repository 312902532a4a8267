"""The shape of an upstream's complete answer, as scaffolds, records and trajectories rely on it.

Fields that are not named here may be anything. An answer of another shape is the upstream's failure, not the agent's.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError

from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json
from samplers.gateway.shapes import ApiShape, describe_flaw

OTHER_SHAPE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors that reading a value of another shape raises: events are read once, and checked as a whole at their end."""

Count = Annotated[int, Field(ge=0)]
TokenIds = list[int]


class _CalledFunction(ApiShape):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(ApiShape):
    function: _CalledFunction | None = None


class _ChatMessage(ApiShape):
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_ToolCall] | None = None


class _TokenProbs(ApiShape):
    content: list[dict[str, Any]] | None = None


class _Choice(ApiShape):
    message: _ChatMessage
    finish_reason: str | None = None
    token_ids: TokenIds | None = None
    prompt_token_ids: TokenIds | None = None
    logprobs: _TokenProbs | None = None


class _PromptDetails(ApiShape):
    cached_tokens: Count | None = None


class _CompletionDetails(ApiShape):
    reasoning_tokens: Count | None = None


class _ChatUsage(ApiShape):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _ChatAnswer(ApiShape):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _ChatUsage | None = None
    prompt_token_ids: TokenIds | None = None


class _MessagesUsage(ApiShape):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class _Block(ApiShape):
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class _MessagesAnswer(ApiShape):
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
        raise refuse_answer(describe_flaw(error, answer)) from error


def refuse_answer(flaw: str) -> GatewayFailure:
    """Return the failure of an answer of another shape."""
    return GatewayFailure(ExchangeFailure.NONSENSE, f"the upstream's answer has another shape: {flaw}"[:500], 502)
