"""Training data of the trajectories of a database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError, UsageError
from core.files import read_text
from mergemill.bench.held_out import MARK, REFUSED, get_row_keys, split_held_out
from samplers.exports.facts import ExportedTrajectory, RolloutSubject
from samplers.exports.options import DROP, KEEP, STRIP, TrainingFormat, TrainingOptions
from samplers.exports.writer import write_training_data
from samplers.rollouts.environment import SIMULATED
from taskdb.artifacts import open_artifacts
from taskdb.queries.bench import find_held_out
from taskdb.queries.trajectories import (
    SYNTHETIC,
    TRUSTED_ENVIRONMENTS,
    TrajectoryFilters,
    list_trajectories,
)
from taskdb.records import Task
from taskdb.records.rollouts import Rollout, Trajectory
from taskdb.records.worlds import Scenario, World

if TYPE_CHECKING:
    from core.settings.simulation import MeasurementSettings
    from core.settings.storage import StorageSettings
    from samplers.exports.report import TrainingReport
    from taskdb.store import Store


SIMULATED_LEFT_OUT = "their tasks are simulated"


@dataclass(frozen=True, kw_only=True)
class SimulatedRows:
    """Whether an export has trajectories of simulated tasks among others, and the simulator that graded them."""

    included: bool = False
    simulator: str | None = None


def make_options(format_name: str, *, per_request: bool, hermes: bool, system: str) -> TrainingOptions:
    """Return the options of a command; `system`: `keep`, `drop`, `strip` or a file with a text.

    Raises:
        InputError: the file cannot be read.
        UsageError: the format is unknown, or options exclude each other.
    """
    if format_name not in tuple(TrainingFormat):
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join(TrainingFormat)}")
    text = None
    if system not in (KEEP, DROP, STRIP):
        text = read_text(Path(system), f"--system: cannot read {system}", advice="keep, drop, strip or a file").strip()
    options = TrainingOptions(
        format=TrainingFormat(format_name),
        per_request=per_request,
        hermes=hermes,
        system=system if text is None else "replace",
        system_text=text,
    )
    options.check()
    return options


def export_trajectories(
    store: Store,
    storage: StorageSettings,
    measurement: MeasurementSettings,
    filters: TrajectoryFilters,
    *,
    out: Path,
    options: TrainingOptions,
    simulated: SimulatedRows,
    with_held_out: bool = False,
) -> TrainingReport:
    """Write the trajectories of some filters that have a value to a folder.

    `simulated`: whether those of simulated tasks are written, too, and whose rewards they have. With `with_held_out`
    those of held-out tasks and scenarios are, and are marked.

    Raises:
        InputError: there is none, the folder has files, an artifact is missing, or the rewards of simulated rollouts
            must not be trained on.
        UsageError: simulated rollouts are for reinforcement learning, and their simulator is not named.
        Transient: the disk is full.
    """
    if filters.environments == TRUSTED_ENVIRONMENTS and not simulated.included:
        filters = replace(filters, environments=(*TRUSTED_ENVIRONMENTS, SIMULATED))  # to count what is left out
    rows = [row for row in list_trajectories(store, filters) if row["value"] is not None]
    n_simulated = sum(row["environment"] == SIMULATED for row in rows)
    left_out = {}
    kept, n_held_out = split_held_out(rows, get_row_keys, find_held_out(store))
    if n_held_out and not with_held_out:
        rows, left_out[REFUSED] = kept, n_held_out
    if n_simulated and not simulated.included:
        left_out[f"{SIMULATED_LEFT_OUT}; --with-simulated exports them, too"] = n_simulated
        rows = [row for row in rows if row["environment"] != SIMULATED]
    if not rows:
        advice = "`mergemill trajectories select` selects them; --unselected exports others, too"
        if REFUSED in left_out:
            advice = f"{n_held_out} are held out: --with-held-out exports them, too"
        elif left_out:
            advice = f"{n_simulated} are of simulated tasks: --with-simulated exports them"
        raise InputError("no trajectory matches", advice=advice)
    if n_simulated and simulated.included and options.format is TrainingFormat.PARQUET:
        _check_simulator(store, measurement, simulated)
    notes = {MARK: n_held_out} if with_held_out and n_held_out else {}
    return write_training_data(_load(store, storage, [row["id"] for row in rows]), out, options, left_out, notes)


def _check_simulator(store: Store, measurement: MeasurementSettings, simulated: SimulatedRows) -> None:
    """Check that rewards of simulated rows may be trained on: parquet has them with the tokens."""
    from mergemill.simulation.measurement import require_measured_simulator  # noqa: PLC0415 - few exports need it

    if not simulated.simulator:
        raise UsageError(
            "--format parquet has rewards for reinforcement learning, and some are a simulator's",
            advice="name it with --simulator, or leave out --with-simulated",
        )
    require_measured_simulator(store, simulated.simulator, measurement.max_false_pass)


def _load(store: Store, storage: StorageSettings, keys: list[str]) -> Iterator[ExportedTrajectory]:
    artifacts = open_artifacts(storage)
    for key in keys:
        trajectory = store.get(Trajectory, key)
        rollout = store.get(Rollout, trajectory.parent)
        yield ExportedTrajectory.load(trajectory, rollout, _load_subject(store, rollout), artifacts)


def _load_subject(store: Store, rollout: Rollout) -> RolloutSubject:
    if rollout.environment != SYNTHETIC:
        return RolloutSubject.from_task(store.get(Task, rollout.parent))
    scenario = store.get(Scenario, rollout.parent)
    return RolloutSubject.from_scenario(scenario, store.get(World, scenario.parent))
