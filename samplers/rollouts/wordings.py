"""Wordings of a guidance in the requests of a rollout: whether, and when, each instruction reached the model."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samplers.subjects.guidance import Guidance
from samplers.trajectories.requests import get_text
from taskdb.records.instructions import InstructionSource

Json = Mapping[str, Any]

SYSTEM_ROLE, USER_ROLE = "system", "user"
PLACES: Mapping[InstructionSource, frozenset[str]] = {
    InstructionSource.SYSTEM: frozenset((SYSTEM_ROLE,)),
    InstructionSource.REMINDER: frozenset((SYSTEM_ROLE, USER_ROLE)),
    InstructionSource.TURN: frozenset((USER_ROLE,)),
    InstructionSource.REPOSITORY: frozenset((SYSTEM_ROLE, USER_ROLE)),
    InstructionSource.SKILL: frozenset((SYSTEM_ROLE, USER_ROLE, "tools")),
    InstructionSource.MEMORY: frozenset((SYSTEM_ROLE, USER_ROLE)),
    InstructionSource.TOOL: frozenset(("tools",)),
}
"""Source -> parts of a request in which its instructions may be: messages of a role, and descriptions of tools.

Messages of the model and results of tools are none of them: an agent that prints a file was not instructed by it.
"""


@dataclass(frozen=True, kw_only=True)
class Wording:
    """A text that must be in a request."""

    key: str
    """Source, with a number where it may have several, such as `skill-1`. The first message of the user is `turn-1`."""
    source: InstructionSource
    text: str


def list_wordings(guidance: Guidance) -> list[Wording]:
    """Return the texts of a guidance that its model must be given; of a skill, the description."""
    single = {
        InstructionSource.SYSTEM: guidance.system,
        InstructionSource.REMINDER: guidance.reminder,
        InstructionSource.REPOSITORY: guidance.repository,
        InstructionSource.MEMORY: guidance.memory,
    }
    wordings = [Wording(key=source.value, source=source, text=text) for source, text in single.items() if text.strip()]
    wordings += _number(InstructionSource.SKILL, (skill.description for skill in guidance.skills), 1)
    wordings += _number(InstructionSource.TOOL, (tool.description for tool in guidance.tools), 1)
    wordings += _number(InstructionSource.TURN, guidance.turns, 2)
    return wordings


def _number(source: InstructionSource, texts: Iterable[str], first: int) -> list[Wording]:
    return [
        Wording(key=f"{source.value}-{number}", source=source, text=text) for number, text in enumerate(texts, first)
    ]


def squeeze(text: str) -> str:
    """Return a text with each white space as a blank."""
    return " ".join(text.split())


@dataclass(frozen=True, kw_only=True)
class RequestTexts:
    """Texts of a request in which wordings are looked for: part of the request -> its text, as PLACES names them."""

    parts: Mapping[str, str]

    @classmethod
    def of(cls, messages: Sequence[Json], tools: Sequence[Json]) -> RequestTexts:
        """Return the texts of a request in the form of chat completions."""
        parts = {
            role: squeeze(" ".join(get_text(message) for message in messages if message.get("role") == role))
            for role in (SYSTEM_ROLE, USER_ROLE)
        }
        functions = (tool.get("function") or {} for tool in tools)
        parts["tools"] = squeeze(" ".join(str(function.get("description") or "") for function in functions))
        return cls(parts=parts)

    def has(self, wording: Wording) -> bool:
        """Return whether the request has a wording, as it is or in the entities of XML, which lists of skills have."""
        wanted = squeeze(wording.text)
        texts = [self.parts[part] for part in PLACES[wording.source]]
        return any(wanted in text or wanted in html.unescape(text) for text in texts)
