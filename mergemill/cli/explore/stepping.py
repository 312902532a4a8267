"""Options that the commands which make questions share, and the commands made of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from core.config import Settings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import EXPLORE_COMMANDS
from mergemill.cli.options import (
    EXPLORE_STEP_SETTINGS,
    CommandFunction,
    JsonOption,
    split_words,
    with_settings,
)
from taskdb.records.questions import ExploreStep

CorpusOption = Annotated[str, typer.Option("--corpus", metavar="NAME", show_default=False, help="Name of the corpus.")]
SeedsOption = Annotated[
    str,
    typer.Option(
        "--seeds",
        metavar="FILE|sample:N",
        show_default=False,
        help="Seeds of the walks: a file with a seed a line, or titles of N pages.",
    ),
]
OnlyOption = Annotated[
    str | None,
    typer.Option("--only", metavar="NAME[,NAME]", help="Process only walks and questions whose names begin so."),
]
RetryOption = Annotated[
    str | None,
    typer.Option(
        "--retry", metavar="REASON[,REASON]", help="Process again what was rejected for one of these reasons."
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option("--rounds", min=0, max=20, metavar="N", help="Rounds of evolution. Default: --explore-rounds."),
]


def make_run_app(example: str) -> typer.Typer:
    """Return the application with `explore run`."""
    steps = tuple(ExploreStep)

    def command(
        *,
        corpus: CorpusOption,
        seeds: SeedsOption,
        rounds: RoundsOption = None,
        only: OnlyOption = None,
        retry: RetryOption = None,
        as_json: JsonOption = False,
        settings: Settings,
    ) -> None:
        _run(steps, settings, as_json=as_json, corpus=corpus, seeds=seeds, rounds=rounds, only=only, retry=retry)

    return _make_app(command, "run", steps, example)


def make_walk_app(example: str) -> typer.Typer:
    """Return the application with `explore walk`."""
    steps = (ExploreStep.WALK,)

    def command(
        *,
        corpus: CorpusOption,
        seeds: SeedsOption,
        only: OnlyOption = None,
        retry: RetryOption = None,
        as_json: JsonOption = False,
        settings: Settings,
    ) -> None:
        _run(steps, settings, as_json=as_json, corpus=corpus, seeds=seeds, only=only, retry=retry)

    return _make_app(command, "walk", steps, example)


def make_pending_app(name: str, steps: tuple[ExploreStep, ...], example: str) -> typer.Typer:
    """Return the application with a command on pending items."""

    def command(
        *,
        corpus: CorpusOption,
        only: OnlyOption = None,
        retry: RetryOption = None,
        as_json: JsonOption = False,
        settings: Settings,
    ) -> None:
        _run(steps, settings, as_json=as_json, corpus=corpus, only=only, retry=retry)

    return _make_app(command, name, steps, example)


def _make_app(command: CommandFunction, name: str, steps: tuple[ExploreStep, ...], example: str) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    settings = [setting for step in steps for setting in EXPLORE_STEP_SETTINGS[step.value]]
    app.command(name, help=f"{EXPLORE_COMMANDS[name].summary}\n\nExample: {example}")(
        with_settings(*dict.fromkeys(settings))(command)
    )
    return app


def _run(
    steps: tuple[ExploreStep, ...],
    settings: Settings,
    *,
    as_json: bool,
    corpus: str,
    seeds: str = "",
    rounds: int | None = None,
    only: str | None = None,
    retry: str | None = None,
) -> None:
    """Run steps, print the summary and exit with its code."""
    from core.settings.group import replace_values  # noqa: PLC0415 - a wrong option needs none of them
    from mergemill.execution.reporter import Reporter, ignore_event  # noqa: PLC0415
    from mergemill.explore.run import run_exploring  # noqa: PLC0415
    from mergemill.explore.work import ExploreRequest  # noqa: PLC0415

    request = ExploreRequest(
        corpus=corpus, steps=steps, seeds=seeds, only=tuple(split_words(only)), retry=tuple(split_words(retry))
    )
    if rounds is not None:
        settings = replace_values(settings, {"explore_rounds": rounds})
    reporter = Reporter(message=output.print_message, event=output.print_json if as_json else ignore_event)
    summary, code = run_exploring(request, settings, reporter)
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
        " environment: corpus"
    )
