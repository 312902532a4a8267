"""Assembly of an answer from the chunks of a stream, or from a complete response. Malformed parts are ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import json_repair

from backends.llm.base import CHARS_PER_TOKEN, ToolCall
from backends.llm.call_pieces import CallJoiner, CallPieceError, read_piece
from backends.llm.meter import TokenUsage

FINISH_LENGTH = "length"
"""Finish reason of an answer that was cut off at its token limit."""


@dataclass
class ResponseAccumulator:
    """The answer received so far. `finish_reason` is None until the endpoint sends it."""

    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    reported_usage: Mapping[str, Any] | None = None
    """The endpoint's own count of tokens."""
    chunk_count: int = 0
    _calls: CallJoiner = field(default_factory=CallJoiner)

    def add_chunk(self, data: Any) -> None:
        """Add a chunk of a stream, or a complete response. Malformed parts are ignored."""
        if not isinstance(data, Mapping):
            return
        self.chunk_count += 1
        if isinstance(usage := data.get("usage"), Mapping):
            self.reported_usage = usage
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            self.text += _extract_text(delta.get("content"))
            self.reasoning += _extract_text(delta.get("reasoning_content") or delta.get("reasoning"))
            calls = delta.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                self._add_tool_call(call, is_whole="delta" not in choice)
        if isinstance(finish := choice.get("finish_reason"), str) and finish:
            self.finish_reason = finish

    def _add_tool_call(self, call: Any, *, is_whole: bool) -> None:
        if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
            return
        with suppress(CallPieceError):
            piece = read_piece(call)
            if is_whole:
                self._calls.begin(piece)
            else:
                self._calls.add(piece)

    def build_tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls; a call without an id from the endpoint is given an id."""
        cut = self.finish_reason == FINISH_LENGTH
        return tuple(
            parse_tool_call(call.given_id or f"call_{number}", call.name, call.arguments, cut=cut)
            for number, call in enumerate(self._calls.calls, 1)
            if call.name or call.arguments
        )

    def count_usage(self, prompt_tokens: int) -> TokenUsage:
        """Return the token counts of the endpoint, else an estimate; `prompt_tokens` is that of the prompt."""
        reported = self.reported_usage or {}
        prompt, completion = (
            _parse_count(reported.get("prompt_tokens")),
            _parse_count(reported.get("completion_tokens")),
        )
        if prompt or completion:
            details = reported.get("prompt_tokens_details")
            cached = _parse_count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
            return TokenUsage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=min(cached, prompt))
        written = len(self.text) + len(self.reasoning) + sum(len(call.arguments) for call in self._calls.calls)
        return TokenUsage(prompt_tokens=prompt_tokens, completion_tokens=-(-written // CHARS_PER_TOKEN), estimated=True)


@dataclass
class EmbeddingResponse:
    """Vectors of a response of the embeddings API."""

    vectors: list[list[float]] = field(default_factory=list)
    prompt_tokens: int = 0

    def read(self, data: Any, expected: int) -> None:
        """Read a response to a request for so many vectors.

        Raises:
            ValueError: it has another number of them, or they are not vectors of the same length.
        """
        listed = data.get("data") if isinstance(data, Mapping) else None
        entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
        entries.sort(key=lambda entry: _parse_count(entry.get("index")))
        vectors = [entry.get("embedding") for entry in entries]
        if len(vectors) != expected or not all(_is_vector(vector) for vector in vectors):
            raise ValueError(f"{len(vectors)} vectors where {expected} are expected, or something else")
        self.vectors = [[float(number) for number in vector] for vector in vectors if vector is not None]
        if len({len(vector) for vector in self.vectors}) != 1:
            raise ValueError("vectors of several lengths")
        usage = data.get("usage")
        self.prompt_tokens = _parse_count(usage.get("prompt_tokens")) if isinstance(usage, Mapping) else 0


def parse_tool_call(call_id: str, name: str, arguments: str, *, cut: bool = False) -> ToolCall:
    """Parse a call from its JSON text, which is repaired if need be.

    `cut`: the answer was cut off at its limit. Its arguments are not repaired: half a command is another command.
    """
    parsed = _parse_object(arguments, repair=not cut)
    problem = ""
    if parsed is None:
        problem = "the arguments were cut off at the limit of an answer: write less" if cut else NOT_AN_OBJECT
    written = arguments if _is_object(arguments) else ""
    return ToolCall(id=call_id, name=name, arguments=parsed, problem=problem, written=written)


NOT_AN_OBJECT = "the arguments are not a JSON object"


def _parse_object(text: str, *, repair: bool) -> Mapping[str, Any] | None:
    if not text.strip():
        return {}
    try:
        parsed = json.loads(text, strict=False)
        if isinstance(parsed, str):  # encoded twice
            parsed = json.loads(parsed, strict=False)
    except ValueError:
        parsed = json_repair.loads(text) if repair else None
    return parsed if isinstance(parsed, dict) and (parsed or text.strip() == "{}") else None


def _is_object(text: str) -> bool:
    """Return whether a text is the JSON of an object as the strictest server wants it."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _extract_text(value: Any) -> str:
    """Return a text, joined where it has parts; empty for any other value."""
    if isinstance(value, list):
        return "".join(_extract_text(part.get("text")) for part in value if isinstance(part, Mapping))
    return value if isinstance(value, str) else ""


def _parse_count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(number) in (int, float) for number in value)
