"""`mergemill worlds export`: worlds as a bundle for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.text import format_count
from mergemill.bench.held_out import WITH_HELP, WITH_OPTION
from mergemill.cli import output
from mergemill.cli.options import WORLD_SETTINGS, JsonOption, complete_words, split_words, with_settings
from worlds.bundles.format_names import SUMMARIES

app = typer.Typer(add_completion=False)


@app.command("export")
@with_settings(*WORLD_SETTINGS)
def export_command(
    worlds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORLD]...",
            show_default=False,
            help="Worlds that ship, folders of that form, names or ids. Default: all certified worlds of the database.",
        ),
    ] = None,
    *,
    format_name: Annotated[
        list[str],
        typer.Option(
            "--format",
            metavar="FORMAT[,FORMAT]",
            autocompletion=complete_words(SUMMARIES),
            help=f"Format of the bundle: {' or '.join(SUMMARIES)}. Several are written to DIR/FORMAT.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the bundle to this folder.")],
    with_uncertified: Annotated[
        bool,
        typer.Option("--uncertified", help="Export worlds and scenarios without a certificate, too; run no gates."),
    ] = False,
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Write worlds and their scenarios as a bundle for other programs.

    Every scenario is played first: its solution must earn 1. Folders must pass all gates of worlds.

    Example: mergemill worlds export library_loans --format sharegpt --out rows
    """
    from mergemill.execution.reporter import Reporter  # noqa: PLC0415 - a wrong option needs none of them
    from mergemill.worlds.bundles.export import (  # noqa: PLC0415
        WorldExportRequest,
        describe_export,
        export_worlds,
    )

    request = WorldExportRequest(
        words=tuple(worlds or ()),
        formats=tuple(dict.fromkeys(split_words(format_name))),
        out=out,
        with_uncertified=with_uncertified,
        with_held_out=with_held_out,
    )
    reporter = Reporter(message=output.print_message)
    for summary in export_worlds(request, settings, reporter):
        if as_json:
            output.print_json(summary)
        else:
            for reason, number in summary["left_out"].items():
                output.print_note(f"{format_count(number, 'scenario')} left out of {summary['format']}: {reason}")
            output.print_text(describe_export(summary))
