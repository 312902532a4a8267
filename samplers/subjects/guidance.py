"""Guidance of a subject: instructions besides its statement, in the form in which scaffolds deliver them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from taskdb.records.instructions import InstructionSource


@dataclass(frozen=True, kw_only=True)
class GuidanceSkill:
    """A skill: its description is listed to the model, its text is read on demand."""

    name: str
    """Letters, digits and hyphens."""
    description: str
    """A single line."""
    text: str


@dataclass(frozen=True, kw_only=True)
class GuidanceTool:
    """A tool besides the scaffold's own, whose description instructs the model."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments, an object."""
    answer: str
    """Text that each call returns."""


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """Instructions by source; empty for none. Texts are Markdown."""

    system: str = ""
    reminder: str = ""
    repository: str = ""
    memory: str = ""
    skills: tuple[GuidanceSkill, ...] = ()
    tools: tuple[GuidanceTool, ...] = ()
    turns: tuple[str, ...] = field(default=())
    """Messages of the user after the first, each sent when the agent has ended its work on the one before."""

    @property
    def sources(self) -> frozenset[InstructionSource]:
        """Sources that have an instruction. The first message of the user needs no delivery of its own."""
        values: Mapping[InstructionSource, object] = {
            InstructionSource.SYSTEM: self.system,
            InstructionSource.REMINDER: self.reminder,
            InstructionSource.TURN: self.turns,
            InstructionSource.REPOSITORY: self.repository,
            InstructionSource.SKILL: self.skills,
            InstructionSource.MEMORY: self.memory,
            InstructionSource.TOOL: self.tools,
        }
        return frozenset(source for source, value in values.items() if value)
