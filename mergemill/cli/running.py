"""`run` and the commands of one stage."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from backends.cluster.local import LocalCluster
from backends.services import Services
from mergemill.cli import judging, output
from mergemill.cli.funnel import tell_funnel
from mergemill.cli.options import Command, Json, with_settings, words
from mergemill.config import Settings
from mergemill.errors import UsageError
from mergemill.images.budget import Budget
from mergemill.images.fetching import fetching
from mergemill.pipeline import Run, Step, stages
from mergemill.progress import Lines, LiveTable, Quiet
from mergemill.services import make_services
from miner.sources import FORMS
from taskdb.chains import Scope
from taskdb.kinds import DEFAULT, NEEDS, Needs, way
from taskdb.lineage import Lineage
from taskdb.queries import examples, funnel, summary
from taskdb.records import Kind, Stage
from taskdb.store import Store

SOURCES = f"{FORMS} (a list of them)."
Sources = Annotated[list[str] | None, typer.Argument(metavar="SOURCE...", show_default=False, help=SOURCES)]
Only = Annotated[str | None, typer.Option("--only", metavar="ID[,ID]", help="Only these changes: names or ids.")]
Wanted = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND[,KIND]",
        show_default=False,
        help=f"Make tasks of these kinds: {', '.join(Kind)}, or all.",
    ),
]
Retry = Annotated[
    str | None,
    typer.Option("--retry", metavar="REASON[,REASON]", help="Do again what was rejected for one of these reasons."),
]

HELP = {
    None: "Mine, build, verify, judge, derive, certify: everything there is to do, and only that.",
    Stage.MINE: "Read changes from sources and keep those that can become tasks.",
    Stage.BUILD: "Make an environment for each candidate that has none.",
    Stage.VERIFY: "Run the tests of each environment: what fails before, passes after, and holds.",
    Stage.JUDGE: "Say whether the statement of each verified change, or published task (instances:FILE), is enough.",
    Stage.DERIVE: "Make tasks of what was verified.",
    Stage.CERTIFY: "Prove each task from its own image and script: gold 1 each time, no-op 0.",
}
ENGINE = (Stage.BUILD, Stage.VERIFY)
"""Stages that need a Docker engine, whatever kinds of tasks are asked for."""


def stage_command(stage: Stage | None) -> Command:
    """The command of one stage, or `run` for None."""

    def command(
        *,
        sources: Sources = None,
        only: Only = None,
        kind: Wanted = None,
        retry: Retry = None,
        as_json: Json = False,
        settings: Settings,
    ) -> None:
        kinds = wanted_kinds(kind)
        expanded = _expanded(sources or (), required=stage in (None, Stage.MINE))
        if stage is Stage.JUDGE and judging.of_files(expanded):
            raise typer.Exit(judging.tell(expanded, words(only), settings, as_json=as_json))
        scope = Scope(
            sources=expanded, only=words(only), since=settings.since, until=settings.until,
            language=settings.language, limit=settings.limit, retry=words(retry), kinds=kinds,
            certified=kinds if kind else tuple(Kind), stages=(stage,) if stage else way(kinds),
        )  # fmt: skip
        raise typer.Exit(_run(stage, scope, settings, as_json=as_json))

    command.__doc__ = HELP[stage]
    return with_settings()(command)


def register(app: typer.Typer) -> None:
    """Add `run` and one command per stage."""
    for stage in (None, *Stage):
        app.command(stage.value if stage else "run")(stage_command(stage))


def wanted_kinds(given: Sequence[str] | None) -> tuple[Kind, ...]:
    """The kinds of tasks that `--kind` names.

    Raises:
        UsageError: one of them is none.
    """
    named = words(",".join(given or ()))
    if not named:
        return DEFAULT
    if "all" in named:
        return tuple(Kind)
    if unknown := [name for name in named if name not in list(Kind)]:
        raise UsageError(f"--kind: there is no kind {unknown[0]}", advice=f"one of {', '.join(Kind)}, or all")
    return tuple(Kind(name) for name in named)


def _expanded(sources: list[str] | tuple[str, ...], *, required: bool) -> list[str]:
    if required and not sources:
        raise UsageError("no source is named", advice=f"a source is {SOURCES.removesuffix('.')}")
    from miner.sources import expand  # noqa: PLC0415 - only these commands need the miner

    return expand(sources)


def _run(stage: Stage | None, scope: Scope, settings: Settings, *, as_json: bool) -> int:
    """Do what is to do; the exit code."""
    from miner.sources import canonical  # noqa: PLC0415 - only these commands need the miner

    engine = _needs_engine(scope)
    services = make_services(settings, engine=engine)
    if scope.retry:
        from builders.failures import forget  # noqa: PLC0415 - only a retry needs the builders here

        forget(settings.store_dir)
    creates = stage in (None, Stage.MINE)
    with Store.open(settings.db, create=creates, clock=services.clock) as store, _progress(as_json=as_json) as progress:
        services = fetching(services, store)
        cluster = LocalCluster(workers=settings.workers, stop=partial(_stop, services if engine else None))
        bear = partial(canonical, clones=settings.store_dir / "clones")
        run = Run(store, services, cluster, progress, settings.workers, canonical=bear)
        if settings.image_budget is not None and Stage.BUILD in scope.stages:
            run.make_room = Budget(services, store, progress.message).make_room
        _work(run, stage, scope if creates else _by_records(scope, bear))
        scope = _by_records(scope, bear)  # only now it is known under which names they were mined
        held = summary(store, scope.sources)
        passed, such_as = funnel(store, scope.sources), examples(store, scope.sources)
    if as_json:
        output.as_json({"event": "summary", "new": run.new, **held})
    elif logging.getLogger().isEnabledFor(logging.WARNING):
        tell_funnel(passed, such_as)
        output.text(f"this run: {run.new} new results")
    return run.exit_code


def _needs_engine(scope: Scope) -> bool:
    """Whether a Docker engine must answer at the start. Deriving asks for it when a kind has something to run."""
    certifies = Stage.CERTIFY in scope.stages and any(NEEDS[kind] is not Needs.CANDIDATE for kind in scope.certified)
    return certifies or any(stage in ENGINE for stage in scope.stages)


def _by_records(scope: Scope, bear: Callable[[str], str]) -> Scope:
    """The same scope with the source words that records bear."""
    return replace(scope, sources=list(dict.fromkeys(map(bear, scope.sources))))


def _work(run: Run, stage: Stage | None, scope: Scope) -> None:
    if stage is Stage.MINE:
        run.work((), _mined(run, scope))
        return
    steps: tuple[Step, ...] = tuple(step for step in stages() if step.stage in scope.stages)
    run.work(steps, _mined(run, scope) if stage is None else run.store.pending(stage, scope))
    if stage in (None, Stage.DERIVE):  # what is made of two changes waits until both have come that far
        late = tuple(step for step in steps if step.stage in (Stage.DERIVE, Stage.CERTIFY))
        run.work(late, run.store.open_pairs(_by_records(scope, run.canonical)))


def _mined(run: Run, scope: Scope) -> Iterator[Lineage]:
    from miner.mine import mine, readers_of  # noqa: PLC0415

    with readers_of(scope.sources, run.services) as readers:
        yield from run.mine(partial(mine, only=scope.only, last_word=run.last_word, readers=readers), scope)


def _progress(*, as_json: bool) -> Quiet:
    if as_json:
        return Lines(out=sys.stdout)
    if not logging.getLogger().isEnabledFor(logging.WARNING):
        return Quiet()
    return LiveTable(Console(stderr=True)) if sys.stderr.isatty() else Lines()


def _stop(services: Services | None) -> None:
    output.tell("ending what runs; Ctrl-C once more leaves at once")
    if services is not None:
        services.sandbox.stop()
        if services.model is not None:
            services.model.stop()
