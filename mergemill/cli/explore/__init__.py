"""`mergemill explore`: long-horizon questions over a corpus.

`mergemill.cli.commands.EXPLORE_COMMANDS` is the table of the group's commands; each has a module in this folder, which
is imported when the command is invoked.
"""

from __future__ import annotations

import typer

from mergemill.cli.commands import COMMANDS, EXPLORE_COMMANDS
from mergemill.cli.lazy_group import LazyGroup


class ExploreGroup(LazyGroup):
    """Group of the commands in `EXPLORE_COMMANDS`."""

    entries = EXPLORE_COMMANDS


app = typer.Typer(cls=ExploreGroup, help=COMMANDS["explore"].summary, add_completion=False)


@app.callback()
def group() -> None:
    """Index corpora and make long-horizon questions over them, with one supported answer each."""
