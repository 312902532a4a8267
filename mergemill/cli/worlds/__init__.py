"""`mergemill worlds`: synthesised tool environments.

`mergemill.cli.commands.WORLD_COMMANDS` is the table of the group's commands; each has a module in this folder, which is
imported when the command is invoked.
"""

from __future__ import annotations

import typer

from mergemill.cli.commands import COMMANDS, WORLD_COMMANDS
from mergemill.cli.lazy_group import LazyGroup


class WorldsGroup(LazyGroup):
    """Group of the commands in `WORLD_COMMANDS`."""

    entries = WORLD_COMMANDS


app = typer.Typer(cls=WorldsGroup, help=COMMANDS["worlds"].summary, add_completion=False)


@app.callback()
def group() -> None:
    """Make tool environments as programs, with scenarios and checks, and look at them."""
