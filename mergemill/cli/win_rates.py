"""Table of win rates, which several commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mergemill.cli import output

COLUMNS = (
    *("measure", "first", "second", "wins", "ties", "losses", "rate", "low", "high"),
    *("bounds", "p", "detectable", "n", "families", "incomplete"),
)


def print_win_rates(rows: Sequence[Mapping[str, Any]], *, as_lines: bool) -> None:
    """Print rows of win rates as a table, or as JSON lines."""
    output.print_rows(rows, COLUMNS, as_lines=as_lines, nothing="")
