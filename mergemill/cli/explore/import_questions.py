"""`mergemill explore import`: rows of questions, which wait for the gates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.errors import InputError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings

app = typer.Typer(add_completion=False)


@app.command("import")
@with_settings(StorageSettings)
def import_command(
    path: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="Rows of the format jsonl.")],
    *,
    corpus: Annotated[
        str, typer.Option("--corpus", metavar="NAME", show_default=False, help="Corpus that they are about.")
    ],
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """Read rows of questions of a corpus; they wait for the gates.

    Example: mergemill explore import rows/questions.jsonl --corpus handbook
    """
    from mergemill.explore.bundles import import_questions  # noqa: PLC0415 - a wrong option needs none of it

    n_new, problems = import_questions(path, corpus, storage)
    for problem in problems:
        output.print_message(problem.format_line())
    if as_json:
        output.print_json({"questions": n_new, "left_out": len(problems)})
    else:
        output.print_text(f"{format_count(n_new, 'question')} to be assessed: mergemill explore gate --corpus {corpus}")
    if problems:
        raise typer.Exit(InputError.exit_code)
