"""`mergemill worlds list`: the worlds of the database."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import UsageError
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import JsonOption, complete_words, split_words, with_settings
from taskdb.queries.worlds import STATUSES, WorldFilters, list_worlds
from taskdb.records.worlds import WorldOrigin
from taskdb.store import Store

COLUMNS = ("name", "origin", "license", "status", "n_tools", "score", "pass_rate", "scenarios", "certified_scenarios")

app = typer.Typer(add_completion=False)


@app.command("list")
@with_settings(StorageSettings)
def list_command(
    *,
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="Worlds whose name contains this.")] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--origin",
            metavar="|".join(WorldOrigin),
            autocompletion=complete_words(WorldOrigin),
            help="Worlds of these origins.",
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="|".join(STATUSES),
            autocompletion=complete_words(STATUSES),
            help="Worlds with one of these states.",
        ),
    ] = None,
    license_id: Annotated[
        str | None, typer.Option("--license", metavar="SPDX[,SPDX]", help="Worlds under these licences.")
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            min=0,
            max=1,
            metavar="X",
            help="Least share of rounds that passed or were warned of, 0 to 1.",
        ),
    ] = None,
    min_tools: Annotated[int | None, typer.Option("--min-tools", min=0, metavar="N", help="Least tools.")] = None,
    max_tools: Annotated[int | None, typer.Option("--max-tools", min=0, metavar="N", help="Most tools.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Print at most N.")] = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """List worlds by name.

    Example: mergemill worlds list --status certified --min-score 0.85
    """
    filters = WorldFilters(
        name=name,
        origin=tuple(WorldOrigin(word) for word in _split_choices("--origin", origin, tuple(WorldOrigin))),
        status=_split_choices("--status", status, STATUSES),
        license=tuple(split_words(license_id)),
        min_score=min_score,
        min_tools=min_tools,
        max_tools=max_tools,
    )
    with Store.open(storage.db, create=False) as store:
        rows = list_worlds(store, filters, limit)
    output.print_rows(rows, COLUMNS, as_lines=as_json, nothing="no world matches")


def _split_choices(option: str, given: str | None, choices: tuple[str, ...]) -> tuple[str, ...]:
    words = tuple(split_words(given))
    if unknown := [word for word in words if word not in choices]:
        raise UsageError(f"{option}: {unknown[0]} is unknown", advice=f"of {', '.join(choices)}")
    return words
