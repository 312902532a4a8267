"""Tables of the documentation that a benchmark writes between two marks of a page."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end of table -->\n"


def write_table(page: Path, module: str, table: str) -> None:
    """Replace the text between the marks of a page.

    Args:
        page: a Markdown file with the marks of the module.
        module: name of the module that writes the table.
        table: Markdown with a line end.

    Raises:
        SystemExit: the page has no such marks.
    """
    begin = format_mark(module)
    before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"{page} has no lines {begin.strip()} and {END.strip()}")
    page.write_text(before + begin + table + END + after, encoding="utf-8")


def format_mark(module: str) -> str:
    """Return the line before the table of a module."""
    return f"<!-- table: written by {module} -->\n"
