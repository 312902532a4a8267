"""What an endpoint's refusal means. Reading READINGS is reading what is done about it.

Endpoints agree on little beyond status codes: the words are those of OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and
Anthropic's and Google's compatible addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from mergemill.errors import Transient

AGAIN = frozenset({408, 409, 425, 429})
"""Below 500, what may be different later."""
REFUSALS = frozenset({400, 404, 413, 422, 500, 501})
"""With these an endpoint may say that it does not know something that was asked for."""


class Meaning(StrEnum):
    """What is to be done."""

    CONTEXT = "context"
    """Ask with a shorter conversation."""
    NO_TOOLS = "no-tools"
    """Ask without tool calls: describe the tools in words."""
    NO_SHAPE = "no-shape"
    """Ask without a schema: the model is told of it in words."""
    NO_STREAM_OPTIONS = "no-stream-options"
    NO_STREAM = "no-stream"
    OTHER_LIMIT = "other-limit"
    """Name the limit of an answer `max_completion_tokens`."""
    MONEY = "money"
    """The account is empty."""
    KEY = "key"
    MODEL = "model"
    AGAIN = "again"
    WRONG = "wrong"
    """Anything else that trying again does not mend."""


class FaultyError(Transient):
    """An attempt failed in a way that the next may not. `after`: seconds the endpoint asks to wait."""

    def __init__(self, message: str, *, after: float = 0.0) -> None:
        super().__init__(message, advice="run the same command again later, or see what the endpoint's log says")
        self.after = after


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An answer that is none. `status` is 0 where an error came within a stream."""

    status: int
    code: str
    message: str
    after: float = 0.0

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether its code or message has these words."""
        return bool(pattern.search(f"{self.code} {self.message}"))


_MONEY = re.compile(
    r"insufficient_quota|billing|credit balance|payment required|insufficient (funds|credits)", re.IGNORECASE
)
_CONTEXT = re.compile(
    r"context_length|context length|context window|context size|maximum context|prompt is too long|input is too long|"
    r"too many (input )?tokens|reduce the length|exceeds the (model's )?(available )?context|exceed_context_size",
    re.IGNORECASE,
)
_TOOLS = re.compile(
    r"support (the )?(tool|function)|(tools?|tool_choice|functions?)\b.{0,40}(not (supported|allowed|permitted|enabled)"
    r"|unsupported|unknown|unrecognized|extra inputs)|(unknown|unrecognized|unsupported|unexpected|extra)\b.{0,40}"
    r"\b(tools|tool_choice)|enable-auto-tool-choice|tools param requires|tool use\b.{0,20}not",
    re.IGNORECASE,
)
_SHAPE = re.compile(r"response_?format|json_?schema|structured outputs?|guided_json", re.IGNORECASE)
_STREAM_OPTIONS = re.compile(r"stream_options|include_usage", re.IGNORECASE)
_STREAM = re.compile(r"stream(ing)?\b.{0,40}(not|unsupported|unknown)|support stream", re.IGNORECASE)
_LIMIT = re.compile(r"max_completion_tokens", re.IGNORECASE)


def _refuses(pattern: re.Pattern[str]) -> Callable[[Fault], bool]:
    return lambda fault: fault.status in REFUSALS and fault.says(pattern)


READINGS: tuple[tuple[Meaning, Callable[[Fault], bool]], ...] = (
    (Meaning.MONEY, lambda fault: fault.status == 402 or (fault.status in {403, 429} and fault.says(_MONEY))),
    (Meaning.CONTEXT, lambda fault: fault.status in REFUSALS | {0} and fault.says(_CONTEXT)),
    (Meaning.OTHER_LIMIT, _refuses(_LIMIT)),
    (Meaning.NO_SHAPE, _refuses(_SHAPE)),
    (Meaning.NO_STREAM_OPTIONS, _refuses(_STREAM_OPTIONS)),
    (Meaning.NO_TOOLS, _refuses(_TOOLS)),
    (Meaning.NO_STREAM, _refuses(_STREAM)),
    (Meaning.KEY, lambda fault: fault.status in {401, 403}),
    (Meaning.MODEL, lambda fault: fault.status == 404),
    (Meaning.AGAIN, lambda fault: fault.status in AGAIN or fault.status >= 500 or fault.status == 0),
    (Meaning.WRONG, lambda _: True),
)
"""The first that fits counts."""

ADVICE: Mapping[Meaning, str] = {
    Meaning.MONEY: "add credit to the account, or choose another --llm",
    Meaning.KEY: "set MERGEMILL_LLM_KEY or OPENAI_API_KEY to a key that may use this model",
    Meaning.MODEL: "choose a --model that --llm has; its address usually ends in /v1",
    Meaning.WRONG: "see whether --llm is the address of an OpenAI-compatible API",
}


def meaning(fault: Fault) -> Meaning:
    """What a fault means."""
    return next(found for found, fits in READINGS if fits(fault))


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """What Retry-After asks for, in seconds or as a date; 0 when it says nothing that makes sense."""
    said = headers.get("retry-after", "").strip()
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(float(milliseconds) / 1000, 0.0)
        return max(float(said), 0.0)
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(said)
    except ValueError:
        return 0.0
    return max((when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
