"""Classification of an endpoint's error responses. `CLASSIFIERS` is the complete list, in order.

Endpoints agree on little beyond status codes: the patterns match messages of OpenAI, vLLM, llama.cpp, Ollama,
OpenRouter and the compatible endpoints of Anthropic and Google.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from core.errors import Transient

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
"""Statuses below 500 that a retry may change."""
UNSUPPORTED_STATUSES = frozenset({400, 404, 413, 422, 500, 501})
"""Statuses with which endpoints reject a feature that they lack."""


class ErrorKind(StrEnum):
    """Kind of an error response, which decides the reaction."""

    CONTEXT_LENGTH = "context"
    """The conversation must be shortened."""
    TOOLS_UNSUPPORTED = "no-tools"
    """Retried without tool calls: the tools are described in the text."""
    SCHEMA_UNSUPPORTED = "no-shape"
    """Retried without a response schema: the prompt describes it."""
    STREAM_OPTIONS_UNSUPPORTED = "no-stream-options"
    STREAM_UNSUPPORTED = "no-stream"
    MAX_TOKENS_UNSUPPORTED = "other-limit"
    """Retried with the parameter `max_completion_tokens` instead of `max_tokens`."""
    NO_CREDIT = "money"
    """The account is empty."""
    INVALID_KEY = "key"
    UNKNOWN_MODEL = "model"
    RETRYABLE = "again"
    OTHER = "wrong"
    """Any other error that a retry does not change."""


class RetryableError(Transient):
    """An attempt failed and may be retried. `retry_after`: seconds to wait, from the endpoint's header."""

    def __init__(self, message: str, *, after: float = 0.0) -> None:
        super().__init__(message, advice="run the same command again later, or see what the endpoint's log matches")
        self.retry_after = after


@dataclass(frozen=True, kw_only=True)
class ErrorResponse:
    """Error response of an endpoint. `status` is 0 for an error within a stream."""

    status: int
    code: str
    message: str
    retry_after: float = 0.0

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Return whether its code or message matches."""
        return bool(pattern.search(f"{self.code} {self.message}"))


_CREDIT_PATTERN = re.compile(
    r"insufficient_quota|billing|credit balance|payment required|insufficient (funds|credits)", re.IGNORECASE
)
_CONTEXT_PATTERN = re.compile(
    r"context_length|context length|context window|context size|maximum context|prompt is too long|input is too long|"
    r"too many (input )?tokens|reduce the length|exceeds the (model's )?(available )?context|exceed_context_size",
    re.IGNORECASE,
)
_TOOLS_PATTERN = re.compile(
    r"support (the )?(tool|function)|(tools?|tool_choice|functions?)\b.{0,40}(not (supported|allowed|permitted|enabled)"
    r"|unsupported|unknown|unrecognized|extra inputs)|(unknown|unrecognized|unsupported|unexpected|extra)\b.{0,40}"
    r"\b(tools|tool_choice)|enable-auto-tool-choice|tools param requires|tool use\b.{0,20}not",
    re.IGNORECASE,
)
_SCHEMA_PATTERN = re.compile(r"response_?format|json_?schema|structured outputs?|guided_json", re.IGNORECASE)
_STREAM_OPTIONS_PATTERN = re.compile(r"stream_options|include_usage", re.IGNORECASE)
_STREAM_PATTERN = re.compile(r"stream(ing)?\b.{0,40}(not|unsupported|unknown)|support stream", re.IGNORECASE)
_MAX_TOKENS_PATTERN = re.compile(r"max_completion_tokens", re.IGNORECASE)


def _match_unsupported(pattern: re.Pattern[str]) -> Callable[[ErrorResponse], bool]:
    return lambda response: response.status in UNSUPPORTED_STATUSES and response.matches(pattern)


CLASSIFIERS: tuple[tuple[ErrorKind, Callable[[ErrorResponse], bool]], ...] = (
    (
        ErrorKind.NO_CREDIT,
        lambda response: (
            response.status == 402 or (response.status in {403, 429} and response.matches(_CREDIT_PATTERN))
        ),
    ),
    (
        ErrorKind.CONTEXT_LENGTH,
        lambda response: response.status in UNSUPPORTED_STATUSES | {0} and response.matches(_CONTEXT_PATTERN),
    ),
    (ErrorKind.MAX_TOKENS_UNSUPPORTED, _match_unsupported(_MAX_TOKENS_PATTERN)),
    (ErrorKind.SCHEMA_UNSUPPORTED, _match_unsupported(_SCHEMA_PATTERN)),
    (ErrorKind.STREAM_OPTIONS_UNSUPPORTED, _match_unsupported(_STREAM_OPTIONS_PATTERN)),
    (ErrorKind.TOOLS_UNSUPPORTED, _match_unsupported(_TOOLS_PATTERN)),
    (ErrorKind.STREAM_UNSUPPORTED, _match_unsupported(_STREAM_PATTERN)),
    (ErrorKind.INVALID_KEY, lambda response: response.status in {401, 403}),
    (ErrorKind.UNKNOWN_MODEL, lambda response: response.status == 404),
    (
        ErrorKind.RETRYABLE,
        lambda response: response.status in RETRYABLE_STATUSES or response.status >= 500 or response.status == 0,
    ),
    (ErrorKind.OTHER, lambda _: True),
)
"""The first row that matches applies."""

ADVICE: Mapping[ErrorKind, str] = {
    ErrorKind.NO_CREDIT: "add credit to the account, or choose another --llm",
    ErrorKind.INVALID_KEY: "set MERGEMILL_LLM_KEY or OPENAI_API_KEY to a key that may use this model",
    ErrorKind.UNKNOWN_MODEL: "choose a --model that --llm has; its address usually ends in /v1",
    ErrorKind.OTHER: "see whether --llm is the address of an OpenAI-compatible API",
}


def classify_error(response: ErrorResponse) -> ErrorKind:
    """Return the kind of an error response."""
    return next(kind for kind, matches in CLASSIFIERS if matches(response))


def parse_retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of Retry-After, which may be a number or a date; 0 when it is absent or invalid."""
    value = headers.get("retry-after", "").strip()
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(float(milliseconds) / 1000, 0.0)
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max((when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
