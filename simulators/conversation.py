"""Conversations of a user, an agent and its tools, in the five roles of the ShareGPT form.

A call turn that was read from a structured source, or parsed, has `calls`; a call whose text could not be read as a
call has none, and its text is the text that was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class TurnRole(StrEnum):
    """Speaker of a turn."""

    SYSTEM = "system"
    HUMAN = "human"
    ASSISTANT = "assistant"
    FUNCTION_CALL = "function_call"
    OBSERVATION = "observation"


AGENT_ROLES = frozenset((TurnRole.ASSISTANT, TurnRole.FUNCTION_CALL))
"""Roles of the text that the agent writes, which is the part that is trained."""


@dataclass(frozen=True, kw_only=True)
class FunctionCall:
    """Call of a tool. `arguments` is a JSON object."""

    name: str
    arguments: Mapping[str, Any]

    def render(self, *, ascii_only: bool = False) -> str:
        """Return the call as a line of JSON: `{"name": .., "arguments": ..}`."""
        return json.dumps({"name": self.name, "arguments": dict(self.arguments)}, ensure_ascii=ascii_only)


@dataclass(frozen=True, kw_only=True)
class DialogueTurn:
    """A turn. `reasoning` is the agent's own, and the user does not see it; a call turn may have text, too."""

    role: TurnRole
    text: str = ""
    calls: tuple[FunctionCall, ...] = ()
    reasoning: str = ""

    @property
    def is_agent(self) -> bool:
        """Whether the agent wrote it."""
        return self.role in AGENT_ROLES

    def to_json(self) -> dict[str, Any]:
        """Return the turn as JSON; empty parts are left out."""
        calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in self.calls]
        parts = {"text": self.text, "reasoning": self.reasoning, "calls": calls}
        return {"role": self.role.value, **{name: value for name, value in parts.items() if value}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DialogueTurn:
        """Return the turn that `to_json` wrote."""
        calls = tuple(FunctionCall(name=call["name"], arguments=call["arguments"]) for call in value.get("calls", ()))
        return cls(
            role=TurnRole(value["role"]),
            text=value.get("text", ""),
            calls=calls,
            reasoning=value.get("reasoning", ""),
        )


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """Turns in their order and the tools that the agent was given, each `{name, description, parameters}`."""

    turns: tuple[DialogueTurn, ...]
    tools: tuple[Mapping[str, Any], ...] = ()

    @property
    def system(self) -> str:
        """Texts of the system at the beginning."""
        texts = []
        for turn in self.turns:
            if turn.role is not TurnRole.SYSTEM:
                break
            texts.append(turn.text)
        return "\n\n".join(texts)

    @property
    def body(self) -> tuple[DialogueTurn, ...]:
        """All turns but those of the system."""
        return tuple(turn for turn in self.turns if turn.role is not TurnRole.SYSTEM)


MARKERS: Mapping[TurnRole, str] = {
    TurnRole.SYSTEM: "SYSTEM:",
    TurnRole.HUMAN: "HUMAN:",
    TurnRole.ASSISTANT: "ASSISTANT:",
    TurnRole.FUNCTION_CALL: "FUNCTION_CALL:",
    TurnRole.OBSERVATION: "OBSERVATION:",
}
"""Role -> beginning of its block, where a domain pack has no markers of its own."""


def render_blocks(turns: Sequence[DialogueTurn], markers: Mapping[TurnRole, str] = MARKERS) -> str:
    """Return turns as text: a block for each, with an empty line between two."""
    return "\n\n".join(f"{markers[turn.role]} {render_turn(turn)}" for turn in turns)


def render_turn(turn: DialogueTurn) -> str:
    """Return the text of a turn; a call turn's reasoning and text stand in `<think>`, before its JSON."""
    if not turn.calls:
        return f"<think>\n{turn.reasoning}\n</think>\n{turn.text}" if turn.reasoning else turn.text
    thought = "\n".join(part.strip() for part in (turn.reasoning, turn.text) if part.strip())
    calls = [call.render() for call in turn.calls]
    listed = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
    return f"<think>\n{thought}\n</think>\n{listed}" if thought else listed
