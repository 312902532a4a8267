"""Write the table of what scaffolds deliver into the documentation: `python -m tests.samplers.scaffolds.page`.

What it has of requests is from those that `test_delivery.py` has recorded of the real programs: with
`MERGEMILL_TEST_RECORD=1` it writes the files from which the table is made, without it compares them with a new run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold
from taskdb.records.instructions import InstructionSource
from tests.samplers.forms.page import render_table

PAGE = Path(__file__).parents[3] / "docs/guide/agents/delivery.md"
BEGIN = "<!-- table: written by tests.samplers.scaffolds.page -->\n"
END = "<!-- end of table -->\n"
RECORDED = Path(__file__).parent / "data"
"""Folder of a file for each scaffold: source -> parts of the recorded request that have its instruction."""
PARTS = {"system": "system messages", "user": "message of the user", "tools": "tools"}
NAMES = {
    InstructionSource.SYSTEM: "system prompt",
    InstructionSource.REMINDER: "reminder",
    InstructionSource.TURN: "further messages",
    InstructionSource.REPOSITORY: "repository file",
    InstructionSource.SKILL: "skill",
    InstructionSource.MEMORY: "memory",
    InstructionSource.TOOL: "tool",
}


def load_parts(scaffold: str) -> Mapping[str, list[str]]:
    """Return source -> parts of the recorded request that have its instruction."""
    parts: dict[str, list[str]] = json.loads((RECORDED / f"{scaffold}.json").read_text())
    return parts


def render_cell(place: str, parts: Iterable[str]) -> str:
    """Return a cell: where the text goes, and in which parts of the request it was seen."""
    return f"{place}; seen in: {', '.join(PARTS[part] for part in parts)}"


def render_places() -> str:
    """Return the table: for each source and scaffold where the text goes and was seen, or `-` for a refused source."""
    scaffolds = [scaffold for name in SCAFFOLDS if (scaffold := load_scaffold(name)).uses_model]
    header = ("source", *(f"`{scaffold.name}`" for scaffold in scaffolds))
    rows = [
        (
            f"{NAMES[source]} (`{source.value}`)",
            *(
                render_cell(scaffold.places[source], load_parts(scaffold.name)[source.value])
                if source in scaffold.places
                else "-"
                for scaffold in scaffolds
            ),
        )
        for source in InstructionSource
    ]
    return render_table(header, rows)


def render_page(page: str) -> str:
    """Return the page with its table."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + render_places() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text()))
