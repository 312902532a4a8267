"""Usage that an answer has cost and how it ended, read from the upstream's complete answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from backends.llm.conversations.parts import read_reasoning
from backends.llm.meter import TokenUsage
from samplers.gateway.dialects import Dialect
from samplers.gateway.json_text import Json
from samplers.gateway.translation.answers import first_choice, translate_messages_usage


@dataclass(frozen=True, kw_only=True)
class AnswerMeasures:
    """Usage, token ids, log-probs and finish reason of an answer; None for a value that the upstream did not give."""

    usage: TokenUsage
    finish_reason: str | None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[Json] | None = None


def measure_answer(answer: Json, dialect: Dialect) -> AnswerMeasures:
    """Return the facts that an answer in the upstream's dialect holds about itself."""
    if dialect is Dialect.MESSAGES:
        usage = _read_usage(translate_messages_usage(answer.get("usage")))
        return AnswerMeasures(usage=usage, finish_reason=answer.get("stop_reason"))
    choice = first_choice(answer)
    logprobs = choice.get("logprobs")
    return AnswerMeasures(
        usage=_read_usage(answer.get("usage") or {}),
        finish_reason=choice.get("finish_reason"),
        prompt_token_ids=answer.get("prompt_token_ids") or choice.get("prompt_token_ids"),
        completion_token_ids=choice.get("token_ids"),
        logprobs=logprobs.get("content") if isinstance(logprobs, dict) else None,
    )


def _read_usage(usage: Json) -> TokenUsage:
    details: Any = usage.get("prompt_tokens_details") or {}
    return TokenUsage(
        prompt_tokens=usage.get("prompt_tokens") or 0,
        completion_tokens=usage.get("completion_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or 0,
    )


def has_token(event: Json, dialect: Dialect) -> bool:
    """Return whether an event of a stream has the first piece of an answer's content."""
    if dialect is Dialect.MESSAGES:
        return event.get("type") == "content_block_delta"
    delta = first_choice(event).get("delta") or {}
    return bool(delta.get("content") or delta.get("tool_calls") or read_reasoning(delta))


CHARACTERS_PER_TOKEN = 4


def estimate_tokens(body: bytes) -> int:
    """Return about how many tokens a request has, for clients that want a number before they send it."""
    return len(body) // CHARACTERS_PER_TOKEN
