"""An answer put together: from the pieces of a stream, or from one that came whole. Both are read with suspicion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import json_repair

from backends.llm.base import CHARS_PER_TOKEN, ToolCall
from backends.llm.meter import Usage

LENGTH = "length"
"""The API's word for an answer that was cut at its limit."""


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Answer:
    """What has come so far. `finish` is None until the endpoint has said that it is done."""

    text: str = ""
    reasoning: str = ""
    finish: str | None = None
    told: Mapping[str, Any] | None = None
    """The endpoint's own count of tokens."""
    pieces: int = 0
    _calls: dict[int, _Call] = field(default_factory=dict)

    def take(self, data: Any) -> None:
        """Add a piece of a stream, or the whole answer. What is not as it should be is passed over."""
        if not isinstance(data, Mapping):
            return
        self.pieces += 1
        if isinstance(usage := data.get("usage"), Mapping):
            self.told = usage
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        said = choice.get("delta") or choice.get("message")
        if isinstance(said, Mapping):
            self.text += _text(said.get("content"))
            self.reasoning += _text(said.get("reasoning_content") or said.get("reasoning"))
            for place, call in enumerate(said.get("tool_calls") or ()):
                self._take_call(place, call)
        if isinstance(finish := choice.get("finish_reason"), str) and finish:
            self.finish = finish

    def _take_call(self, place: int, call: Any) -> None:
        if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
            return
        index = call["index"] if isinstance(call.get("index"), int) else place
        known = self._calls.get(index)
        # Some endpoints number all calls 0 and send each whole; a new id is a new call.
        if known and known.id and call.get("id") and call["id"] != known.id and known.name:
            index = max(self._calls) + 1
        mine = self._calls.setdefault(index, _Call())
        function = call["function"]
        mine.id = mine.id or _text(call.get("id"))
        mine.name = mine.name or _text(function.get("name"))
        arguments = function.get("arguments")
        mine.arguments += json.dumps(arguments) if isinstance(arguments, Mapping) else _text(arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """The tools asked for; each has an id, also where the endpoint gave none."""
        cut = self.finish == LENGTH
        return tuple(
            tool_call(call.id or f"call_{number}", call.name, call.arguments, cut=cut)
            for number, call in enumerate(self._calls.values(), 1)
            if call.name or call.arguments
        )

    def usage(self, prompt_tokens: int) -> Usage:
        """Tokens as the endpoint counted them, else by length; `prompt_tokens` is the estimate of what was sent."""
        told = self.told or {}
        prompt, completion = _number(told.get("prompt_tokens")), _number(told.get("completion_tokens"))
        if prompt or completion:
            details = told.get("prompt_tokens_details")
            cached = _number(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
            return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=min(cached, prompt))
        written = len(self.text) + len(self.reasoning) + sum(len(call.arguments) for call in self._calls.values())
        return Usage(prompt_tokens=prompt_tokens, completion_tokens=-(-written // CHARS_PER_TOKEN), estimated=True)


def tool_call(call_id: str, name: str, arguments: str, *, cut: bool = False) -> ToolCall:
    """A call from its JSON text, repaired where that is possible. `cut`: the answer ended at its limit.

    A cut one is not repaired: half a command is another command.
    """
    found = _object(arguments, repair=not cut)
    problem = ""
    if found is None:
        problem = "the arguments were cut off at the limit of an answer: write less" if cut else NO_OBJECT
    return ToolCall(id=call_id, name=name, arguments=found, problem=problem)


NO_OBJECT = "the arguments are not a JSON object"


def _object(text: str, *, repair: bool) -> Mapping[str, Any] | None:
    if not text.strip():
        return {}
    try:
        found = json.loads(text, strict=False)
        if isinstance(found, str):  # encoded twice
            found = json.loads(found, strict=False)
    except ValueError:
        found = json_repair.loads(text) if repair else None
    return found if isinstance(found, dict) and (found or text.strip() == "{}") else None


def _text(value: Any) -> str:
    """A text, also where it comes in parts; nothing for anything else."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, Mapping))
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
