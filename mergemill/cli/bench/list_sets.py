"""`mergemill bench list`: sets, and the runs on them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings
from taskdb.queries.bench import SHOWN_DIGITS, list_runs, list_sets, name_run
from taskdb.records.bench import BenchRun, BenchSet
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
            [describe(run, sets[run.parent]) for run in list_runs(store)] if runs else list(map(sum_up, sets.values()))
        )
    if not as_json:
        rows = [row | {"id": row["id"][:SHOWN_DIGITS]} for row in rows]
    nothing = "no run; `mergemill bench run` makes them" if runs else "no set; `mergemill bench freeze` makes them"
    output.print_rows(rows, RUN_COLUMNS if runs else SET_COLUMNS, as_lines=as_json, nothing=nothing)


def sum_up(bench_set: BenchSet) -> dict[str, Any]:
    """Return the row of a set."""
    kinds: dict[str, int] = {}
    for subject in bench_set.subjects:
        kinds[subject.kind] = kinds.get(subject.kind, 0) + 1
    return {
        "name": bench_set.name,
        "version": bench_set.version,
        "subjects": len(bench_set.subjects),
        "held_out": bench_set.held_out,
        "kinds": dict(sorted(kinds.items())),
        "id": bench_set.id,
    }


def describe(run: BenchRun, bench_set: BenchSet) -> dict[str, Any]:
    """Return the row of a run; `planned`: rollouts that a complete run has."""
    return {
        "run": name_run(run),
        "set": run.name,
        "version": bench_set.version,
        "scaffold": run.scaffold,
        "model": run.model,
        "checkpoint": run.checkpoint,
        "runs": run.runs,
        "rollouts": len(run.rollouts),
        "planned": run.runs * (len(bench_set.subjects) - len(run.left_out)),
        "id": run.id,
    }
