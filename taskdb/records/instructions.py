"""Instructions to an agent besides the statement of its task: their sources, and the constraints of a task."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from taskdb.records.base import LATER, ArtifactHash, Part


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


STATING_SOURCES = (
    InstructionSource.SYSTEM,
    InstructionSource.REMINDER,
    InstructionSource.REPOSITORY,
    InstructionSource.MEMORY,
)
"""Sources that can state which of two instructions takes precedence."""


JUDGED = "judged"
"""Check of a constraint that a model decides; its argument is a `question`."""


class BoundConstraint(Part):
    """An instruction of a task: its wording, and the check that decides whether it was followed."""

    name: str
    """Name of the known constraint that it was made of; unique in a task."""
    family: str
    source: InstructionSource
    text: str
    """Wording, as it is delivered."""
    turn: int = 1
    """Turn of the user from which it is in force."""
    until: int | None = None
    """Last turn in which it is in force; null for none."""
    check: str
    """Name of the check."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    overridden_by: str = ""
    """Name of the constraint that takes precedence where both exclude each other; such a check never counts."""


class SkillText(Part):
    """A skill of a task."""

    name: str
    description: str
    text: str


class ToolText(Part):
    """A tool whose description instructs."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of its arguments."""
    answer: str
    """Text that each call returns."""


class CarelessScript(Part):
    """Submission that breaks one constraint and keeps all others."""

    constraint: str
    submission: ArtifactHash


class PublishedChecklist(Part):
    """Row of a published checklist, from which a task without tests and without a known tree was imported."""

    row: ArtifactHash
    """JSON of the row."""
    image: str
    """Name of the image in which an agent works on it; it need not be here but for that."""
    workdir: str
    """Folder of the repository in the image, absolute."""
    system: str = ""
    """Text for the system prompt."""


class InstructionOracle(Part):
    """Instructions besides the statement; the tests decide on the files, checks on the conversation."""

    form: Literal["instructions"] = "instructions"
    constraints: tuple[BoundConstraint, ...]
    turns: tuple[str, ...] = ()
    """Messages of the user after the first, without the instructions that they have."""
    precedence: tuple[InstructionSource, ...] = ()
    """Order that the highest source states, where constraints exclude each other; empty where none do."""
    skills: tuple[SkillText, ...] = ()
    tools: tuple[ToolText, ...] = ()
    dutiful: ArtifactHash | None
    """Submission that solves the task and follows every instruction, in the form of `evaluation.instructions`; null for
    a published checklist."""
    careless: tuple[CarelessScript, ...]
    """One for each constraint that counts."""
    gates: dict[str, int] = Field(default_factory=dict)
    """Reason -> number of drawn constraints that the gates refused for it."""
    published: Annotated[PublishedChecklist | None, LATER] = None
    """Null for tasks of our own. Of a published checklist the image brings all instructions but those of the system
    prompt and of the user, and every item counts, whether its wording was in a request or not."""

    def require_dutiful(self) -> str:
        """Return the hash of the submission that solves the task and follows every instruction.

        Raises:
            LookupError: the task is a published checklist.
        """
        if self.dutiful is None:
            raise LookupError("a published checklist has no solution")
        return self.dutiful

    @property
    def sources(self) -> frozenset[InstructionSource]:
        """Sources that a scaffold must deliver: the first message of the user needs no delivery of its own."""
        if self.published is not None:
            given = {InstructionSource.SYSTEM: self.published.system, InstructionSource.TURN: self.turns}
            return frozenset(source for source, value in given.items() if value)
        delivered = {constraint.source for constraint in self.constraints} - {InstructionSource.TURN}
        optional = {
            InstructionSource.TURN: self.turns,
            InstructionSource.SKILL: self.skills,
            InstructionSource.TOOL: self.tools,
        }
        return frozenset(delivered | {source for source, value in optional.items() if value})
