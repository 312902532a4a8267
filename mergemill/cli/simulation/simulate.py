"""`mergemill simulate`: environments that a model plays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.config import Settings
from core.errors import UsageError
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.bench.held_out import WITH_HELP, WITH_OPTION, describe_refused, refuse_held_out
from mergemill.cli import output
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import (
    EPISODE_SETTINGS,
    MEASURE_SETTINGS,
    SIMULATE_SETTINGS,
    JsonOption,
    NewFolderOption,
    complete_words,
    select_certified,
    split_words,
    with_filters,
    with_settings,
)
from mergemill.cli.simulation.compare import compare_command
from mergemill.cli.simulation.simulated import export_command, list_command, show_command
from simulators.exports.format_names import FORMAT_NAMES
from taskdb.queries.task_filters import TaskFilters
from taskdb.records.simulator_measurements import SubmissionKind

PROFILES = ("default", "simia")

app = typer.Typer(help=COMMANDS["simulate"].summary, add_completion=False)

SeedsOption = Annotated[
    Path, typer.Option("--seeds", metavar="FILE|DIR", help="Reference conversations; the format is recognised.")
]
DomainOption = Annotated[
    str, typer.Option("--domain", metavar="PACK", help="airline, retail, office, os, or a folder of your own.")
]
ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="|".join(PROFILES),
        autocompletion=complete_words(PROFILES),
        help="Rules and settings: this program's own, or those of Simia's released code.",
    ),
]
LicenseOption = Annotated[
    str, typer.Option("--seeds-license", metavar="SPDX", help="Licence of seeds whose source names none.")
]


@app.callback()
def group() -> None:
    """Let a model play users and tools, and write training data."""


@app.command("sft")
@with_settings(*SIMULATE_SETTINGS)
def sft(
    *,
    seeds: SeedsOption,
    domain: DomainOption,
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
    profile: ProfileOption = PROFILES[0],
    format_name: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="FORMAT[,FORMAT]",
            show_default=False,
            help=f"Write rows as {', '.join(FORMAT_NAMES)}. Default: all.",
        ),
    ] = None,
    seeds_license: LicenseOption = "",
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Write new conversations modelled on seeds: one call of a model for each, then the steps that drop and repair.

    The model plays the user and the tools, so nothing in a row happened: each has `environment` = `simulated`.

    Example: mergemill simulate sft --seeds seeds.json --domain retail --per-seed 20 --out sft --llm URL --model M
    """
    # A wrong option is reported without loading the simulators.
    from mergemill.execution.reporter import Reporter, ignore_event  # noqa: PLC0415
    from mergemill.simulation.run import SimulationRequest, run_simulation  # noqa: PLC0415

    request = SimulationRequest(
        seeds=seeds,
        domain=domain,
        out=out,
        profile=profile,
        per_seed=per_seed,
        total=total,
        formats=tuple(split_words(format_name)) or FORMAT_NAMES,
        seeds_license=seeds_license,
        with_held_out=with_held_out,
    )
    reporter = Reporter(message=output.print_message, event=output.print_json if as_json else ignore_event)
    summary, code = run_simulation(request, settings, reporter)
    if as_json:
        output.print_json(summary)
    else:
        _print_summary(summary, out)
    raise typer.Exit(code)


@app.command("env")
@with_settings(*EPISODE_SETTINGS)
def env(
    *,
    seeds: SeedsOption,
    domain: DomainOption,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="Keep episodes and answers in this folder: a new one, or an earlier server's."
        ),
    ] = Path("simulated-episodes"),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="P", help="Listen at this port; 0 for a free one.")
    ] = 8500,
    host: Annotated[str, typer.Option("--host", metavar="H", help="Listen at this address.")] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="T",
            envvar="MERGEMILL_ENV_TOKEN",
            show_default=False,
            help="Requests must carry this token; needed where others can reach the address.",
        ),
    ] = None,
    profile: ProfileOption = PROFILES[0],
    seeds_license: LicenseOption = "",
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    settings: Settings,
) -> None:
    """Serve simulated environments for reinforcement learning: a model plays users and tools, and judges the end.

    POST /reset, /step and /evaluate, GET /episodes/ID. Rewards are estimates, and null where there is none.

    Example: mergemill simulate env --seeds seeds.json --domain retail --port 8500 --llm URL --model M
    """
    if token is not None and not token.strip():
        raise UsageError("--token is empty")
    # FastAPI loads slowly.
    from mergemill.simulation.environment import (  # noqa: PLC0415
        EnvironmentRequest,
        serve_environment,
    )

    request = EnvironmentRequest(
        seeds=seeds, domain=domain, out=out, profile=profile, seeds_license=seeds_license, with_held_out=with_held_out
    )
    serve_environment(request, settings, output.print_message, host=host, port=port, token=token)


