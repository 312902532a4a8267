"""`mergemill bench freeze`: a frozen set of tasks or scenarios."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from core.config import Settings
from core.errors import UsageError
from core.settings.agents import RolloutSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.agents.environments import (
    EnvironmentOption,
    WorldOption,
    parse_environment,
    refuse_task_filters,
)
from mergemill.cli.options import JsonOption, select_certified, with_filters, with_settings
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.trajectories import SYNTHETIC
from taskdb.queries.worlds import find_current_scenarios, resolve_world
from taskdb.records import Task
from taskdb.records.bench import BenchLimits
from taskdb.records.worlds import Scenario
from taskdb.store import Store

app = typer.Typer(add_completion=False)


@app.command("freeze")
@with_filters
@with_settings(StorageSettings, RolloutSettings)
def freeze_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the set.")],
    *,
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="Refuse its subjects, and their families, as training data from now on."),
    ] = False,
    rebuilt_images: Annotated[
        bool,
        typer.Option(
            "--rebuilt-images",
            help="Hash the names of images, which are hashes of their inputs, without digests: the images may be built "
            "again elsewhere, where each subject is certified before it is run.",
        ),
    ] = False,
    of_each_kind: Annotated[
        int | None,
        typer.Option(
            "--of-each-kind",
            min=1,
            metavar="N",
            show_default=False,
            help="Freeze N tasks of each kind of --kind, spread over repositories, in an order by --seed and name. "
            "Fewer of a kind is an error.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Write the set to this file.")],
    environment: EnvironmentOption = None,
    world: WorldOption = None,
    as_json: JsonOption = False,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """Freeze certified tasks or scenarios as a set, with hashes of everything that decides their grading.

    `--environment verified,synthetic` freezes tasks and scenarios. --rollout-turns and --rollout-seconds are the limits
    of its runs.

    Example: mergemill bench freeze review-1 --kind review --sample 60 --held-out --out review-1.json
    """
    from mergemill.bench.sets import describe_set, freeze, write_set  # noqa: PLC0415 - a wrong option needs no sets

    choice = parse_environment(environment, world)
    wants_tasks = choice.words is None or any(word != SYNTHETIC for word in choice.words)
    if not wants_tasks:
        refuse_task_filters(choice, filters)
    limits = BenchLimits(turns=settings.rollout.turns, seconds=settings.rollout.seconds)
    subjects: list[Task | Scenario] = []
    if wants_tasks:
        words = None if choice.words is None else tuple(word for word in choice.words if word != SYNTHETIC)
        wanted = filters if words is None else replace(filters, environment=words)
        subjects += _load_tasks(settings.storage, wanted, of_each_kind)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        if choice.has_scenarios:
            subjects += _load_scenarios(store, choice.worlds)
        bench_set = freeze(store, name, subjects, limits, held_out=held_out, rebuilt_images=rebuilt_images)
    write_set(bench_set, out)
    if as_json:
        output.print_json(describe_set(bench_set))
        return
    held = ", held out" if bench_set.held_out else ""
    number = format_count(len(bench_set.subjects), "subject")
    output.print_text(f"{bench_set.name} {bench_set.version}: {number} in {out}{held}")


def _load_tasks(storage: StorageSettings, filters: TaskFilters, of_each_kind: int | None) -> list[Task]:
    """Return the tasks that the filters select, or as many of each kind of theirs.

    Raises:
        InputError: a kind has too few.
        UsageError: no kind is named, or a sample is drawn in another way as well.
    """
    from mergemill.bench.choice import choose_of_each_kind  # noqa: PLC0415 - as in the command

    kinds = tuple(dict.fromkeys(word.lower() for word in filters.kind or ()))
    if of_each_kind is not None and not kinds:
        raise UsageError("--of-each-kind needs --kind", advice="such as --kind bugfix,review")
    if of_each_kind is not None and filters.sample is not None:
        raise UsageError("--of-each-kind and --sample are two ways to draw", advice="leave one out")
    selected = select_certified(filters, storage)
    with Store.open(storage.db, create=False) as store:
        rows = queries.list_tasks(store, selected, columns=("id", "name", "kind", "repo"))
        keys = [row["id"] for row in rows]
        if of_each_kind is not None:
            keys = choose_of_each_kind(rows, kinds, of_each_kind, filters.seed)
        return list(store.get_many(Task, keys).values())


def _load_scenarios(store: Store, worlds: tuple[str, ...]) -> list[Scenario]:
    chosen = {resolve_world(store, word).id for word in worlds}
    scenarios = find_current_scenarios(store, certified=True)
    return [scenario for scenario in scenarios if not chosen or scenario.parent in chosen]
