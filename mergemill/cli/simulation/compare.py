"""`mergemill simulate compare`: the win rate of a simulator against another."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings.storage import StorageSettings
from mergemill.cli.options import JsonOption, split_words, with_settings
from mergemill.cli.win_rates import print_win_rates
from taskdb.store import Store

SimulatorArgument = Annotated[str, typer.Argument(metavar="SIMULATOR", help="Name of a model that simulated.")]


@with_settings(StorageSettings)
def compare_command(
    first: SimulatorArgument,
    second: SimulatorArgument,
    *,
    domain: Annotated[
        str | None, typer.Option("--domain", metavar="NAME[,NAME]", help="Compare by seeds of these domain packs.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME[,NAME]", help="Compare conversations made by these rules.")
    ] = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
) -> None:
    """Compare two simulators: how often the first does better at the same seed or submission, ties counted half.

    By seed a conversation that is kept wins over one that is dropped; by submission the better prediction wins.

    Example: mergemill simulate compare M1 M2 --domain retail
    """
    from mergemill.simulation.simulator_comparison import (  # noqa: PLC0415 - a wrong option does not need it
        compare_simulators,
    )

    with Store.open(storage.db, create=False) as store:
        rows = compare_simulators(store, (first, second), domains=split_words(domain), profiles=split_words(profile))
    print_win_rates(rows, as_lines=as_json)
