"""A guidance with instructions from every source, whose texts no program may take for markup of its own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace

from samplers.subjects.guidance import Guidance, GuidanceSkill, GuidanceTool
from taskdb.records.instructions import InstructionSource


def word(name: str) -> str:
    """Return a text of several lines that is found for its name alone."""
    return f"""Rules of the {name}:

- Use `make {name}`, never $(id), "quotes" or 'quotes'.
- Keep {{{{ braces }}}}, {{these}}, 100 % and \\ as they are.   🙂"""


FIELDS = {
    InstructionSource.SYSTEM: "system",
    InstructionSource.REMINDER: "reminder",
    InstructionSource.REPOSITORY: "repository",
    InstructionSource.MEMORY: "memory",
    InstructionSource.SKILL: "skills",
    InstructionSource.TOOL: "tools",
    InstructionSource.TURN: "turns",
}
"""Source -> field of a guidance."""
PARAMETERS = {
    "type": "object",
    "properties": {"version": {"type": "string", "description": "Number of the version."}},
    "required": ["version"],
}
GUIDANCE = Guidance(
    system=word("system"),
    reminder=word("reminder"),
    repository=word("repository"),
    memory=word("memory"),
    skills=(
        GuidanceSkill(
            name="release-notes",
            description='How notes of a release are written: `{"form": 1}`, it\'s brief 🙂.',
            text=word("skill"),
        ),
        GuidanceSkill(name="tables", description="How tables are drawn.", text=word("table")),
    ),
    tools=(
        GuidanceTool(
            name="look_up_version",
            description=word("tool"),
            parameters=PARAMETERS,
            answer="The version is `4.2` 🙂.",
        ),
    ),
    turns=(word("second turn"), word("third turn")),
)


def keep_sources(guidance: Guidance, sources: Collection[InstructionSource]) -> Guidance:
    """Return a guidance with the instructions of some sources alone."""
    empty = Guidance()
    kept = {FIELDS[source] for source in sources}
    return replace(
        guidance, **{field.name: getattr(empty, field.name) for field in fields(Guidance) if field.name not in kept}
    )
