"""`mergemill bench import`: a set of the reviews, or of the checklists, of a published benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.config import Settings
from core.errors import InputError, UsageError
from core.settings.agents import RolloutSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, complete_words, with_settings
from taskdb.records.bench import BenchLimits, BenchSet
from taskdb.store import Store

REVIEW_FORMATS = ("code-review-bench", "swe-prbench")
OCTO = "octo"
FORMATS = (*REVIEW_FORMATS, OCTO)
LATER_FORMATS = ("vibe",)
"""Formats of subjects that mergemill does not have yet."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskdb.records import Task

app = typer.Typer(add_completion=False)


@app.command("import")
@with_settings(StorageSettings, RolloutSettings, "clones")
def import_command(
    path: Annotated[Path, typer.Argument(metavar="FILE", readable=False, help="Golden comments, or checklists.")],
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
    bind: Annotated[
        Path | None,
        typer.Option(
            "--bind", metavar="TABLE.toml", readable=False, help="Items that a check decides; octo alone has it."
        ),
    ] = None,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Make a held-out set of the tasks of a published benchmark.

    A row of reviews is a pull request with golden comments, with lines or without. Its files are read from a clone,
    such as one of --clones; rows without one are named, and end it with exit code 3 once the others are imported. A row
    of octo is an instance with a checklist. A model judges its items, but for those that --bind names a check for;
    a row that is wrong ends it, and nothing is imported.

    Example: mergemill bench import golden.json --format code-review-bench --clones clones
    """
    if format_name in LATER_FORMATS:
        raise UsageError(
            f"--format: {format_name} has subjects of a kind that mergemill does not have",
            advice=f"{' or '.join(FORMATS)}",
        )
    if format_name not in FORMATS:
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join(FORMATS)}")
    if bind is not None and format_name != OCTO:
        raise UsageError(f"--bind is for --format {OCTO}")
    # A wrong option is reported without loading the derivers.
    from mergemill.bench.sets import check_name  # noqa: PLC0415

    set_name = check_name(name or path.name.partition(".")[0])
    if format_name == OCTO:
        _import_checklists(path, bind, set_name, settings, as_json=as_json)
    else:
        _import_reviews(path, set_name, settings, as_json=as_json)


def _import_checklists(path: Path, bind: Path | None, set_name: str, settings: Settings, *, as_json: bool) -> None:
    """Import rows with checklists, freeze their set and print it."""
    from mergemill.bench.octo_import import import_octo  # noqa: PLC0415
    from taskdb.records.instructions import JUDGED  # noqa: PLC0415

    imported = import_octo(path, bind, settings)
    bench_set = _freeze(set_name, imported.tasks, settings, canary=imported.canary)
    checks = [constraint.check for constraint in imported.constraints]
    summary = {
        "set": bench_set.name,
        "version": bench_set.version,
        "subjects": len(imported.tasks),
        "items": len(checks),
        "judged": checks.count(JUDGED),
    }
    if as_json:
        output.print_json(summary)
        return
    subjects, items = format_count(len(imported.tasks), "task"), format_count(len(checks), "item")
    n_bound = len(checks) - checks.count(JUDGED)
    output.print_text(
        f"{bench_set.name} {bench_set.version}: {subjects}, held out; {items}, {n_bound} of them decided by a program"
    )


def _freeze(set_name: str, tasks: Sequence[Task], settings: Settings, canary: str = "") -> BenchSet:
    from mergemill.bench.sets import freeze  # noqa: PLC0415

    limits = BenchLimits(turns=settings.rollout.turns, seconds=settings.rollout.seconds)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        return freeze(store, set_name, tasks, limits, held_out=True, canary=canary)


def _import_reviews(path: Path, set_name: str, settings: Settings, *, as_json: bool) -> None:
    """Import rows with golden comments, freeze their set, print it and name the rows that cannot be used."""
    from mergemill.bench.review_import import import_reviews  # noqa: PLC0415

    imported = import_reviews(path, settings)
    for problem in imported.problems:
        output.print_message(f"{path}, {problem}")
    if not imported.tasks:
        raise InputError(f"no row of {path} can be imported", advice="see the lines before this one")
    bench_set = _freeze(set_name, imported.tasks, settings)
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
