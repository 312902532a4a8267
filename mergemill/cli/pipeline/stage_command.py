"""Options that `run` and the commands of a stage share, and the command made of them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from core.config import Settings
from core.errors import UsageError
from core.settings.models import OFF
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.commands import COMMANDS
from mergemill.cli.exit_codes import DRAINED
from mergemill.cli.options import CommandFunction, JsonOption, complete_words, split_words, with_settings
from mergemill.cli.pipeline.draining import drain_on_sigterm
from mergemill.cli.pipeline.environment_options import PANEL, make_request, select_kinds, with_environments
from mergemill.cli.queries.funnel import print_funnel
from mergemill.execution.progress import JsonLinesProgress, LiveTableProgress, MessageProgress
from mergemill.execution.telemetry.logs import LogStream
from miner.sources import SOURCE_FORMS, expand_sources
from taskdb.records import Kind, Stage
from taskdb.records.work import Scope

if TYPE_CHECKING:
    from mergemill.pipeline.environment_tasks import EnvironmentTaskRequest

ENVIRONMENT_COLUMNS = ("environment", "kind", "tasks", "wanted", "reason", "detail")
SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="SOURCE...", show_default=False, help=f"{SOURCE_FORMS} (a file that lists sources)."),
]
OnlyOption = Annotated[
    str | None, typer.Option("--only", metavar="ID[,ID]", help="Process only these changes (names or ids).")
]
KindOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND[,KIND]",
        autocompletion=complete_words([*Kind, "all"]),
        show_default=False,
        help=f"Derive tasks of these kinds: {', '.join(Kind)}, or all. Default: bugfix,feature.",
    ),
]
RetryOption = Annotated[
    str | None,
    typer.Option(
        "--retry", metavar="REASON[,REASON]", help="Process again what was rejected for one of these reasons."
    ),
]
TasksOption = Annotated[
    int | None,
    typer.Option(
        "--tasks", min=1, metavar="N", help="Stop once the sources have N certified tasks, earlier ones included."
    ),
]

NewTasksOption = Annotated[
    int | None,
    typer.Option("--tasks", min=1, metavar="N", help="Derive at most N tasks now.", rich_help_panel=PANEL),
]


def make_run_app(*, example: str) -> typer.Typer:
    """Return the application with `run`."""

    def command(
        *,
        sources: SourcesArgument = None,
        only: OnlyOption = None,
        kind: KindOption = None,
        tasks: TasksOption = None,
        retry: RetryOption = None,
        as_json: JsonOption = False,
        given: Mapping[str, Any],
        settings: Settings,
    ) -> None:
        request = make_request(given, settings.derive)
        scope = make_scope(
            None, sources, only=only, kind=kind, retry=retry, settings=settings, of_environments=bool(request)
        )
        raise typer.Exit(run_scope(None, scope, settings, as_json=as_json, max_tasks=tasks, environments=request))

    return make_app("run", with_settings()(with_environments(command)), example=example)


def make_derive_app(*, example: str) -> typer.Typer:
    """Return the application with `derive`."""

    def command(
        *,
        sources: SourcesArgument = None,
        only: OnlyOption = None,
        kind: KindOption = None,
        tasks: NewTasksOption = None,
        retry: RetryOption = None,
        as_json: JsonOption = False,
        given: Mapping[str, Any],
        settings: Settings,
    ) -> None:
        request = make_request(given, settings.derive, total=tasks)
        scope = make_scope(
            Stage.DERIVE,
            sources,
            only=only,
            kind=kind,
            retry=retry,
            settings=settings,
            of_environments=bool(request),
        )
        raise typer.Exit(run_scope(Stage.DERIVE, scope, settings, as_json=as_json, environments=request))

    return make_app("derive", with_settings()(with_environments(command)), example=example)


def make_stage_app(stage: Stage, *, example: str) -> typer.Typer:
    """Return the application with the command of a stage."""

    def command(
        *,
        sources: SourcesArgument = None,
        only: OnlyOption = None,
        kind: KindOption = None,
        retry: RetryOption = None,
        as_json: JsonOption = False,
        settings: Settings,
    ) -> None:
        scope = make_scope(stage, sources, only=only, kind=kind, retry=retry, settings=settings)
        raise typer.Exit(run_scope(stage, scope, settings, as_json=as_json))

    return make_app(stage.value, with_settings()(command), example=example)


def make_app(name: str, command: CommandFunction, *, example: str) -> typer.Typer:
    """Return the application with a command of the table, whose summary is its help."""
    app = typer.Typer(add_completion=False)
    app.command(name, help=f"{COMMANDS[name].summary}\n\nExample: {example}")(command)
    return app


def make_scope(
    stage: Stage | None,
    sources: Sequence[str] | None,
    *,
    only: str | None,
    kind: Sequence[str] | None,
    retry: str | None,
    settings: Settings,
    of_environments: bool = False,
) -> Scope:
    """Return the scope that the options describe. `of_environments`: whether tasks are derived from environments.

    Raises:
        UsageError: a source is missing where it is needed, or a word is neither a source nor a kind.
        InputError: a list of sources cannot be read.
    """
    from mergemill.pipeline.kinds import get_prerequisites, list_stages  # noqa: PLC0415 - derivers load slowly

    if not sources and stage in (None, Stage.MINE):
        raise UsageError("no source is named", advice=f"a source is {SOURCE_FORMS}")
    kinds = parse_kinds(kind)
    if of_environments:
        kinds = select_kinds(kinds if kind else None, has_model=settings.llm.url != OFF)
    stages = (stage,) if stage else _ENVIRONMENT_STAGES if of_environments else list_stages(kinds)
    source = settings.source
    return Scope(
        sources=expand_sources(sources or ()),
        only=split_words(only),
        since=source.since,
        until=source.until,
        language=source.language,
        limit=source.limit,
        retry=split_words(retry),
        kinds=get_prerequisites(kinds),
        certified=kinds if kind else tuple(Kind),
        stages=stages,
    )


_ENVIRONMENT_STAGES = (Stage.MINE, Stage.BUILD, Stage.DERIVE, Stage.CERTIFY)
"""Stages of a run for tasks from environments, whatever verification and judge would decide on the changes."""


def parse_kinds(words: Sequence[str] | None) -> tuple[Kind, ...]:
    """Return the kinds of tasks that `--kind` names.

    Raises:
        UsageError: a word is not a kind.
    """
    from mergemill.pipeline.kinds import DEFAULT_KINDS  # noqa: PLC0415 - derivers load slowly

    names = split_words(words)
    if not names:
        return DEFAULT_KINDS
    if "all" in names:
        return tuple(Kind)
    if unknown := [name for name in names if name not in list(Kind)]:
        raise UsageError(f"--kind: unknown kind {unknown[0]}", advice=f"one of {', '.join(Kind)}, or all")
    return tuple(Kind(name) for name in names)


def run_scope(
    stage: Stage | None,
    scope: Scope,
    settings: Settings,
    *,
    as_json: bool,
    max_tasks: int | None = None,
    environments: EnvironmentTaskRequest | None = None,
) -> int:
    """Run a stage, or all for None, print the summary and return the exit code."""
    from mergemill.pipeline.runs import run_stages  # noqa: PLC0415 - a wrong option is reported without loading the stages

    progress = _make_progress(as_json=as_json)
    with drain_on_sigterm(progress.work, settings.operation.drain_seconds, progress.print_message):
        report = run_stages(
            stage, scope, settings, progress, _announce_stop, max_tasks=max_tasks, environments=environments
        )
    if as_json:
        for row in report.environments:
            output.print_json({"event": "environment", **row})
        output.print_json({"event": "summary", "new": report.n_new, **report.summary})
    elif logging.getLogger().isEnabledFor(logging.WARNING):
        if report.environments:
            output.print_rows(report.environments, ENVIRONMENT_COLUMNS, as_lines=False, nothing="")
            output.print_text("")
        print_funnel(report.funnel, report.examples)
        certified = format_count(report.summary["certified"], "certified task")
        output.print_text(f"this run: {format_count(report.n_new, 'new result')}; {certified} of these sources so far")
    if progress.work.is_draining:
        output.print_message(f"drained: {progress.format_interruption()}; the same command continues from here")
        return DRAINED
    return report.exit_code


def _make_progress(*, as_json: bool) -> MessageProgress:
    if as_json:
        return JsonLinesProgress(out=sys.stdout)
    if isinstance(sys.stderr, LogStream) or not logging.getLogger().isEnabledFor(logging.WARNING):
        return MessageProgress()
    return LiveTableProgress(Console(stderr=True)) if sys.stderr.isatty() else JsonLinesProgress()


def _announce_stop() -> None:
    output.print_message("stopping running containers; press Ctrl-C again to exit at once")
