"""`mergemill tasks`: queries over tasks. None needs an engine."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from core.errors import UsageError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import (
    IdArgument,
    JsonOption,
    NewFolderOption,
    resolve_filters,
    split_words,
    with_filters,
    with_settings,
)
from mergemill.cli.queries.change_report import (
    format_certificate,
    format_strength,
    format_tags,
    format_verdict,
    format_verification,
)
from taskdb.artifacts import open_artifacts
from taskdb.queries import derivation_counts, saved_selections
from taskdb.queries import tasks as queries
from taskdb.queries.diversity import compute_diversity
from taskdb.queries.evidence import VerdictRanks, describe_forger, describe_gold, load_gold_values, rank_verdict
from taskdb.queries.histograms import count_bins
from taskdb.queries.task_filters import TaskFilters, check_columns
from taskdb.schema.columns import TASK_COLUMNS
from taskdb.store import Store

TABLE_COLUMNS = ("name", "kind", "status", "repo", "n_fail_to_pass", "n_pass_to_pass", "created_at")
NO_TASKS = "no task matches; `mergemill funnel` shows how many changes passed each stage"
LONG_TEXTS = ("problem_statement", "hints", "patch", "test_patch", "setup_patch")
LONG_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS", "how_failed")

app = typer.Typer(help=COMMANDS["tasks"].summary, add_completion=False)


ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", metavar="NAME[,NAME]", help="Print these columns of view `tasks`.", show_default=False),
]


@app.command("list")
@with_settings(StorageSettings)
@with_filters
def list_tasks(
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Print at most N tasks.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="NAME", help="Continue after this task, in the same order.")
    ] = None,
    columns: ColumnsOption = None,
    count: Annotated[bool, typer.Option("--count", help="Print only the number of tasks.")] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """List tasks, newest change first.

    Example: mergemill tasks list --status certified --where "changed_lines < 50" --columns name,strength
    """
    names = check_columns(split_words(columns)) if columns is not None else ()
    if columns is not None and not names:
        raise UsageError("--columns: no column is named", advice=f"columns: {', '.join(TASK_COLUMNS)}")
    with Store.open(storage.db, create=False) as store:
        resolved = resolve_filters(filters, storage)
        if count:
            _print_count(queries.count_tasks(store, resolved), as_json=as_json)
            return
        tasks = queries.list_tasks(store, resolved, limit, after, columns=names or queries.LIST_KEYS)
    output.print_rows(tasks, names or TABLE_COLUMNS, as_lines=as_json, nothing=NO_TASKS)


def _print_count(number: int, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"tasks": number})
    else:
        output.print_text(str(number))


@app.command("search")
@with_settings(StorageSettings)
@with_filters
def search_tasks(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words that a task must all contain.")],
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """Find tasks by words in their name, repository and problem statement.

    Example: mergemill tasks search unicode slug --min-f2p 2
    """
    with Store.open(storage.db, create=False) as store:
        tasks = queries.search_tasks(store, words, resolve_filters(filters, storage))
    output.print_rows(tasks, TABLE_COLUMNS, as_lines=as_json, nothing=NO_TASKS)


@app.command("stats")
@with_settings(StorageSettings)
@with_filters
def show_stats(
    diversity: Annotated[
        bool,
        typer.Option(
            "--diversity",
            help="Count what the tasks of each kind are made of, and near duplicates among them, instead.",
        ),
    ] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """Count tasks by status, kind, language, repository and licence, and by ranges of their numbers.

    Example: mergemill tasks stats --repo pallets/flask
    """
    if diversity:
        _print_diversity(storage, filters, as_json=as_json)
        return
    # Other commands draw no charts.
    from mergemill.cli.queries import charts  # noqa: PLC0415

    with Store.open(storage.db, create=False) as store:
        resolved = resolve_filters(filters, storage)
        stats = queries.compute_stats(store, resolved)
        bins = count_bins(store, resolved) if as_json or sys.stdout.isatty() else {}
    if as_json:
        output.print_json(
            stats | {"histograms": {name: [asdict(bucket) for bucket in of] for name, of in bins.items()}}
        )
    elif sys.stdout.isatty():
        charts.print_charts(stats, bins)
    else:
        output.print_fields(stats.items())


def _print_diversity(storage: StorageSettings, filters: TaskFilters, *, as_json: bool) -> None:
    with Store.open(storage.db, create=False) as store:
        rows = [asdict(row) for row in compute_diversity(store, resolve_filters(filters, storage))]
    output.print_rows(rows, (), as_lines=as_json, nothing=NO_TASKS)


@app.command("select")
@with_settings(StorageSettings)
@with_filters
def select_tasks(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the selection.")],
    delete: Annotated[bool, typer.Option("--delete", help="Delete the selection instead.")] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """Save filters under a name, for `--selection NAME`; the number of tasks that they select now is printed.

    Example: mergemill tasks select small-python --language python --changed-lines :50 --per-repo 20
    """
    with Store.open(storage.db, create=False) as store:
        if delete:
            saved_selections.delete_selection(store, name)
            return
        number = queries.count_tasks(store, resolve_filters(filters, storage))
        saved_selections.save_selection(store, name, filters)
    _print_count(number, as_json=as_json)


@app.command("selections")
@with_settings(StorageSettings)
def list_selections(as_json: JsonOption = False, *, storage: StorageSettings) -> None:
    """List the saved selections with their filters.

    Example: mergemill tasks selections
    """
    with Store.open(storage.db, create=False) as store:
        saved = saved_selections.list_selections(store)
    rows = [{"name": name, "filters": filters} for name, filters in saved.items()]
    nothing = "no selection is saved; `mergemill tasks select NAME` saves one"
    output.print_rows(rows, ("name", "filters"), as_lines=as_json, nothing=nothing)


@app.command("yields")
@with_settings(StorageSettings)
def show_yields(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", show_default=False, help="Count only these sources.")
    ] = None,
    total: Annotated[bool, typer.Option("--total", help="Print a row for each kind instead of each change.")] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Show which kinds of tasks each change gave, and why it gave no others.

    Example: mergemill tasks yields --total
    """
    with Store.open(storage.db, create=False) as store:
        rows = (derivation_counts.count_by_kind if total else derivation_counts.count_by_change)(store, sources or ())
    columns = tuple(name for name in (rows[0] if rows else ()) if total or any(row[name] for row in rows))
    nothing = "no task was derived from any change; `mergemill run` derives tasks"
    output.print_rows(rows, columns, as_lines=as_json, nothing=nothing)


