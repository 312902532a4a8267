"""Guidance of an instruction task: the wordings of its constraints, gathered by their source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from samplers.subjects.guidance import Guidance, GuidanceSkill, GuidanceTool
from taskdb.records.instructions import STATING_SOURCES, BoundConstraint, InstructionOracle, InstructionSource

PRECEDENCE = "Where instructions contradict each other, follow them in this order, the first before the others: {}."
SOURCE_NAMES: Mapping[InstructionSource, str] = {
    InstructionSource.SYSTEM: "the system prompt",
    InstructionSource.REMINDER: "system reminders",
    InstructionSource.TURN: "the newest message of the user",
    InstructionSource.REPOSITORY: "files of the repository",
    InstructionSource.SKILL: "skills",
    InstructionSource.MEMORY: "memory",
    InstructionSource.TOOL: "descriptions of tools",
}


def make_guidance(oracle: InstructionOracle) -> Guidance:
    """Return the instructions of a task as scaffolds deliver them. Those of the first message are in the statement."""
    if oracle.published is not None:
        return Guidance(system=oracle.published.system, turns=oracle.turns)
    texts = {source: join_texts(oracle.constraints, source) for source in InstructionSource}
    if oracle.precedence:
        highest = next(source for source in oracle.precedence if source in STATING_SOURCES and texts[source])
        order = ", ".join(SOURCE_NAMES[source] for source in oracle.precedence)
        texts[highest] = f"{texts[highest]}\n- {PRECEDENCE.format(order)}"
    return Guidance(
        system=texts[InstructionSource.SYSTEM],
        reminder=texts[InstructionSource.REMINDER],
        repository=texts[InstructionSource.REPOSITORY],
        memory=texts[InstructionSource.MEMORY],
        skills=tuple(
            GuidanceSkill(name=skill.name, description=skill.description, text=skill.text) for skill in oracle.skills
        ),
        tools=tuple(
            GuidanceTool(name=tool.name, description=tool.description, parameters=tool.parameters, answer=tool.answer)
            for tool in oracle.tools
        ),
        turns=tuple(
            "\n\n".join(filter(None, (request, join_texts(oracle.constraints, InstructionSource.TURN, turn))))
            for turn, request in enumerate(oracle.turns, 2)
        ),
    )


def join_texts(constraints: Iterable[BoundConstraint], source: InstructionSource, turn: int | None = None) -> str:
    """Return the wordings of a source as a list; of a turn alone where one is given."""
    kept = [
        constraint.text for constraint in constraints if constraint.source is source and turn in {None, constraint.turn}
    ]
    return "\n".join(f"- {text}" for text in kept)
