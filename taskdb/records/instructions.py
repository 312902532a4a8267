"""Sources that instructions to an agent come from, besides the statement of its task."""

from __future__ import annotations

from enum import StrEnum


class InstructionSource(StrEnum):
    """Place from which an agent is given instructions, in the order of precedence where two exclude each other."""

    SYSTEM = "system"
    """System prompt."""
    REMINDER = "reminder"
    """Text that the program adds to a message of the user and marks as its own."""
    TURN = "turn"
    """Message of the user: the first, with the statement, or a later one."""
    REPOSITORY = "repository"
    """File of the repository that the program reads by itself, such as AGENTS.md."""
    SKILL = "skill"
    """Text that is listed by a description and read when its subject comes up."""
    MEMORY = "memory"
    """File that the program keeps for its user, outside of the repository."""
    TOOL = "tool"
    """Description of a tool."""
