"""`mergemill tasks`: queries over tasks. None needs an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.config import Settings
from mergemill.cli import output
from mergemill.cli.change_report import format_tags, format_verdict
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import (
    READ_SETTINGS,
    IdArgument,
    JsonOption,
    resolve_filters,
    with_filters,
    with_settings,
)
from mergemill.services import open_artifacts
from taskdb import queries, yields
from taskdb.queries import TaskFilters
from taskdb.store import Store

TABLE_COLUMNS = ("name", "kind", "status", "repo", "n_fail_to_pass", "n_pass_to_pass", "created_at")
NO_TASKS = "no task matches; `mergemill funnel` shows how many changes passed each stage"
LONG_TEXTS = ("problem_statement", "hints", "patch", "test_patch", "setup_patch")
LONG_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS", "how_failed")

app = typer.Typer(help=COMMANDS["tasks"].summary, add_completion=False)


@app.command("list")
@with_settings(*READ_SETTINGS)
@with_filters
def list_tasks(
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Print at most N tasks.")] = None,
    as_json: JsonOption = False,
    *,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """List tasks, newest change first.

    Example: mergemill tasks list --status certified --language python --json
    """
    with Store.open(settings.db, create=False) as store:
        tasks = queries.list_tasks(store, resolve_filters(filters, settings), limit)
    output.print_rows(tasks, TABLE_COLUMNS, as_lines=as_json, nothing=NO_TASKS)


@app.command("search")
@with_settings(*READ_SETTINGS)
@with_filters
def search_tasks(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words that a task must all contain.")],
    as_json: JsonOption = False,
    *,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """Find tasks by words in their name, repository and problem statement.

    Example: mergemill tasks search unicode slug --min-f2p 2
    """
    with Store.open(settings.db, create=False) as store:
        tasks = queries.search_tasks(store, words, resolve_filters(filters, settings))
    output.print_rows(tasks, TABLE_COLUMNS, as_lines=as_json, nothing=NO_TASKS)


@app.command("stats")
@with_settings(*READ_SETTINGS)
@with_filters
def show_stats(as_json: JsonOption = False, *, settings: Settings, filters: TaskFilters) -> None:
    """Count tasks by status, kind, language, repository and licence.

    Example: mergemill tasks stats --repo pallets/flask
    """
    with Store.open(settings.db, create=False) as store:
        stats = queries.compute_stats(store, resolve_filters(filters, settings))
    if as_json:
        output.print_json(stats)
    else:
        output.print_fields(stats.items())


@app.command("yields")
@with_settings(*READ_SETTINGS)
def show_yields(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", show_default=False, help="Count only these sources.")
    ] = None,
    total: Annotated[bool, typer.Option("--total", help="Print a row for each kind instead of each change.")] = False,
    as_json: JsonOption = False,
    *,
    settings: Settings,
) -> None:
    """Show which kinds of tasks each change gave, and why it gave no others.

    Example: mergemill tasks yields --total
    """
    with Store.open(settings.db, create=False) as store:
        rows = (yields.count_by_kind if total else yields.count_by_change)(store, sources or ())
    columns = tuple(name for name in (rows[0] if rows else ()) if total or any(row[name] for row in rows))
    nothing = "no task was derived from any change; `mergemill run` derives tasks"
    output.print_rows(rows, columns, as_lines=as_json, nothing=nothing)


@app.command("show")
@with_settings(*READ_SETTINGS)
def show_task(task: IdArgument, as_json: JsonOption = False, *, settings: Settings) -> None:
    """Show one task: problem statement, patches, tests, image and origin.

    Example: mergemill tasks show pallets__flask-5063.bugfix
    """
    with Store.open(settings.db, create=False) as store:
        details = queries.show_task(store, open_artifacts(settings), queries.resolve_task(store, task))
    if as_json:
        output.print_json(details)
    else:
        _print_task(details)


def _print_task(details: dict[str, Any]) -> None:
    details["tags"] = format_tags(details["tags"])
    details["verdict"] = format_verdict(details["verdict"])
    output.print_fields((name, value) for name, value in details.items() if name not in LONG_TEXTS + LONG_LISTS)
    for name in LONG_TEXTS:
        if details[name]:
            output.print_text(f"\n--- {name}\n{details[name]}")
    how_failed = details["how_failed"]
    fail_to_pass = "\n".join(f"{test}  ({how_failed[test]})" for test in details["FAIL_TO_PASS"])
    output.print_text(f"\n--- FAIL_TO_PASS\n{fail_to_pass}")
    output.print_text("\n--- PASS_TO_PASS\n" + "\n".join(details["PASS_TO_PASS"]))


@app.command("material")
@with_settings(*READ_SETTINGS)
def write_material(
    task: IdArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write to this new or empty folder.")],
    *,
    settings: Settings,
) -> None:
    """Write the files of a task that are not in its image: the statement; for a review also the files and the diff.

    Example: mergemill tasks material pallets__flask-5063.review --out material
    """
    from mergemill import material  # noqa: PLC0415 - only this command writes material

    with Store.open(settings.db, create=False) as store:
        record = queries.resolve_task(store, task)
    n_files = material.write_material(record, open_artifacts(settings), out)
    output.print_text(f"{n_files} files in {out}")
