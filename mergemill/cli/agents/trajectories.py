"""`mergemill trajectories`: the work that agents did, rejection sampling, and training data."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.config import Settings
from core.errors import InputError, UsageError
from core.files import read_text
from core.settings.agents import SelectionSettings
from core.settings.simulation import MeasurementSettings
from core.settings.storage import StorageSettings
from core.text import format_count
from mergemill.bench.held_out import WITH_HELP, WITH_OPTION, describe_refused
from mergemill.cli import output
from mergemill.cli.agents.compare import compare_command
from mergemill.cli.agents.environments import (
    EnvironmentChoice,
    EnvironmentOption,
    WorldOption,
    parse_environment,
    select_subjects,
)
from mergemill.cli.commands import COMMANDS
from mergemill.cli.options import (
    GRADING_SETTINGS,
    IdArgument,
    JsonOption,
    NewFolderOption,
    complete_words,
    split_words,
    with_filters,
    with_settings,
)
from samplers.rollouts.environment import SIMULATED
from taskdb.artifacts import open_artifacts
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.trajectories import (
    TRUSTED_ENVIRONMENTS,
    TrajectoryFilters,
    find_environment,
    list_trajectories,
    resolve_trajectory,
)
from taskdb.records.rollouts import Rollout, TrajectoryRole
from taskdb.store import Store

if TYPE_CHECKING:
    from mergemill.agents.trajectory_import import ImportedRollout
    from samplers.selection.rubric import RubricJudge

TABLE_COLUMNS = ("id", "name", "scaffold", "model", "attempt", "role", "value", "n_requests", "selected", "refused_by")
SHOWN_DIGITS = 12
NO_TRAJECTORIES = "no trajectory matches; `mergemill sample` makes rollouts"

app = typer.Typer(help=COMMANDS["trajectories"].summary, add_completion=False)

ScaffoldOption = Annotated[
    list[str] | None,
    typer.Option("--scaffold", metavar="NAME[,NAME]", show_default=False, help="Select by scaffold."),
]
ModelOption = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Select by model.")]
MinValueOption = Annotated[
    float | None, typer.Option("--min-value", metavar="VALUE", help="Select by the smallest reward.")
]
RoleOption = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="|".join(TrajectoryRole),
        autocompletion=complete_words(TrajectoryRole),
        help="Select main conversations, those of sub-agents, or calls beside the work.",
    ),
]


def make_trajectory_filters(
    storage: StorageSettings,
    filters: TaskFilters,
    choice: EnvironmentChoice,
    *,
    scaffold: list[str] | None = None,
    model: str | None = None,
    min_value: float | None = None,
    role: str | None = None,
    selected: bool | None = None,
) -> TrajectoryFilters:
    """Return the filters of a command's options.

    Raises:
        InputError: there is no such world.
        UsageError: there is no such role, or filters of tasks are to select scenarios.
    """
    if role is not None and role not in tuple(TrajectoryRole):
        raise UsageError(f"--role: {role} is unknown", advice=f"one of {', '.join(TrajectoryRole)}")
    subjects = select_subjects(storage, filters, choice)
    return TrajectoryFilters(
        scaffold=tuple(split_words(scaffold)),
        model=model,
        min_value=min_value,
        role=None if role is None else TrajectoryRole(role),
        selected=selected,
        environments=subjects.environments,
        tasks=subjects.ids,
    )


@app.command("list")
@with_settings(StorageSettings)
@with_filters
def list_all(
    *,
    scaffold: ScaffoldOption = None,
    model: ModelOption = None,
    min_value: MinValueOption = None,
    role: RoleOption = None,
    selected: Annotated[
        bool | None,
        typer.Option("--selected/--not-selected", show_default=False, help="Select by the newest selection."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Print at most N.")] = None,
    environment: EnvironmentOption = None,
    world: WorldOption = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """List trajectories by task, scaffold, model and attempt.

    Example: mergemill trajectories list --scaffold react --min-value 1 --selected
    """
    choice = parse_environment(environment, world)
    wanted = make_trajectory_filters(
        storage,
        filters,
        choice,
        scaffold=scaffold,
        model=model,
        min_value=min_value,
        role=role,
        selected=selected,
    )
    with Store.open(storage.db, create=False) as store:
        rows = list_trajectories(store, wanted, limit)
    if not as_json:
        rows = [row | {"id": row["id"][:SHOWN_DIGITS]} for row in rows]
    output.print_rows(rows, TABLE_COLUMNS, as_lines=as_json, nothing=NO_TRAJECTORIES)


@app.command("show")
@with_settings(StorageSettings)
def show(
    trajectory: IdArgument,
    as_json: JsonOption = False,
    *,
    storage: StorageSettings,
) -> None:
    """Show one trajectory: its facts, and the conversation; of a rollout's id, its main trajectory.

    Example: mergemill trajectories show 4f0c2b
    """
    from samplers.trajectories.showing import describe_trajectory, render_conversation  # noqa: PLC0415 - as below

    artifacts = open_artifacts(storage)
    with Store.open(storage.db, create=False) as store:
        record = resolve_trajectory(store, trajectory)
        rollout = store.get(Rollout, record.parent)
        environment = find_environment(store, rollout)
    details = describe_trajectory(record, rollout, artifacts, environment)
    if as_json:
        output.print_json(details)
        return
    output.print_fields((name, value) for name, value in details.items() if name not in ("conversations", "tools"))
    for conversation in details["conversations"]:
        output.print_text(render_conversation(conversation))


@app.command("select")
@with_settings(StorageSettings, SelectionSettings)
@with_filters
def select(
    *,
    scaffold: ScaffoldOption = None,
    model: ModelOption = None,
    per_task: Annotated[
        int | None, typer.Option("--per-task", min=1, metavar="N", help="Keep at most N rollouts of a task.")
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option("--mix", metavar="SCAFFOLD=SHARE[,...]", help="Keep the scaffolds in these shares."),
    ] = None,
    rubric: Annotated[
        Path | None,
        typer.Option(
            "--rubric",
            metavar="FILE",
            help="Let the model of MERGEMILL_LLM and MERGEMILL_MODEL check these items, one a line.",
        ),
    ] = None,
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    environment: EnvironmentOption = None,
    world: WorldOption = None,
    as_json: JsonOption = False,
    settings: Settings,
    filters: TaskFilters,
) -> None:
    """Select trajectories by rejection sampling, and print the effect of each rule.

    Example: mergemill trajectories select --select-tool-errors 0.2 --per-task 4 --mix react=0.5,codex=0.5
    """
    # Only this command selects trajectories.
    from mergemill.agents.trajectory_selection import run_selection  # noqa: PLC0415
    from samplers.selection.selecting import SelectionLimits  # noqa: PLC0415

    items, check_rubric = _open_rubric(rubric, settings) if rubric else ("", None)
    limits = SelectionLimits(per_task=per_task, mix=parse_mix(mix), rubric=items)
    choice = parse_environment(environment, world)
    wanted = make_trajectory_filters(settings.storage, filters, choice, scaffold=scaffold, model=model)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        summary = run_selection(
            store,
            settings.selection,
            settings.storage,
            wanted,
            limits,
            check_rubric=check_rubric,
            with_held_out=with_held_out,
        )
    if as_json:
        for count in summary.counts:
            output.print_json({"event": "rule", **asdict(count)})
        output.print_json(
            {
                "event": "summary",
                "trajectories": summary.trajectories,
                "selected": summary.selected,
                "held_out": summary.held_out,
            }
        )
        return
    if summary.held_out:
        output.print_note(describe_refused(summary.held_out, "trajectory"))
    rows = [asdict(count) for count in summary.counts]
    output.print_rows(rows, ("rule", "before", "after", "alone"), as_lines=False, nothing="")
    output.print_text(f"{summary.selected} of {format_count(summary.trajectories, 'main trajectory')} selected")


@app.command("export")
@with_settings(StorageSettings, "max_false_pass")
@with_filters
def export(
    *,
    format_name: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="messages, sharegpt, parquet (tokens with masks) or atif."),
    ],
    out: NewFolderOption,
    per_request: Annotated[
        bool,
        typer.Option(
            "--per-request/--merged", help="Write a row for each answer; by default for each conversation or tree."
        ),
    ] = False,
    hermes: Annotated[bool, typer.Option("--hermes", help="sharegpt: put calls of tools into the text.")] = False,
    system: Annotated[
        str,
        typer.Option(
            "--system",
            metavar="keep|drop|strip|FILE",
            help="Keep the system's texts of sampling, drop them, cut out the text that `sample --system` added, "
            "or replace them by the text of this file.",
        ),
    ] = "keep",
    scaffold: ScaffoldOption = None,
    model: ModelOption = None,
    min_value: MinValueOption = None,
    role: RoleOption = TrajectoryRole.MAIN.value,
    unselected: Annotated[
        bool, typer.Option("--unselected", help="Export trajectories that are not selected, too.")
    ] = False,
    with_simulated: Annotated[
        bool, typer.Option("--with-simulated", help="Export trajectories of simulated tasks among the others.")
    ] = False,
    simulator: Annotated[
        str | None,
        typer.Option(
            "--simulator",
            metavar="NAME",
            help="Model that graded those of simulated tasks; for parquet it must have been measured.",
        ),
    ] = None,
    with_held_out: Annotated[bool, typer.Option(WITH_OPTION, help=WITH_HELP)] = False,
    environment: EnvironmentOption = None,
    world: WorldOption = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
    measurement: MeasurementSettings,
    filters: TaskFilters,
) -> None:
    """Write trajectories as training data: by default the main ones that are selected and have a value.

    Example: mergemill trajectories export --format sharegpt --out sft --system drop
    """
    # Only this command writes training data.
    from mergemill.agents.trajectory_export import (  # noqa: PLC0415
        SimulatedRows,
        export_trajectories,
        make_options,
    )

    options = make_options(format_name, per_request=per_request, hermes=hermes, system=system)
    choice = parse_environment(environment, world)
    if with_simulated:
        choice = replace(choice, words=(*(choice.words or TRUSTED_ENVIRONMENTS), SIMULATED))
    wanted = make_trajectory_filters(
        storage,
        filters,
        choice,
        scaffold=scaffold,
        model=model,
        min_value=min_value,
        role=role,
        selected=None if unselected else True,
    )
    with Store.open(storage.db, create=False) as store:
        simulated = SimulatedRows(included=SIMULATED in (choice.words or ()), simulator=simulator)
        report = export_trajectories(
            store,
            storage,
            measurement,
            wanted,
            out=out,
            options=options,
            simulated=simulated,
            with_held_out=with_held_out,
        )
    for reason, number in report.left_out.items():
        output.print_note(f"{format_count(number, 'row')} left out: {reason}")
    lengths = {name: [asdict(bucket) for bucket in bins] for name, bins in report.lengths.items()}
    if as_json:
        output.print_json(
            {
                "format": options.format,
                "out": str(out),
                "rows": report.rows,
                "answers": report.answers,
                "trajectories": len(report.trajectories),
                "left_out": dict(report.left_out),
                "lengths": lengths,
                "manifest_sha256": report.manifest_sha256,
            }
        )
        return
    for name, bins in lengths.items():
        output.print_rows(
            [{name: f"{bucket['low']} to {bucket['high']}", "count": bucket["count"]} for bucket in bins],
            (name, "count"),
            as_lines=False,
            nothing="",
        )
    rows = f"{format_count(report.rows, 'row')} of {format_count(len(report.trajectories), 'trajectory')}"
    output.print_text(f"{rows} in {out} ({options.format}, manifest {report.manifest_sha256[:16]})")


@app.command("import")
@with_settings(*GRADING_SETTINGS)
def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", readable=False, help="Files of rollouts.")],
    format_name: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="auto, atif, swe-agent, mini-swe-agent, messages or predictions."
        ),
    ] = "auto",
    *,
    task: Annotated[
        str | None, typer.Option("--task", metavar="ID", help="Task of all files; by default each names its own.")
    ] = None,
    grades: Annotated[bool, typer.Option("--grade", help="Grade their submissions.")] = False,
    as_json: JsonOption = False,
    settings: Settings,
) -> None:
    """Import rollouts of other tools; what cannot be imported is named, and ends with exit code 3.

    Example: mergemill trajectories import jobs/*/agent/trajectory.json --grade
    """
    # Only this command imports rollouts.
    from mergemill.agents.trajectory_import import import_rollouts  # noqa: PLC0415
    from samplers.imports.formats import READERS  # noqa: PLC0415
    from samplers.imports.reading import AUTO  # noqa: PLC0415

    if format_name not in (AUTO, *READERS):
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join((AUTO, *READERS))}")
    counts = {"new": 0, "known": 0, "skipped": 0}
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        for rollout in import_rollouts(store, settings, files, format_name, task=task, grades=grades):
            counts["skipped" if rollout.rollout is None else "new" if rollout.is_new else "known"] += 1
            _print_imported(rollout, as_json=as_json)
    if as_json:
        output.print_json({"event": "summary", **counts})
    else:
        output.print_text(f"{counts['new']} imported, {counts['known']} known, {counts['skipped']} skipped")
    if counts["skipped"]:
        raise InputError(f"{format_count(counts['skipped'], 'rollout')} not imported")


app.command("compare")(compare_command)


def _print_imported(imported: ImportedRollout, *, as_json: bool) -> None:
    if imported.rollout is None:
        where = f"{imported.file}, line {imported.line}" if imported.line else imported.file
        output.print_message(f"{where}: {imported.problem}")
    if not as_json:
        return
    rollout = imported.rollout
    facts = ("id", "name", "scaffold", "model", "origin", "value")
    known = {name: getattr(rollout, name) if rollout else None for name in facts}
    output.print_json(
        {
            "event": "import",
            "file": imported.file,
            "line": imported.line,
            "format": imported.format,
            **known,
            "trajectories": imported.trajectories,
            "new": imported.is_new,
            "problem": imported.problem or None,
        }
    )


def _open_rubric(path: Path, settings: Settings) -> tuple[str, RubricJudge]:
    """Return the text of a rubric, and the judge with it.

    Raises:
        InputError: the file cannot be read or holds no item.
        UsageError: no model is set.
    """
    # Only a rubric needs a model.
    from mergemill.execution.services import make_model  # noqa: PLC0415
    from samplers.selection.rubric import RubricJudge, read_rubric  # noqa: PLC0415

    text = read_text(path, f"cannot read the rubric {path}")
    items = read_rubric(text)
    model = make_model(settings.llm, settings.host)
    if model is None:
        raise UsageError("--rubric needs a model", advice="set MERGEMILL_LLM and MERGEMILL_MODEL")
    return text, RubricJudge(items=items, model=model, settings=settings, artifacts=open_artifacts(settings.storage))


def parse_mix(text: str | None) -> dict[str, float]:
    """Return scaffold -> share of a mix.

    Raises:
        UsageError: it is not a mix.
    """
    mix: dict[str, float] = {}
    for word in split_words(text):
        name, _, share = word.partition("=")
        try:
            mix[name.strip()] = float(share)
        except ValueError:
            mix[name.strip()] = 0.0
        if not 0 < mix[name.strip()] < math.inf:
            raise UsageError(f"--mix: {word!r} is no share", advice="such as react=0.5,codex=0.5")
    return mix
