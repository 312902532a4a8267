"""Transcripts by hand: the same turn again and again, with parts that are easy to count."""

from __future__ import annotations

from typing import Any

OPENING: list[dict[str, Any]] = [
    {"role": "system", "content": "You look things up."},
    {"role": "user", "content": "In which release was the cache added?"},
]


def answer(number: int, *, text: bool = True, reasoning: bool = True, has_call: bool = True) -> dict[str, Any]:
    """Return an answer with the parts that are asked for."""
    message: dict[str, Any] = {"role": "assistant", "content": f"text {number}" if text else ""}
    if reasoning:
        message["reasoning_content"] = f"reasoning {number}"
    if has_call:
        function = {"name": "search", "arguments": f'{{"query": "{number}"}}'}
        message["tool_calls"] = [{"id": f"c{number}", "type": "function", "function": function}]
    return message


def output(number: int, content: str | None = None) -> dict[str, Any]:
    """Return the output of the call of an answer."""
    return {"role": "tool", "tool_call_id": f"c{number}", "content": content or f"output {number}"}


def make_transcript(n_turns: int) -> list[dict[str, Any]]:
    """Return a transcript of turns from 1, each an answer with a call and its output."""
    turns = [message for number in range(1, n_turns + 1) for message in (answer(number), output(number))]
    return [*OPENING, *turns]
