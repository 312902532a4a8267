"""`mergemill difficulty`: pass rates by task, model and scaffold, and how much data is enough."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from core.errors import InputError, UsageError
from core.files import read_text
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.cli import output
from mergemill.cli.agents.environments import (
    EnvironmentChoice,
    EnvironmentOption,
    WorldOption,
    parse_environment,
    select_subjects,
)
from mergemill.cli.agents.trajectories import ModelOption, ScaffoldOption
from mergemill.cli.options import (
    JsonOption,
    complete_words,
    select_certified,
    split_words,
    with_filters,
    with_settings,
)
from taskdb.queries import tasks as queries
from taskdb.queries.families import find_families
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.trajectories import SYNTHETIC, list_pass_rates
from taskdb.queries.worlds import find_solution_facts
from taskdb.records.difficulty import DifficultyBand
from taskdb.store import Store

TASK_COLUMNS = ("name", "model", "scaffold", "n", "c", "low", "high", "mean_value", "band", "pass_at", "pass_all")
TOTAL_COLUMNS = (
    *("model", "scaffold", "tasks", "families", "n", "c", "mean", "low", "high"),
    *("mean_value", "bands", "pass_at", "pass_all"),
)
SOLUTION_COLUMNS = ("n_calls", "n_tools", "query_share")
MAX_SCORE = 1e6
"""Of whatever scale; NaN and infinity are beyond it."""
NO_RATES = "no rollout has a value; `mergemill sample` makes rollouts"

app = typer.Typer(add_completion=False)


@app.command("difficulty")
@with_settings(StorageSettings)
@with_filters
def difficulty(
    *,
    scaffold: ScaffoldOption = None,
    model: ModelOption = None,
    band: Annotated[
        str | None,
        typer.Option(
            "--band",
            metavar="|".join(DifficultyBand),
            autocompletion=complete_words(DifficultyBand),
            help="Print the tasks of one band.",
        ),
    ] = None,
    total: Annotated[bool, typer.Option("--total", help="Print a row for each model and scaffold.")] = False,
    saturation: Annotated[
        Path | None,
        typer.Option(
            "--saturation",
            metavar="DIR",
            help="Write nested random subsets of the tasks, by kind, language and source, to this folder instead.",
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores",
            metavar="FILE",
            help='Fit saturating curves to these scores instead: {"group": .., "tasks": n, "score": ..}, one a line.',
        ),
    ] = None,
    environment: EnvironmentOption = None,
    world: WorldOption = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """Show pass rates by task, model and scaffold.

    Rollouts without a value, which an infrastructure failure ended, do not count.

    Example: mergemill difficulty --scaffold react --band edge
    """
    choice = parse_environment(environment, world)
    if scores is not None:
        _print_curves(scores, as_json=as_json)
        return
    if saturation is not None:
        _write_subsets(saturation, storage, _restrict(filters, choice), as_json=as_json)
        return
    if band is not None and band not in tuple(DifficultyBand):
        raise UsageError(f"--band: {band} is unknown", advice=f"one of {', '.join(DifficultyBand)}")
    from samplers.difficulty.summary import describe_rate, summarise_rates  # noqa: PLC0415 - queries need no samplers

    names = tuple(split_words(scaffold))
    subjects = select_subjects(storage, filters, choice)
    with Store.open(storage.db, create=False) as store:
        rates = list_pass_rates(
            store, scaffold=names, model=model, environments=subjects.environments, tasks=subjects.ids
        )
        kept = [rate for rate in rates if band is None or rate.difficulty.band == band]
        families = find_families(store, [rate.task for rate in kept]) if total else {}
        solutions = find_solution_facts(store, [rate.task for rate in kept if rate.environment == SYNTHETIC])
    if total:
        output.print_rows(summarise_rates(kept, families), TOTAL_COLUMNS, as_lines=as_json, nothing=NO_RATES)
        return
    rows = [describe_rate(rate, solutions.get(rate.task)) for rate in kept]
    columns = (*TASK_COLUMNS, *(SOLUTION_COLUMNS if choice.has_scenarios else ()))
    output.print_rows(rows, columns, as_lines=as_json, nothing=NO_RATES)


def _restrict(filters: TaskFilters, choice: EnvironmentChoice) -> TaskFilters:
    """Return the filters with the environments; raise UsageError for those of scenarios, which have no subsets."""
    if choice.has_scenarios:
        raise UsageError("--saturation has subsets of tasks alone", advice="leave synthetic environments out")
    return filters if choice.words is None else replace(filters, environment=choice.words)


def _write_subsets(folder: Path, storage: StorageSettings, filters: TaskFilters, *, as_json: bool) -> None:
    from samplers.difficulty.manifests import DIMENSIONS, write_subsets  # noqa: PLC0415 - as above

    with Store.open(storage.db, create=False) as store:
        rows = queries.list_tasks(store, select_certified(filters, storage), columns=("id", "name", *DIMENSIONS))
    if not rows:
        raise InputError("no task matches", advice="`mergemill tasks list` lists the tasks")
    written = write_subsets(rows, folder)
    output.print_rows(written, ("dimension", "value", "share", "tasks", "file"), as_lines=as_json, nothing="")


def _print_curves(path: Path, *, as_json: bool) -> None:
    from samplers.difficulty.saturation import fit_saturation  # noqa: PLC0415 - scipy loads slowly

    for group, points in _read_scores(path).items():
        curve = fit_saturation(points)
        if as_json:
            output.print_json({"group": group, **asdict(curve), "is_flat": curve.is_flat})
            continue
        upper = "no upper end" if curve.flat_high is None else f"{curve.flat_high:.0f}"
        verdict = "" if curve.is_flat else f"; not shown by scores of up to {format_count(curve.largest, 'task')}"
        output.print_text(
            f"{group}: limit {curve.limit:.3f} ({curve.limit_low:.3f} to {curve.limit_high:.3f}), flat from "
            f"{curve.flat_from:.0f} tasks on ({curve.flat_low:.0f} to {upper}){verdict}"
        )


def _read_scores(path: Path) -> dict[str, list[tuple[int, float]]]:
    """Return group -> (number of tasks, score)."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for number, line in enumerate(read_text(path, f"cannot read the scores {path}").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row: dict[str, Any] = json.loads(line)
            point = int(row["tasks"]), float(row["score"])
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise InputError(f"{path}, line {number}: needs `tasks` and `score`") from error
        if not abs(point[1]) <= MAX_SCORE:
            raise InputError(f"{path}, line {number}: {point[1]} is no score")
        groups.setdefault(str(row.get("group", "all")), []).append(point)
    if not groups:
        raise InputError(f"{path} holds no score")
    return groups
