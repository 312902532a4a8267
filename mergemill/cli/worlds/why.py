"""`mergemill worlds why`: the fate of a seed task, theme, world or scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import InputError
from core.settings.storage import StorageSettings
from mergemill.cli.options import IdArgument, JsonOption, with_settings
from mergemill.cli.queries.step_reports import print_report
from taskdb.queries.world_histories import look_up_world
from taskdb.store import Store

app = typer.Typer(add_completion=False)


@app.command("why")
@with_settings(StorageSettings)
def why(
    name: IdArgument,
    log: Annotated[bool, typer.Option("--log", help="Print the log of its rejection instead.")] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Show where a seed task, theme, world or scenario went, and why.

    Example: mergemill worlds why library_loans
    """
    with Store.open(storage.db, create=False) as store:
        report = look_up_world(store, name)
    if report is None:
        advice = "`mergemill worlds list` lists the worlds"
        raise InputError(f"there is no seed task, theme, world or scenario {name}", advice=advice)
    print_report(report, storage, log=log, as_json=as_json)
