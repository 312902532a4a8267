"""Small bar charts of counts, for terminals."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from taskdb.queries.histograms import HistogramBin

BAR_WIDTH = 30
"""Length of the longest bar where the terminal has room for it."""
LABEL_WIDTH = 18
"""Least width of the column of values."""
_GAP = 2
MAX_BARS = 12
"""Values of a chart; the rest is a line."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def print_charts(stats: Mapping[str, Any], histograms: Mapping[str, Sequence[HistogramBin]]) -> None:
    """Print the counts of `compute_stats` and histograms as bars. Colours follow NO_COLOR.

    Args:
        stats: name -> number, or name -> value -> number, most frequent first.
        histograms: column -> bins.
    """
    console = Console(highlight=False)
    for name, value in stats.items():
        if not isinstance(value, Mapping):
            console.print(Text.assemble((f"{name}  ", "bold"), str(value if value is not None else "-")))
    for name, value in stats.items():
        if isinstance(value, Mapping) and value:
            _print_chart(console, name, [(str(key), number) for key, number in value.items()])
    for name, bins in histograms.items():
        if bins:
            _print_chart(console, name, [(format_bin(bucket), bucket.n) for bucket in bins])


def format_bin(bucket: HistogramBin) -> str:
    """Return the bounds of a bin: `5 to 10`, or `5 or more`."""
    return f"{bucket.low:g} or more" if bucket.high is None else f"{bucket.low:g} to {bucket.high:g}"


def format_bar(number: int, most: int, width: int = BAR_WIDTH) -> str:
    """Return a bar whose length is the share of `most`, which has `width` characters.

    A number other than 0 has at least an eighth of a character.
    """
    if not _can_print(_EIGHTHS):
        return "#" * round(width * number / most) if most else ""
    eighths = max(round(width * 8 * number / most), min(number, 1)) if most else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _print_chart(console: Console, title: str, bars: Sequence[tuple[str, int]]) -> None:
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(overflow="fold", min_width=LABEL_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="cyan")
    most = max(number for _, number in bars)
    shown, rest = bars[:MAX_BARS], sum(number for _, number in bars[MAX_BARS:])
    width = _choose_bar_width(console.width, [label for label, _ in shown], max(most, rest))
    for label, number in shown:
        table.add_row(Text(label), str(number), Text(format_bar(number, most, width)))
    if rest:
        table.add_row(Text(f"{len(bars) - MAX_BARS} others"), str(rest), "")
    console.print(Text(f"\n{title}", style="bold"))
    console.print(table)


def _choose_bar_width(columns: int, labels: Sequence[str], largest: int) -> int:
    """Return the length of the longest bar in a terminal of so many columns; labels leave half of them to the rest."""
    label_width = max(LABEL_WIDTH, min(max(map(cell_len, labels)), columns // 2))
    return max(1, min(BAR_WIDTH, columns - label_width - len(str(largest)) - 2 * _GAP))


def _can_print(signs: str) -> bool:
    try:
        signs.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
