"""`mergemill explore export`: certified questions as rows."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings.storage import StorageSettings
from core.text import format_count
from explorers.bundles.rows import QUESTION_FORMATS
from mergemill.cli import output
from mergemill.cli.options import JsonOption, NewFolderOption, complete_words, with_settings

app = typer.Typer(add_completion=False)


@app.command("export")
@with_settings(StorageSettings)
def export_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUESTION]...", show_default=False, help="Questions or walks, by name. Default: all."),
    ] = None,
    *,
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(QUESTION_FORMATS),
            autocompletion=complete_words(QUESTION_FORMATS),
            help="Rows: all of a question with its certificate, or WebExplorer's three fields.",
        ),
    ] = "jsonl",
    out: NewFolderOption,
    corpus: Annotated[str | None, typer.Option("--corpus", metavar="NAME", help="Those over this corpus.")] = None,
    with_pages: Annotated[
        bool, typer.Option("--with-pages", help="Write the pages, too, whose licences let them be handed on.")
    ] = False,
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """Write the best certified question of each walk as rows.

    Example: mergemill explore export --format webexplorer --out rows
    """
    from mergemill.explore.bundles import QuestionExport, export_questions  # noqa: PLC0415 - a wrong option needs none

    request = QuestionExport(
        format=format_name, out=out, names=tuple(names or ()), corpus=corpus, with_pages=with_pages
    )
    summary = export_questions(request, storage)
    if summary["pages_left_out"]:
        pages = format_count(summary["pages_left_out"], "page")
        output.print_note(f"{pages} left out: the licence does not let them be handed on")
    if as_json:
        output.print_json(summary)
    else:
        pages = f", {format_count(summary['pages'], 'page')}" if with_pages else ""
        output.print_text(f"{format_count(summary['questions'], 'question')}{pages} written to {out}")
