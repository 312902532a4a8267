"""Guidance of an instruction task: the wordings of its constraints, gathered by their source."""

from __future__ import annotations

from evaluation.instructions.wording import gather_texts, join_texts
from samplers.subjects.guidance import Guidance, GuidanceSkill, GuidanceTool
from taskdb.records.instructions import InstructionOracle, InstructionSource


def make_guidance(oracle: InstructionOracle) -> Guidance:
    """Return the instructions of a task as scaffolds deliver them. Those of the first message are in the statement."""
    if oracle.published is not None:
        return Guidance(system=oracle.published.system, turns=oracle.turns)
    texts = gather_texts(oracle)
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
