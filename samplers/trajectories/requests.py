"""Requests of a rollout to its model, in the form of chat completions, as trajectories are made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

CACHE_MARK = "cache_control"
"""Mark that clients move from message to message; no model is given it."""
TEXT_FIELDS = ("content", "reasoning_content")


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A request and its answer. Token ids and log-probs are the upstream's own, None where it gave none."""

    exchange: int
    """Number of the recorded exchange."""
    messages: tuple[Json, ...]
    tools: tuple[Json, ...] = ()
    answer: Json | None = None
    """The assistant's message; None where the request failed."""
    finish_reason: str | None = None
    error: str = ""
    """Why it failed, in a single line; empty where it did not."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    started_at: str = ""
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    """One for each token of the completion."""

    @property
    def has_token_ids(self) -> bool:
        """Whether prompt and completion are known by their tokens."""
        return self.prompt_token_ids is not None and self.completion_token_ids is not None

    @property
    def is_empty(self) -> bool:
        """Whether the model answered, but with nothing."""
        if self.answer is None:
            return False
        return not self.answer.get("tool_calls") and not any(get_text(self.answer, name) for name in TEXT_FIELDS)


def get_text(message: Json, name: str = "content") -> str:
    """Return the text of a message; of a content in parts, the texts among them, a line each."""
    content = message.get(name)
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def normalise_message(message: Json) -> dict[str, Any]:
    """Return a message without marks for caches and without fields that are empty.

    The form that the model is given of it.

    A content that is a single part of text is that text.
    """
    kept = {name: _strip_marks(value) for name, value in message.items() if name != CACHE_MARK}
    content = kept.get("content")
    if isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}:
        kept["content"] = content[0]["text"]
    kept["content"] = kept.get("content") or ""
    return {name: value for name, value in kept.items() if name == "content" or value not in (None, "", [], {})}


class MessageMap:
    """Function of messages, applied to conversations of which each mostly repeats the previous.

    Results of the messages that two conversations begin with alike are used again, so the time is not quadratic.
    """

    def __init__(self, function: Callable[[Json], int]) -> None:
        self._function = function
        self._messages: Sequence[Json] = ()
        self._results: list[int] = []

    def apply(self, messages: Sequence[Json]) -> list[int]:
        """Return the result of each message."""
        pairs = enumerate(zip(self._messages, messages, strict=False))
        same = next((at for at, (pair, other) in pairs if pair != other), min(len(self._messages), len(messages)))
        self._results = [*self._results[:same], *map(self._function, messages[same:])]
        self._messages = messages
        return list(self._results)


def make_key(message: Json) -> str:
    """Return a text that is equal for messages which a model is given alike.

    Arguments of calls are compared as JSON: clients write them with other blanks than the model, and servers parse
    them before they are rendered.
    """
    kept = normalise_message(message)
    if kept.get("tool_calls"):
        kept["tool_calls"] = [_parse_arguments(call) for call in kept["tool_calls"]]
    return json.dumps(kept, sort_keys=True)


def _parse_arguments(call: Json) -> dict[str, Any]:
    function = call.get("function") or {}
    try:
        arguments = json.dumps(json.loads(function["arguments"]))
    except (ValueError, KeyError, TypeError):
        return dict(call)
    return {**call, "function": {**function, "arguments": arguments}}


def _strip_marks(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _strip_marks(inner) for name, inner in value.items() if name != CACHE_MARK}
    if isinstance(value, list | tuple):
        return [_strip_marks(inner) for inner in value]
    return value