@app.command("show")
@with_settings(StorageSettings)
def show_task(task: IdArgument, as_json: JsonOption = False, *, storage: StorageSettings) -> None:
    """Show one task: problem statement, patches, tests, image and origin.

    Example: mergemill tasks show pallets__flask-5063.bugfix
    """
    with Store.open(storage.db, create=False) as store:
        record, details = queries.look_up_task(store, open_artifacts(storage), task)
        if as_json:
            output.print_json(details)
            return
        ranks, gold = rank_verdict(store, details["verdict"]), load_gold_values(store, record.id)
    if gold:
        details["gold"] = f"passed {describe_gold(gold)}"
    if odds := describe_forger(record):
        details["forger_passes"] = odds
    _print_task(details, ranks)


def _print_task(details: dict[str, Any], ranks: VerdictRanks | None) -> None:
    details["tags"] = format_tags(details["tags"])
    details["verdict"] = format_verdict(details["verdict"], ranks)
    details["verification"] = format_verification(details["verification"])
    details["certificate"] = format_certificate(details["certificate"])
    details["strength"] = format_strength(details["strength"])
    if mirror := details["mirror"]:
        details["mirror"] = f"{mirror['name']} of {mirror['repo']}"
    output.print_fields((name, value) for name, value in details.items() if name not in LONG_TEXTS + LONG_LISTS)
    for name in LONG_TEXTS:
        if details[name]:
            output.print_text(f"\n--- {name}\n{details[name]}")
    how_failed = details["how_failed"]
    fail_to_pass = "\n".join(f"{test}  ({how_failed[test]})" for test in details["FAIL_TO_PASS"])
    output.print_text(f"\n--- FAIL_TO_PASS\n{fail_to_pass}")
    output.print_text("\n--- PASS_TO_PASS\n" + "\n".join(details["PASS_TO_PASS"]))


@app.command("table")
@with_settings(StorageSettings)
@with_filters
def write_table(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Write to this file; one that is there is replaced.")
    ],
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """Write tasks as one Parquet table for analysis: columns, statements, lists of tests, plans and oracles.

    Example: mergemill tasks table --language python --out tasks.parquet
    """
    # Only this command writes Parquet.
    from exporters.task_table import write_task_table  # noqa: PLC0415
    from mergemill.bench.held_out import HELD_OUT, MARK, refuse_held_out  # noqa: PLC0415
    from mergemill.execution.progress import make_count_progress  # noqa: PLC0415

    with Store.open(storage.db, create=False) as store:
        resolved = resolve_filters(filters, storage)
        _, n_held_out = refuse_held_out(resolved, storage)
        warning = f"{format_count(n_held_out, 'task')}: {MARK}"
        notes = {HELD_OUT: warning} if n_held_out else {}
        with make_count_progress("task", queries.count_tasks(store, resolved)) as progress:
            number = write_task_table(store, resolved, out, advance=progress.advance, notes=notes)
    if as_json:
        output.print_json({"tasks": number, "file": str(out), "held_out": n_held_out})
    else:
        if n_held_out:
            output.print_note(warning)
        output.print_text(f"{format_count(number, 'task')} in {out}")


@app.command("material")
@with_settings(StorageSettings)
def write_material(
    task: IdArgument,
    out: NewFolderOption,
    *,
    storage: StorageSettings,
) -> None:
    """Write the files of a task that are not in its image: the statement; for a review also files, diff and tree.

    Example: mergemill tasks material pallets__flask-5063.review --out material
    """
    # Only this command writes files.
    from backends.clones import CloneStore  # noqa: PLC0415
    from mergemill.bundles.solver_files import write_material  # noqa: PLC0415

    with Store.open(storage.db, create=False) as store:
        record = queries.resolve_task(store, task)
    n_files = write_material(record, open_artifacts(storage), CloneStore(storage.store_dir / "clones"), out)
    output.print_text(f"{format_count(n_files, 'file')} in {out}")
