"""Write the tables of forms into the documentation: `python -m tests.samplers.forms.page`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.samplers.forms.conversations import READ, REFUSED
from tests.samplers.forms.streams import (
    ARGUMENTS,
    BLOCK_INDICES,
    IDS,
    INDICES,
    INPUTS,
    NAMES,
    ORDERS,
    REFUSED_CHUNKS,
    REFUSED_EVENTS,
)

PAGE = Path(__file__).parents[3] / "docs/guide/agents/forms.md"
STREAMS = "<!-- table of streams: written by tests.samplers.forms.page -->\n"
CONVERSATIONS = "<!-- table of conversations: written by tests.samplers.forms.page -->\n"
END = "<!-- end of table -->\n"


def render_streams() -> str:
    """Return the table of the forms of streams."""
    parts = {
        "chat completions: index of a piece": [form.title for form in INDICES],
        "chat completions: id": IDS,
        "chat completions: name": NAMES,
        "chat completions: arguments": ARGUMENTS,
        "chat completions: order": ORDERS,
        "Messages: index of an event": BLOCK_INDICES,
        "Messages: input of a call": INPUTS,
    }
    rows = [(part, form, "read") for part, forms in parts.items() for form in forms]
    rows += [("chat completions", form, f"refused: {words}") for form, (_, words) in REFUSED_CHUNKS.items()]
    rows += [("Messages", form, f"refused: {words}") for form, (_, words) in REFUSED_EVENTS.items()]
    return render_table(("part of a stream", "form", "result"), rows)


def render_conversations() -> str:
    """Return the table of the forms of conversations."""
    rows = [(form, f"read: {shown}") for form, shown in READ.items()]
    rows += [(form, f"refused: {words}") for form, (_, words) in REFUSED.items()]
    return render_table(("form", "result"), rows)


def render_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def render_page(page: str) -> str:
    """Return the page with its tables."""
    for mark, table in ((STREAMS, render_streams()), (CONVERSATIONS, render_conversations())):
        before, _, rest = page.partition(mark)
        page = before + mark + table + END + rest.partition(END)[2]
    return page


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text()))
