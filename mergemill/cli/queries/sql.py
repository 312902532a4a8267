"""`mergemill sql`: read-only queries over the documented views."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import JsonOption, with_settings
from taskdb.queries import readonly
from taskdb.store import Store

app = typer.Typer(add_completion=False)


@app.command("sql")
@with_settings(StorageSettings)
def sql(
    statement: Annotated[
        str, typer.Argument(metavar="SELECT", help="One SELECT over the views of docs/guide/query/query.md.")
    ],
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Run one read-only SQL query.

    Example: mergemill sql "SELECT reason, count(*) AS n FROM rejections GROUP BY reason"
    """
    with Store.open(storage.db, create=False) as store:
        output.print_rows(readonly.run_query(store, statement), (), as_lines=as_json, nothing="no rows")