@app.command("measure")
@with_settings(*MEASURE_SETTINGS)
@with_filters
def measure(
    *,
    submissions: Annotated[
        list[str] | None,
        typer.Option(
            "--submissions",
            metavar="KIND[,KIND]",
            show_default=False,
            help=f"Measure submissions of these kinds: {', '.join(SubmissionKind)}. Default: all.",
        ),
    ] = None,
    per_kind: Annotated[
        int,
        typer.Option(
            "--per-kind", min=1, metavar="N", help="Measure at most N omitted hunks, bugs and rollouts of a task."
        ),
    ] = 2,
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    samples: Annotated[int, typer.Option("--samples", min=1, metavar="N", help="Simulate each grading N times.")] = 3,
    as_json: JsonOption = False,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """Measure how true a simulator is: grade submissions to certified tasks really, and let it predict the scores.

    The results are stored. Exports for reinforcement learning refuse a simulator that was not measured, or that may pay
    more than --max-false-pass of wrong submissions.

    Example: mergemill simulate measure --language python --samples 3 --llm URL --model M
    """
    # A wrong option is reported without loading the simulators.
    from mergemill.execution.reporter import Reporter, ignore_event  # noqa: PLC0415
    from mergemill.simulation.measurement import MeasureRequest, measure_simulator  # noqa: PLC0415

    kinds = split_words(submissions) or list(SubmissionKind)
    if unknown := [kind for kind in kinds if kind not in tuple(SubmissionKind)]:
        raise UsageError(f"--submissions: {unknown[0]} is unknown", advice=f"of {', '.join(SubmissionKind)}")
    selected = select_certified(filters, settings.storage)
    if not with_held_out:
        selected, n_refused = refuse_held_out(selected, settings.storage)
        if n_refused:
            output.print_note(describe_refused(n_refused, "task"))
    request = MeasureRequest(
        filters=selected,
        kinds=tuple(SubmissionKind(kind) for kind in dict.fromkeys(kinds)),
        per_kind=per_kind,
        samples=samples,
    )
    reporter = Reporter(message=output.print_message, event=output.print_json if as_json else ignore_event)
    summary, code = measure_simulator(request, settings, reporter)
    if as_json:
        output.print_json(summary)
    else:
        _print_agreement(summary)
    raise typer.Exit(code)


@app.command("rl")
@with_settings(StorageSettings, "model", "simulate_target", "max_false_pass")
def rl(
    *,
    seeds: SeedsOption,
    domain: DomainOption,
    out: NewFolderOption,
    profile: ProfileOption = PROFILES[0],
    seeds_license: LicenseOption = "",
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Write rows for reinforcement learning in a simulated environment, for Simia's trainer and verl.

    --model is the simulator that will play. One that was not measured, or that may pay more than --max-false-pass of
    wrong submissions, is refused.

    Example: mergemill simulate rl --seeds seeds.json --domain retail --model M --out rl
    """
    from mergemill.simulation.rl_export import SimulatedExportRequest, export_simulated  # noqa: PLC0415 - pyarrow

    if not settings.llm.model:
        raise UsageError("the simulator is not named", advice="set --model NAME")
    request = SimulatedExportRequest(
        seeds=seeds,
        domain=domain,
        out=out,
        profile=profile,
        simulator=settings.llm.model,
        seeds_license=seeds_license,
        with_held_out=with_held_out,
    )
    manifest = export_simulated(request, settings, output.print_message)
    if as_json:
        output.print_json(manifest)
        return
    bound = f"{manifest['measured']['false_pass']['high']:.1%}"
    output.print_text(
        f"{format_count(manifest['rows'], 'row')} in {out} (environment: simulated; {manifest['simulator']} may pay"
        f" up to {bound} of wrong submissions)"
    )


SHARES = {
    "submissions": "submissions predicted rightly",
    "tasks": "tasks with all submissions predicted rightly",
    "false_pass": "wrong submissions that would be paid",
    "false_fail": "right submissions that would not be paid",
    "tests": "tests predicted rightly",
    "test_false_pass": "failing tests predicted to pass",
    "test_false_fail": "passing tests predicted to fail",
}
"""Share of a summary -> its words."""


def _print_agreement(summary: dict[str, Any]) -> None:
    rows = [{"what": words, **summary[name]} for name, words in SHARES.items()]
    output.print_rows(rows, ("what", "n", "of", "share", "low", "high"), as_lines=False, nothing="")
    if summary["unanswered"]:
        output.print_text(f"{format_count(summary['unanswered'], 'submission')} without a usable answer")
    brier = "-" if summary["brier"] is None else f"{summary['brier']:.4f}"
    verdict = "may be trained on" if summary["usable"] else "is refused by exports for reinforcement learning"
    output.print_text(
        f"{summary['simulator']}: {format_count(summary['measured'], 'submission')} measured, {summary['new']} now;"
        f" Brier score {brier}; with a bound of {summary['false_pass']['high']:.1%} for {summary['max_false_pass']:.1%}"
        f" it {verdict}"
    )


app.command("list")(list_command)
app.command("show")(show_command)
app.command("export")(export_command)
app.command("compare")(compare_command)


def _print_summary(summary: dict[str, Any], out: Path) -> None:
    rows = [{**step, "dropped": sum(step["dropped"].values()), "reasons": step["dropped"]} for step in summary["steps"]]
    columns = ("step", "before", "repaired", "dropped", "after", "reasons")
    output.print_rows(rows, columns, as_lines=False, nothing="")
    if summary["rejected_seeds"]:
        refused = ", ".join(f"{number} {reason}" for reason, number in summary["rejected_seeds"].items())
        output.print_text(f"{format_count(summary['seeds'], 'seed')}, of which not used: {refused}")
    for name, reasons in summary["left_out"].items():
        for reason, number in reasons.items():
            output.print_note(f"{format_count(number, 'row')} left out of {name}: {reason}")
    kept, planned = summary["kept"], format_count(summary["planned"], "conversation")
    written = ", ".join(f"{name} {number}" for name, number in summary["rows"].items())
    output.print_text(f"{kept} of {planned} kept in {out} (rows: {written}; environment: simulated)")
    output.print_text(f"{format_count(summary['new'], 'new record')} in the task database")
