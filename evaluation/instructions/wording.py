"""Wordings of a task's instructions, gathered by their source, with the precedence where two exclude each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


def gather_texts(oracle: InstructionOracle) -> dict[InstructionSource, str]:
    """Return source -> its wordings as a list, empty for none. The highest source states the precedence, if any."""
    texts = {source: join_texts(oracle.constraints, source) for source in InstructionSource}
    if oracle.precedence:
        highest = next(source for source in oracle.precedence if source in STATING_SOURCES and texts[source])
        order = ", ".join(SOURCE_NAMES[source] for source in oracle.precedence)
        texts[highest] = f"{texts[highest]}\n- {PRECEDENCE.format(order)}"
    return texts


def join_texts(constraints: Iterable[BoundConstraint], source: InstructionSource, turn: int | None = None) -> str:
    """Return the wordings of a source as a list; of a turn alone where one is given."""
    kept = [
        constraint.text for constraint in constraints if constraint.source is source and turn in {None, constraint.turn}
    ]
    return "\n".join(f"- {text}" for text in kept)
