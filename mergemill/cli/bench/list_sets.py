"""`mergemill bench list`: sets, and the runs on them."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings.storage import StorageSettings
from mergemill.bench.listing import summarize_run, summarize_set
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings
from taskdb.queries.bench import SHOWN_DIGITS, list_runs, list_sets
from taskdb.store import Store

SET_COLUMNS = ("name", "version", "subjects", "held_out", "kinds", "id")
RUN_COLUMNS = ("run", "set", "version", "scaffold", "model", "checkpoint", "runs", "rollouts", "planned", "id")

app = typer.Typer(add_completion=False)


@app.command("list")
@with_settings(StorageSettings)
def list_command(
    *,
    runs: Annotated[bool, typer.Option("--runs", help="List runs instead of sets.")] = False,
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """List sets, or the newest state of each run.

    Example: mergemill bench list --runs
    """
    with Store.open(storage.db, create=False) as store:
        sets = {bench_set.id: bench_set for bench_set in list_sets(store)}
        rows = (
            [summarize_run(run, sets[run.parent]) for run in list_runs(store)]
            if runs
            else [summarize_set(bench_set) for bench_set in sets.values()]
        )
    if not as_json:
        rows = [row | {"id": row["id"][:SHOWN_DIGITS]} for row in rows]
    nothing = "no run; `mergemill bench run` makes them" if runs else "no set; `mergemill bench freeze` makes them"
    output.print_rows(rows, RUN_COLUMNS if runs else SET_COLUMNS, as_lines=as_json, nothing=nothing)
