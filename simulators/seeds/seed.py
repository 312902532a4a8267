"""A reference conversation, and where it comes from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from simulators.conversation import Dialogue, TurnRole, render_blocks

ID_DIGITS = 16
"""Hex digits of a seed's id."""
UNKNOWN_LICENSE = "unknown"


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A reference conversation. `line` is that of its file, or its place in a list, from 1."""

    conversation: Dialogue
    file: str
    line: int
    format: str
    name: str = ""
    """Name that its source calls it."""
    subjects: tuple[str, ...] = ()
    """Words by which its source names the task or scenario that it is a conversation on, or was modelled on."""
    license: str = UNKNOWN_LICENSE
    """SPDX id of the licence that it may be used under."""
    is_solved: bool | None = None
    """Whether its source recorded that the task was solved; None where it recorded nothing."""

    @cached_property
    def id(self) -> str:
        """Hash of the conversation: equal conversations have equal ids, wherever they were read from."""
        content = {
            "turns": [turn.to_json() for turn in self.conversation.turns],
            "tools": [dict(tool) for tool in self.conversation.tools],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:ID_DIGITS]

    @property
    def n_turns(self) -> int:
        """Number of turns, those of the system excluded."""
        return len(self.conversation.body)

    @cached_property
    def text(self) -> str:
        """The conversation as blocks, without those of the system."""
        return render_blocks(self.conversation.body)

    @cached_property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the tools that it calls, in the order of their first calls."""
        calls = [
            call.name for turn in self.conversation.turns if turn.role is TurnRole.FUNCTION_CALL for call in turn.calls
        ]
        return tuple(dict.fromkeys(calls))

    @property
    def origin(self) -> tuple[str, ...]:
        """Words by which its source names it and its subject."""
        return tuple(word for word in (*self.subjects, self.name) if word)

    def describe(self) -> dict[str, object]:
        """Return the provenance that rows carry."""
        return {
            "id": self.id,
            "name": self.name,
            "file": self.file,
            "line": self.line,
            "format": self.format,
            "license": self.license,
            "turns": self.n_turns,
            "tools": list(self.tool_names),
            # Without the field where there are none, as in the lines of earlier versions.
            **({"subjects": list(self.subjects)} if self.subjects else {}),
        }
