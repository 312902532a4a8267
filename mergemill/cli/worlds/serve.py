"""`mergemill worlds serve`: worlds over HTTP and MCP."""

from __future__ import annotations

from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from mergemill.cli import output
from mergemill.cli.options import MODEL_SETTINGS, WORLD_SETTINGS, SettingChoices, complete_words, with_settings

USERS = ("auto", "model", "scripted", "off")
SERVE_SETTINGS: SettingChoices = (*WORLD_SETTINGS, *MODEL_SETTINGS)
"""Settings of a command that serves worlds."""

app = typer.Typer(add_completion=False)


@app.command("serve")
@with_settings(*SERVE_SETTINGS)
def serve(
    worlds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORLD",
            show_default=False,
            help="Certified worlds of the database, names of worlds that ship, or folders. Default: all but folders.",
        ),
    ] = None,
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="P", help="Listen at this port; 0 for a free one.")
    ] = 8600,
    host: Annotated[str, typer.Option("--host", metavar="H", help="Listen at this address.")] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="T",
            envvar="MERGEMILL_SERVE_TOKEN",
            show_default=False,
            help="Every request but those of MCP needs this token.",
        ),
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", min=1, max=2000, metavar="N", help="So many episodes may be open; then 429.")
    ] = 256,
    idle: Annotated[
        float,
        typer.Option("--idle", min=1.0, metavar="SECONDS", help="Close an episode after so long without a request."),
    ] = 900.0,
    user: Annotated[
        str,
        typer.Option(
            "--user",
            metavar="|".join(USERS),
            autocompletion=complete_words(USERS),
            help="Who plays the users of conversations: --model, a script that reads the task out, or nobody. "
            "auto: the model if there is one, else the script.",
        ),
    ] = USERS[0],
    settings: Settings,
) -> None:
    """Serve worlds over HTTP and MCP: reset, step, state, evaluate.

    Each episode runs in a process of its own, in a container without network.

    Example: mergemill worlds serve library_loans --port 8600
    """
    if token is not None and not token.strip():
        raise UsageError("--token is empty")
    if user not in USERS:
        raise UsageError(f"--user: {user} is unknown", advice=f"one of {', '.join(USERS)}")
    from mergemill.worlds.service.server import WorldServiceOptions, serve_worlds  # noqa: PLC0415 - loads slowly

    options = WorldServiceOptions(
        worlds=tuple(worlds or ()),
        host=host,
        port=port,
        token=token,
        episodes=episodes,
        idle_seconds=idle,
        user=user,
    )
    serve_worlds(options, settings, output.print_message)
