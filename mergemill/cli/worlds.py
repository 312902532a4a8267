"""`mergemill worlds`: synthesised tool environments."""

from __future__ import annotations

import typer

from mergemill.cli import worlds_serve
from mergemill.cli.commands import COMMANDS

app = typer.Typer(help=COMMANDS["worlds"].summary, add_completion=False)


@app.callback()
def group() -> None:
    """Work with tool environments that are programs."""


app.command("serve")(worlds_serve.serve)
