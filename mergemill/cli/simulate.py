"""`mergemill simulate`: environments that a model plays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.config import Settings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import SIMULATE_SETTINGS, JsonOption, complete_words, split_words, with_settings
from mergemill.cli.simulated import export_command, list_command, show_command

PROFILES = ("default", "simia")
FORMATS = ("sharegpt", "sharegpt-hermes", "messages", "parquet")

app = typer.Typer(help=COMMANDS["simulate"].summary, add_completion=False)


@app.callback()
def group() -> None:
    """Let a model play users and tools, and write training data."""


@app.command("sft")
@with_settings(*SIMULATE_SETTINGS)
def sft(
    *,
    seeds: Annotated[
        Path,
        typer.Option("--seeds", metavar="FILE|DIR", help="Reference conversations; the format is recognised."),
    ],
    domain: Annotated[
        str, typer.Option("--domain", metavar="PACK", help="airline, retail, office, os, or a folder of your own.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Write to this folder: a new one, or that of a run to continue."),
    ],
    per_seed: Annotated[
        int | None, typer.Option("--per-seed", min=1, metavar="N", help="Simulate N conversations of each seed.")
    ] = None,
    total: Annotated[
        int | None, typer.Option("--total", min=1, metavar="N", help="Simulate N conversations in all.")
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            metavar="|".join(PROFILES),
            autocompletion=complete_words(PROFILES),
            help="Rules and settings: this program's own, or those of Simia's released code.",
        ),
    ] = PROFILES[0],
    format_name: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="FORMAT[,FORMAT]",
            show_default=False,
            help=f"Write rows as {', '.join(FORMATS)}. Default: all.",
        ),
    ] = None,
    seeds_license: Annotated[
        str, typer.Option("--seeds-license", metavar="SPDX", help="Licence of seeds whose source names none.")
    ] = "",
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Write new conversations modelled on seeds: one call of a model for each, then the steps that drop and repair.

    The model plays the user and the tools, so nothing in a row happened: each has `environment` = `simulated`.

    Example: mergemill simulate sft --seeds seeds.json --domain retail --per-seed 20 --out sft --llm URL --model M
    """
    from mergemill.progress import make_count_progress  # noqa: PLC0415 - a wrong option needs none of them
    from mergemill.simulation import SimulationReporter, SimulationRequest, run_simulation  # noqa: PLC0415

    request = SimulationRequest(
        seeds=seeds,
        domain=domain,
        out=out,
        profile=profile,
        per_seed=per_seed,
        total=total,
        formats=tuple(split_words(format_name)) or FORMATS,
        seeds_license=seeds_license,
    )
    reporter = SimulationReporter(
        event=output.print_json if as_json else _ignore,
        message=output.print_message,
        open_progress=make_count_progress,
    )
    summary, code = run_simulation(request, settings, reporter)
    if as_json:
        output.print_json(summary)
    else:
        _print_summary(summary, out)
    raise typer.Exit(code)


app.command("list")(list_command)
app.command("show")(show_command)
app.command("export")(export_command)


def _ignore(event: dict[str, Any]) -> None:
    del event


def _print_summary(summary: dict[str, Any], out: Path) -> None:
    rows = [{**step, "dropped": sum(step["dropped"].values()), "reasons": step["dropped"]} for step in summary["steps"]]
    columns = ("step", "before", "repaired", "dropped", "after", "reasons")
    output.print_rows(rows, columns, as_lines=False, nothing="")
    if summary["rejected_seeds"]:
        refused = ", ".join(f"{number} {reason}" for reason, number in summary["rejected_seeds"].items())
        output.print_text(f"{format_count(summary['seeds'], 'seed')}, of which not used: {refused}")
    for name, reasons in summary["left_out"].items():
        for reason, number in reasons.items():
            output.print_message(f"{format_count(number, 'row')} left out of {name}: {reason}")
    kept, planned = summary["kept"], format_count(summary["planned"], "conversation")
    written = ", ".join(f"{name} {number}" for name, number in summary["rows"].items())
    output.print_text(f"{kept} of {planned} kept in {out} (rows: {written}; environment: simulated)")
    output.print_text(f"{format_count(summary['new'], 'new record')} in the task database")
