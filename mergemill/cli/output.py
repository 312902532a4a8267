"""How answers are printed: JSON for programs, tables for people. The one place that writes to standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE = 10_000
"""Columns where no terminal limits them: a pipe gets every row whole."""


def console() -> Console:
    """Standard output, as wide as it is."""
    return Console(highlight=False, soft_wrap=True) if sys.stdout.isatty() else Console(width=WIDE, highlight=False)


def as_json(value: object) -> None:
    """One JSON value on one line."""
    sys.stdout.write(json.dumps(value, default=str) + "\n")


def rows(found: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_lines: bool, nothing: str) -> None:
    """Rows: one JSON object a line, or a table of some columns; `nothing` is told to people when there are none."""
    if as_lines:
        for row in found:
            as_json(dict(row))
        return
    listed = list(found)
    if not listed:
        tell(nothing)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns or list(listed[0]):
        numeric = all(isinstance(row[name], int | float | None) for row in listed)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=True, overflow="fold")
    for row in listed:
        table.add_row(*(Text(_cell(row[name])) for name in columns or list(row)))
    console().print(table)


def fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair a line."""
    found = list(pairs)
    width = max((len(name) for name, _ in found), default=0)
    for name, value in found:
        sys.stdout.write(f"{name:{width}}  {_clean(_cell(value))}\n")


def text(content: str) -> None:
    """A text as it is, ended by a line end."""
    sys.stdout.write(_clean(content) if content.endswith("\n") else f"{_clean(content)}\n")


def tell(line: str) -> None:
    """A line for people, on standard error."""
    sys.stderr.write(f"mergemill: {line}\n")
    sys.stderr.flush()


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_cell(inner)}" for key, inner in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(inner) for inner in value) or "-"
    return str(value)


def _clean(content: str) -> str:
    return content.encode(errors="replace").decode()
