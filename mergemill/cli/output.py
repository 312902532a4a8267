"""Printing of results: JSON for programs, tables for people. Commands write to standard output only through here."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from core.text import escape_controls, escape_line, replace_surrogates

FOLDED_WIDTH = 25
"""Width to which a column is folded where a terminal has no room."""
UNLIMITED_WIDTH = 10_000
"""Columns where no terminal limits them: a pipe gets every row on a single line."""


def make_console() -> Console:
    """Return a console on standard output, as wide as the terminal or unlimited."""
    if sys.stdout.isatty():
        return Console(highlight=False, soft_wrap=True)
    return Console(width=UNLIMITED_WIDTH, highlight=False)


def print_json(value: object) -> None:
    """Print a JSON value on a single line."""
    sys.stdout.write(json.dumps(value, default=str) + "\n")


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_lines: bool, nothing: str) -> None:
    """Print rows as a JSON object per line, or as a table.

    Args:
        rows: the rows, keyed by column.
        columns: columns of the table; empty for those of the first row. JSON has all keys.
        as_lines: whether to print JSON.
        nothing: message on standard error when there is no row for a table; none with `--quiet`.
    """
    if as_lines:
        for row in rows:
            print_json(dict(row))
        return
    listed = list(rows)
    if not listed:
        print_note(nothing)
        return
    names = list(columns or listed[0])
    cells = [[Text(escape_controls(_format_cell(row[name]))) for name in names] for row in listed]
    table = Table(box=None, header_style="bold", pad_edge=False)
    needed = 0
    for at, name in enumerate(names):
        is_numeric = all(isinstance(row[name], int | float | None) for row in listed)
        longest = max(len(name), *(row[at].cell_len for row in cells))
        # The first column names the row and is never folded; the table is widened where the others lack room.
        width = longest if at == 0 else min(longest, FOLDED_WIDTH)
        needed += width + 2
        table.add_column(
            name, justify="right" if is_numeric else "left", no_wrap=at == 0, overflow="fold", min_width=width
        )
    for texts in cells:
        table.add_row(*texts)
    Console(width=max(make_console().width, needed), highlight=False).print(table)


def print_fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair a line."""
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        sys.stdout.write(f"{name:{width}}  {escape_controls(_format_cell(value))}\n")


def print_text(content: str) -> None:
    """Print a text, to a terminal with its control characters escaped; a line end is added where it has none."""
    line_end = "" if content.endswith("\n") else "\n"
    shown = escape_controls(content.replace("\r\n", "\n")) if sys.stdout.isatty() else replace_surrogates(content)
    sys.stdout.write(f"{shown}{line_end}")


def clear_terminal() -> None:
    """Clear the terminal; print an empty line where standard output is none."""
    if sys.stdout.isatty():
        Console().clear()
    else:
        print_text("")


def flush() -> None:
    """Write the text that is buffered, for readers that wait for it."""
    sys.stdout.flush()


def choose_mark(*, ok: bool) -> str:
    """Return a mark for a passed or failed check, in words where standard output cannot show the sign."""
    sign, word = ("✓", "ok  ") if ok else ("✗", "FAIL")
    try:
        sign.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return word
    return sign


def print_message(line: str) -> None:
    """Print an error, or what a run reports, on standard error; a name in it cannot begin a line or move the cursor.

    Lines that are no errors go through `print_note`.
    """
    sys.stderr.write(f"mergemill: {escape_line(line)}\n")
    sys.stderr.flush()


def print_note(line: str) -> None:
    """Print a line that is no error on standard error, such as a warning or a count, unless `--quiet` is set."""
    if logging.getLogger().isEnabledFor(logging.WARNING):
        print_message(line)


def _format_cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_format_cell(inner)}" for key, inner in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_format_cell(inner) for inner in value) or "-"
    return str(value)
