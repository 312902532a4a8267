"""`mergemill simulate list|show|export`: simulated conversations of the task database."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from core.settings.simulation import SimulationSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.bench.held_out import WITH_HELP, WITH_OPTION, describe_refused
from mergemill.cli import output
from mergemill.cli.options import (
    IdArgument,
    JsonOption,
    NewFolderOption,
    replace_parameter,
    split_words,
    with_settings,
)
from taskdb.artifacts import open_artifacts
from taskdb.queries.simulations import ConversationFilters, list_conversations, resolve_conversation
from taskdb.store import Store

COLUMNS = ("name", "domain", "profile", "simulator", "scenario", "failure", "license", "n_turns", "n_calls")
SHOWN = ("id", "environment", *COLUMNS, "pack_version", "prompt", "answer", "trajectory")
NOTHING = "no simulated conversation matches; `mergemill funnel --of simulations` counts them"

_WORDS = {
    "domain": ("NAME", "Conversations of these domain packs."),
    "profile": ("NAME", "Conversations made by these rules."),
    "simulator": ("MODEL", "Conversations that these models wrote."),
    "scenario": ("NAME", "Conversations with these relations to their seeds."),
    "license": ("SPDX", "Conversations whose seeds have these licences."),
}
"""Filter that takes words -> metavar and help."""
FILTER_OPTIONS: dict[str, Any] = {
    **{
        name: Annotated[str | None, typer.Option(f"--{name}", metavar=f"{metavar}[,{metavar}]", help=text)]
        for name, (metavar, text) in _WORDS.items()
    },
    "pack_version": Annotated[
        str | None, typer.Option("--pack-version", metavar="HASH", help="Conversations of this version of the pack.")
    ],
    "with_failure": Annotated[
        bool | None,
        typer.Option("--failure/--no-failure", show_default=False, help="With, or without, an ordered tool failure."),
    ],
    "min_turns": Annotated[int | None, typer.Option("--min-turns", min=0, metavar="N", help="Least turns.")],
    "max_turns": Annotated[int | None, typer.Option("--max-turns", min=0, metavar="N", help="Most turns.")],
    "per_seed": Annotated[
        int | None, typer.Option("--per-seed", min=1, metavar="N", help="At most N conversations of each seed.")
    ],
}
"""Field of `ConversationFilters` -> its option."""


def build_filters(given: Mapping[str, Any]) -> ConversationFilters:
    """Return the filters of the values of `FILTER_OPTIONS`."""
    words = {name: tuple(split_words(given[name])) for name in _WORDS}
    return ConversationFilters(**{**given, **words})


with_conversation_filters = partial(replace_parameter, "filters", FILTER_OPTIONS, build_filters)
"""Give a command the options of `FILTER_OPTIONS` in place of `filters`."""


@with_settings(StorageSettings)
@with_conversation_filters
def list_command(
    *,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Print at most N.")] = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
    filters: ConversationFilters,
) -> None:
    """List simulated conversations by domain, seed and sample.

    Example: mergemill simulate list --domain retail --no-failure
    """
    with Store.open(storage.db, create=False) as store:
        rows = list_conversations(store, filters, limit)
    output.print_rows(rows, COLUMNS, as_lines=as_json, nothing=NOTHING)


@with_settings(StorageSettings)
def show_command(
    conversation: IdArgument,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Show a simulated conversation: where it comes from, and its turns.

    Example: mergemill simulate show 71e622a28c96f9c8-1
    """
    from mergemill.simulation.records import load_trajectories  # noqa: PLC0415 - a wrong option does not need it
    from simulators.conversation import render_blocks  # noqa: PLC0415 - as above

    with Store.open(storage.db, create=False) as store:
        record = resolve_conversation(store, conversation)
    (trajectory,) = load_trajectories(open_artifacts(storage), [record])
    if as_json:
        output.print_json({**trajectory.to_json(), "id": record.id, "name": record.name, "trajectory": trajectory.id})
        return
    output.print_fields((name, getattr(record, name)) for name in SHOWN)
    output.print_text("")
    output.print_text(render_blocks(trajectory.turns))


@with_settings(StorageSettings, "simulate_target")
@with_conversation_filters
def export_command(
    *,
    out: NewFolderOption,
    format_name: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="FORMAT[,FORMAT]", show_default=False, help="As of `sft`. Default: all."),
    ] = None,
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    as_json: JsonOption = False,
    storage: StorageSettings,
    simulation: SimulationSettings,
    filters: ConversationFilters,
) -> None:
    """Write simulated conversations of the database as training rows, those of a domain and profile.

    Example: mergemill simulate export --domain retail --license MIT --per-seed 5 --out retail-mit
    """
    from mergemill.simulation.export import export_conversations  # noqa: PLC0415 - as above
    from mergemill.simulation.run import ALL_FORMATS, choose_formats  # noqa: PLC0415 - a wrong option does not need them

    formats = choose_formats(tuple(split_words(format_name)) or ALL_FORMATS)
    with Store.open(storage.db, create=False) as store:
        exported = export_conversations(
            store, storage, simulation, filters, out=out, formats=formats, with_held_out=with_held_out
        )
    facts, reports = exported.facts, exported.reports
    summary = {
        "event": "summary",
        "environment": "simulated",
        "domain": facts.domain,
        "profile": facts.profile,
        "conversations": facts.trajectories,
        "licenses": dict(sorted(facts.licenses.items())),
        "rows": {name: report.rows for name, report in reports.items()},
        "left_out": {name: dict(report.left_out) for name, report in reports.items()},
        "held_out": exported.held_out,
    }
    if as_json:
        output.print_json(summary)
        return
    if exported.held_out:
        output.print_note(describe_refused(exported.held_out, "conversation"))
    for name, report in reports.items():
        for reason, n_rows in report.left_out.items():
            output.print_note(f"{format_count(n_rows, 'row')} left out of {name}: {reason}")
    written = ", ".join(f"{name} {report.rows}" for name, report in reports.items())
    number = format_count(facts.trajectories, "conversation")
    output.print_text(f"{number} in {out} (rows: {written}; environment: simulated)")
