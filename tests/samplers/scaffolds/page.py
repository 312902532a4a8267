"""Write the table of what scaffolds deliver into the documentation: `python -m tests.samplers.scaffolds.page`."""

from __future__ import annotations

from pathlib import Path

from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold
from taskdb.records.instructions import InstructionSource
from tests.samplers.forms.page import render_table

PAGE = Path(__file__).parents[3] / "docs/guide/agents/delivery.md"
BEGIN = "<!-- table: written by tests.samplers.scaffolds.page -->\n"
END = "<!-- end of table -->\n"
NAMES = {
    InstructionSource.SYSTEM: "system prompt",
    InstructionSource.REMINDER: "reminder",
    InstructionSource.TURN: "further messages",
    InstructionSource.REPOSITORY: "repository file",
    InstructionSource.SKILL: "skill",
    InstructionSource.MEMORY: "memory",
    InstructionSource.TOOL: "tool",
}


def render_places() -> str:
    """Return the table: for each source and scaffold where the text goes, or `-` where the source is refused."""
    scaffolds = [scaffold for name in SCAFFOLDS if (scaffold := load_scaffold(name)).uses_model]
    header = ("source", *(f"`{scaffold.name}`" for scaffold in scaffolds))
    rows = [
        (f"{NAMES[source]} (`{source.value}`)", *(scaffold.places.get(source, "-") for scaffold in scaffolds))
        for source in InstructionSource
    ]
    return render_table(header, rows)


def render_page(page: str) -> str:
    """Return the page with its table."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + render_places() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text()))
