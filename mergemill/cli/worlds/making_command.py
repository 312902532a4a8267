"""Options that the commands which make worlds share, and the commands made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from core.config import Settings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import WORLD_COMMANDS
from mergemill.cli.options import (
    WORLDS_SETTINGS,
    WORLDS_STEP_SETTINGS,
    CommandFunction,
    JsonOption,
    split_words,
    with_settings,
)
from taskdb.records.worlds import WorldStep

TasksOption = Annotated[
    str,
    typer.Option(
        "--tasks",
        metavar="FILE|swe",
        show_default=False,
        help="Seed tasks: a .txt, .json or .jsonl, or `swe` for what the mined repositories are about.",
    ),
]
OnlyOption = Annotated[
    str | None,
    typer.Option("--only", metavar="NAME[,NAME]", help="Process only these themes or worlds."),
]
RetryOption = Annotated[
    str | None,
    typer.Option(
        "--retry", metavar="REASON[,REASON]", help="Process again what was rejected for one of these reasons."
    ),
]


def make_discover_app() -> typer.Typer:
    """Return the application with `worlds discover`."""

    def command(*, tasks: TasksOption, as_json: JsonOption = False, settings: Settings) -> None:
        _run((WorldStep.DISCOVER,), settings, as_json=as_json, tasks=tasks)

    return _make_app(command, (WorldStep.DISCOVER,), "discover", "mergemill worlds discover --tasks tasks.txt")


def make_step_app(step: WorldStep, *, example: str) -> typer.Typer:
    """Return the application with the command of a step on the work that is pending."""

    def command(
        *, only: OnlyOption = None, retry: RetryOption = None, as_json: JsonOption = False, settings: Settings
    ) -> None:
        _run((step,), settings, as_json=as_json, only=only, retry=retry)

    return _make_app(command, (step,), step.value, example)


def make_run_app() -> typer.Typer:
    """Return the application with `worlds run`."""

    def command(
        *, tasks: TasksOption, retry: RetryOption = None, as_json: JsonOption = False, settings: Settings
    ) -> None:
        _run(tuple(WorldStep), settings, as_json=as_json, tasks=tasks, retry=retry)

    return _make_app(command, tuple(WorldStep), "run", "mergemill worlds run --tasks swe --llm URL --model M")


def _make_app(command: CommandFunction, steps: Sequence[WorldStep], name: str, example: str) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    own = [setting for step in steps for setting in WORLDS_STEP_SETTINGS[step.value]]
    with_options = with_settings(*dict.fromkeys([*WORLDS_SETTINGS, *own]))
    app.command(name, help=f"{WORLD_COMMANDS[name].summary}\n\nExample: {example}")(with_options(command))
    return app


def _run(
    steps: tuple[WorldStep, ...],
    settings: Settings,
    *,
    as_json: bool,
    tasks: str = "",
    only: str | None = None,
    retry: str | None = None,
) -> None:
    """Run steps, print the summary and exit with its code."""
    from mergemill.execution.reporter import Reporter, ignore_event  # noqa: PLC0415 - a wrong option needs none of them
    from mergemill.worlds.making.run import run_making  # noqa: PLC0415
    from mergemill.worlds.making.work import MakingRequest  # noqa: PLC0415

    request = MakingRequest(steps=steps, tasks=tasks, only=tuple(split_words(only)), retry=tuple(split_words(retry)))
    reporter = Reporter(message=output.print_message, event=output.print_json if as_json else ignore_event)
    summary, code = run_making(request, settings, reporter)
    if as_json:
        output.print_json(summary)
    else:
        _print_summary(summary)
    raise typer.Exit(code)


def _print_summary(summary: dict[str, Any]) -> None:
    rows = [
        {**step, "rejected": sum(step["rejected"].values()), "reasons": step["rejected"]} for step in summary["steps"]
    ]
    output.print_rows(
        rows, ("step", "found", "kept", "rejected", "left", "reasons"), as_lines=False, nothing="nothing to do"
    )
    requests, tokens = summary["requests"], summary["prompt_tokens"] + summary["completion_tokens"]
    output.print_text(
        f"{format_count(requests, 'request')}, {format_count(tokens, 'token')}, cost {summary['cost']:g};"
        " environment: synthetic"
    )
