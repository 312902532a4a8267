"""`mergemill bench import`: a set of the reviews of a published benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import InputError, UsageError
from core.settings.agents import RolloutSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, complete_words, with_settings
from taskdb.records.bench import BenchLimits
from taskdb.store import Store

FORMATS = ("code-review-bench", "swe-prbench")
LATER_FORMATS = ("octo", "vibe")
"""Formats of subjects that mergemill does not have yet."""

app = typer.Typer(add_completion=False)


@app.command("import")
@with_settings(StorageSettings, RolloutSettings, "clones")
def import_command(
    path: Annotated[Path, typer.Argument(metavar="FILE", readable=False, help="Rows with golden comments.")],
    *,
    format_name: Annotated[
        str,
        typer.Option(
            "--format", metavar="|".join(FORMATS), autocompletion=complete_words(FORMATS), help="Format of the rows."
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the set. Default: that of the file.")
    ] = None,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Make a held-out set of review tasks of a published benchmark of reviews.

    A row is a pull request with golden comments, with lines or without. Its files are read from a clone, such as one of
    --clones; rows without one are named, and end it with exit code 3 once the others are imported.

    Example: mergemill bench import golden.json --format code-review-bench --clones clones
    """
    if format_name in LATER_FORMATS:
        raise UsageError(
            f"--format: {format_name} has subjects of a kind that mergemill does not have",
            advice=f"{' or '.join(FORMATS)}",
        )
    if format_name not in FORMATS:
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join(FORMATS)}")
    # A wrong option is reported without loading the derivers.
    from mergemill.bench.review_import import import_reviews  # noqa: PLC0415
    from mergemill.bench.sets import check_name, freeze  # noqa: PLC0415

    set_name = check_name(name or path.name.partition(".")[0])
    imported = import_reviews(path, settings)
    for problem in imported.problems:
        output.print_message(f"{path}, {problem}")
    if not imported.tasks:
        raise InputError(f"no row of {path} can be imported", advice="see the lines before this one")
    limits = BenchLimits(turns=settings.rollout.turns, seconds=settings.rollout.seconds)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        bench_set = freeze(store, set_name, imported.tasks, limits, held_out=True)
    summary = {
        "set": bench_set.name,
        "version": bench_set.version,
        "subjects": len(imported.tasks),
        "comments_without_lines": imported.without_lines,
        "problems": imported.problems,
    }
    if as_json:
        output.print_json(summary)
    else:
        subjects = format_count(len(imported.tasks), "review")
        lacking = format_count(imported.without_lines, "golden comment")
        output.print_text(f"{bench_set.name} {bench_set.version}: {subjects}, held out; {lacking} without lines")
    if imported.problems:
        raise InputError(f"{format_count(len(imported.problems), 'row')} of {path} not imported")
