"""`mergemill bench show`: a set with its subjects, and which of them have changed."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import InputError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings
from taskdb.store import Store

app = typer.Typer(add_completion=False)


@app.command("show")
@with_settings(StorageSettings)
def show(
    bench_set: Annotated[str, typer.Argument(metavar="SET", help="Name or file of a set.")],
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Show a set: its subjects, limits and canary, and which subjects have changed since. Exit code 3 if any has.

    Example: mergemill bench show review-1
    """
    from mergemill.bench.sets import CHANGED, describe_set, find_changed_subjects, open_set  # noqa: PLC0415 - as in freeze

    with Store.open(storage.db, create=False) as store:
        shown = open_set(store, bench_set)
        problems = {subject.name: subject.problem for subject in find_changed_subjects(store, shown)}
    document = describe_set(shown)
    if as_json:
        output.print_json({**document, "changed": problems})
    else:
        output.print_fields((name, value) for name, value in document.items() if name != "subjects")
        rows = [{**subject, "changed": problems.get(subject["name"])} for subject in document["subjects"]]
        output.print_rows(
            [row | {"id": row["id"][:12], "grading": row["grading"][:12]} for row in rows],
            ("name", "kind", "id", "grading", "changed"),
            as_lines=False,
            nothing="",
        )
    if problems:
        raise InputError(f"{CHANGED}: {len(problems)} of {format_count(len(document['subjects']), 'subject')}")
