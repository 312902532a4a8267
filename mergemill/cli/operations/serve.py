"""`mergemill serve`: web pages and HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from mergemill.cli import output
from mergemill.cli.options import GRADING_SETTINGS, with_settings

app = typer.Typer(add_completion=False)


@app.command("serve")
@with_settings(*GRADING_SETTINGS, "workers")
def serve(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="P", help="Listen at this port; 0 for a free one.")
    ] = 8400,
    host: Annotated[str, typer.Option("--host", metavar="H", help="Listen at this address.")] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="T",
            envvar="MERGEMILL_SERVE_TOKEN",
            show_default=False,
            help="Permit grading with this token; without one the server only reads.",
        ),
    ] = None,
    queue: Annotated[
        int,
        typer.Option("--queue", min=1, metavar="N", help="So many submissions may wait to be graded; then 429."),
    ] = 1000,
    *,
    settings: Settings,
) -> None:
    """Serve web pages and an HTTP API of the database.

    Example: mergemill serve --port 8400
    """
    if token is not None and not token.strip():
        raise UsageError("--token is empty")
    from mergemill.web.server import serve as serve_pages  # noqa: PLC0415 - FastAPI loads slowly

    serve_pages(settings, host, port, token, output.print_message, queue_limit=queue)
