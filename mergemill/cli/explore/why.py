"""`mergemill explore why`: the fate of a seed, walk or question."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import InputError
from core.settings.storage import StorageSettings
from mergemill.cli.options import IdArgument, JsonOption, with_settings
from mergemill.cli.queries.step_reports import print_report
from taskdb.queries.question_histories import look_up_question
from taskdb.store import Store

app = typer.Typer(add_completion=False)


@app.command("why")
@with_settings(StorageSettings)
def why(
    name: IdArgument,
    log: Annotated[bool, typer.Option("--log", help="Print the log of its newest rejection instead.")] = False,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Show where a seed, walk or question went, and why.

    Example: mergemill explore why handbook-1a2b3c4d
    """
    with Store.open(storage.db, create=False) as store:
        report = look_up_question(store, name)
    if report is None:
        raise InputError(f"there is no seed, walk or question {name}", advice="`mergemill explore list` lists them")
    print_report(report, storage, log=log, as_json=as_json)
