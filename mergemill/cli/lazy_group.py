"""Command group that imports a command's module when the command is invoked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from mergemill.cli.commands import COMMANDS, CommandEntry


class LazyGroup(TyperGroup):
    """Group of the commands in a table. Its help comes from the table: no command module is imported."""

    entries: ClassVar[Mapping[str, CommandEntry]] = COMMANDS
    """Name of a command -> its entry."""

    def __init__(self, **attributes: Any) -> None:
        listed = {
            name: TyperCommand(name, help=entry.summary, rich_help_panel=entry.panel)
            for name, entry in self.entries.items()
        }
        super().__init__(**attributes | {"commands": listed})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, or None."""
        del ctx
        return load_command(self.entries[cmd_name]) if cmd_name in self.entries else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the group."""
        listing = TyperGroup(
            name=self.name,
            commands=dict(self.commands),
            rich_markup_mode=self.rich_markup_mode,
            params=self.params,
            help=self.help,
            epilog=self.epilog,
        )
        listing.format_help(ctx, formatter)


def iterate_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command below a group, with the words that call it, in the order of its help."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from iterate_commands(command.get_command(context, name), (*path, name))


def load_command(entry: CommandEntry) -> Any:
    """Import the module of a command and return the command."""
    return typer.main.get_command(import_module(f"mergemill.cli.{entry.module}").app)
