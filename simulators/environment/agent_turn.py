"""Answer that an agent hands in for a step: text in Hermes form, or text and calls apart.

And the problem with its form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulators.call_text import CallTextError, extract_hermes_calls, read_call
from simulators.conversation import FunctionCall

OPENING_TAG, CLOSING_TAG = "<tool_call>", "</tool_call>"
FORM = 'a call is one JSON object {"name": ..., "arguments": {...}} between <tool_call> and </tool_call>'
"""How a call is written; part of the errors that agents read."""
MAX_SHOWN = 120
"""Characters of a malformed call that an error repeats."""
_THINK_END = "</think>"
_PAIR = re.compile(r"<tool_call>.*?</tool_call>", re.DOTALL)
_BARE_CALL = re.compile(
    r'\{\s*"(?:name|function)"\s*:\s*"[^"]*"\s*,\s*"(?:arguments|parameters)"\s*:'
    r'|\A\s*(?:```\w*\s*)?\[?\s*\{\s*"(?:name|function)"\s*:'
)
_FOREIGN_MARK = re.compile(r"^\s*(?:FUNCTION_CALL:|Action:\s*\w+\()|<function[_=]", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class AgentTurn:
    """A turn of the agent. `raw` is the text that it wrote, with calls in tags.

    `problem`: the fault that is wrong with its calls.
    """

    raw: str
    text: str = ""
    """Without reasoning and calls."""
    reasoning: str = ""
    calls: tuple[FunctionCall, ...] = ()
    problem: str = ""

    @property
    def is_call(self) -> bool:
        """Whether it calls tools, or tries to."""
        return bool(self.calls or self.problem)

    @property
    def n_actions(self) -> int:
        """Calls, or 1 for a message or an attempt of a call."""
        return max(len(self.calls), 1)

    @property
    def shown(self) -> str:
        """Text that it wrote but for its reasoning."""
        return self.raw.partition(_THINK_END)[2].strip() if _THINK_END in self.raw else self.raw.strip()


def parse_agent_text(text: str) -> AgentTurn:
    """Return the turn of a text: reasoning up to `</think>`, calls in `<tool_call>`, the rest for the person."""
    reasoning, rest = _split_reasoning(text)
    if OPENING_TAG in rest or CLOSING_TAG in rest:
        tags = (rest.count(OPENING_TAG), rest.count(CLOSING_TAG), len(_PAIR.findall(rest)))
        if len(set(tags)) > 1:
            return AgentTurn(raw=text, reasoning=reasoning, problem=f"the tags of a call do not pair: {FORM}")
        try:
            own, calls = extract_hermes_calls(rest)
        except CallTextError as error:
            return AgentTurn(raw=text, reasoning=reasoning, problem=f"{error}: {FORM}")
        return AgentTurn(raw=text, text=own, reasoning=reasoning, calls=calls)
    if match := _BARE_CALL.search(rest) or _FOREIGN_MARK.search(rest):
        shown = " ".join(rest[match.start() :].split())[:MAX_SHOWN]
        return AgentTurn(raw=text, reasoning=reasoning, problem=f"a call outside of its tags ({shown}): {FORM}")
    return AgentTurn(raw=text, text=rest.strip(), reasoning=reasoning)


def read_agent_calls(text: str, calls: Sequence[Mapping[str, Any]]) -> AgentTurn:
    """Return the turn of text and calls that an agent's server has parsed: `{name, arguments}` or OpenAI's form."""
    reasoning, rest = _split_reasoning(text)
    try:
        read = tuple(read_call(call.get("function", call)) for call in calls)
    except CallTextError as error:
        raw = "\n".join([text, *(f"{OPENING_TAG}\n{json.dumps(dict(call))}\n{CLOSING_TAG}" for call in calls)])
        return AgentTurn(raw=raw.strip(), reasoning=reasoning, problem=f"{error}: {FORM}")
    tagged = [f"{OPENING_TAG}\n{call.render()}\n{CLOSING_TAG}" for call in read]
    raw = "\n".join(part for part in (text.strip(), *tagged) if part)
    return AgentTurn(raw=raw, text=rest.strip(), reasoning=reasoning, calls=read)


def _split_reasoning(text: str) -> tuple[str, str]:
    before, mark, after = text.partition(_THINK_END)
    return (before.replace("<think>", "").strip(), after) if mark else ("", text)
