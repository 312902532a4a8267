"""`mergemill worlds saturation`: how much a further world, scenario or tool adds."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import UsageError
from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.options import JsonOption, complete_words, with_settings
from taskdb.artifacts import open_artifacts
from taskdb.store import Store

UNIT_WORDS = ("world", "scenario", "tool")
POINTS = ("by", "measure", "n", "distinct", "distinct_low", "distinct_high", "gain", "gain_low", "gain_high")
FURTHER = ("by", "measure", "units", "families", "distinct", "further", "low", "high")

app = typer.Typer(add_completion=False)


@app.command("saturation")
@with_settings(StorageSettings)
def saturation(
    *,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="|".join(UNIT_WORDS),
            autocompletion=complete_words(UNIT_WORDS),
            help="Add one after another.",
        ),
    ] = UNIT_WORDS[0],
    orders: Annotated[int, typer.Option("--orders", min=1, metavar="N", help="Average over N random orders.")] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of the orders.")] = 0,
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """Show how many new tools, rules and sequences of calls a further world adds, as the number of worlds grows.

    Certified worlds and scenarios count. Intervals of the points are over the orders, those of a further world over
    worlds.

    Example: mergemill worlds saturation --by scenario
    """
    if by not in UNIT_WORDS:
        raise UsageError(f"--by: {by} is unknown", advice=f"one of {', '.join(UNIT_WORDS)}")
    from mergemill.worlds.saturation import build_saturation  # noqa: PLC0415 - a wrong option does not need it

    with Store.open(storage.db, create=False) as store:
        report = build_saturation(store, open_artifacts(storage), by, orders=orders, seed=seed)
    if as_json:
        for event, rows in (("point", report.points), ("further", report.further)):
            for row in rows:
                output.print_json({"event": event, **row})
        return
    output.print_rows(report.points, POINTS, as_lines=False, nothing="no certified world has any")
    if report.further:
        output.print_text("")
        output.print_rows(report.further, FURTHER, as_lines=False, nothing="")
