"""`mergemill bench`: frozen sets, runs on them, and reports.

`mergemill.cli.commands.BENCH_COMMANDS` is the table of the group's commands; each has a module in this folder, which is
imported when the command is invoked.
"""

from __future__ import annotations

import typer

from mergemill.cli.commands import BENCH_COMMANDS, COMMANDS
from mergemill.cli.lazy_group import LazyGroup


class BenchGroup(LazyGroup):
    """Group of the commands in `BENCH_COMMANDS`."""

    entries = BENCH_COMMANDS


app = typer.Typer(cls=BenchGroup, help=COMMANDS["bench"].summary, add_completion=False)


@app.callback()
def group() -> None:
    """Freeze sets of subjects, run agents on them, and report with intervals."""
