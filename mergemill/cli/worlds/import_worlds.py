"""`mergemill worlds import`: worlds of EnvScaler's files, through all gates, into the database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.config import Settings
from core.text import escape_line
from mergemill.cli import output
from mergemill.cli.options import WORLD_SETTINGS, JsonOption, with_settings

app = typer.Typer(add_completion=False)


@app.command("import")
@with_settings(*WORLD_SETTINGS, "workers")
def import_command(
    environments: Annotated[Path, typer.Argument(metavar="ENVIRONMENTS.json", help="EnvScaler's environments.")],
    scenarios: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIOS.json]", show_default=False, help="Scenarios in these.")
    ] = None,
    *,
    license_id: Annotated[
        str,
        typer.Option("--license", metavar="SPDX", help="Licence of environments that name none themselves."),
    ] = "",
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Read worlds and scenarios of EnvScaler's files, and run all gates on them.

    Prints a line for each. Those that pass are stored with a certificate, the others with the reason.

    Example: mergemill worlds import environments.json scenarios.json
    """
    from mergemill.execution.reporter import Reporter  # noqa: PLC0415 - a wrong option needs none of them
    from mergemill.worlds.bundles.world_import import (  # noqa: PLC0415
        WorldImportRequest,
        import_worlds,
    )

    request = WorldImportRequest(environments=environments, scenarios=scenarios, license=license_id)
    reporter = Reporter(message=output.print_message, event=output.print_json if as_json else _print_line)
    raise typer.Exit(import_worlds(request, settings, reporter))


def _print_line(event: dict[str, Any]) -> None:
    verdict = "ok" if event["ok"] else event["reason"]
    detail = f" ({event['detail']})" if event["detail"] else ""
    output.print_text(escape_line(f"{event['kind']} {event['name']}: {verdict}{detail}"))
