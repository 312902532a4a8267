"""Training data of the trajectories of a database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError, UsageError
from core.files import read_input
from samplers.exports.facts import ExportedTrajectory
from samplers.exports.options import DROP, KEEP, TrainingFormat, TrainingOptions
from samplers.exports.writer import write_training_data
from samplers.rollouts.environment import SIMULATED
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.rollouts import Rollout, Trajectory
from taskdb.trajectory_queries import TrajectoryFilters, list_trajectories

if TYPE_CHECKING:
    from core.config import Settings
    from samplers.exports.report import TrainingReport
    from taskdb.store import Store


LEFT_OUT = "trajectories of simulated tasks, which --with-simulated exports"


def make_options(format_name: str, *, per_request: bool, hermes: bool, system: str) -> TrainingOptions:
    """Return the options of a command; `system`: `keep`, `drop` or a file with a text.

    Raises:
        InputError: the file cannot be read.
        UsageError: the format is unknown, or options exclude each other.
    """
    if format_name not in tuple(TrainingFormat):
        raise UsageError(f"--format: {format_name} is unknown", advice=f"one of {', '.join(TrainingFormat)}")
    text = None if system in (KEEP, DROP) else _read_text(Path(system))
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
    settings: Settings,
    filters: TrajectoryFilters,
    out: Path,
    options: TrainingOptions,
    *,
    with_simulated: bool = False,
) -> TrainingReport:
    """Write the trajectories of some filters that have a value to a folder.

    `with_simulated`: those of simulated tasks, too.

    Raises:
        InputError: there is none, the folder has files, or an artifact is missing.
        Transient: the disk is full.
    """
    rows = [row for row in list_trajectories(store, filters) if row["value"] is not None]
    if not rows:
        advice = "`mergemill trajectories select` selects them; --unselected exports others, too"
        raise InputError("no trajectory matches", advice=advice)
    real = rows if with_simulated else [row for row in rows if row["environment"] != SIMULATED]
    if not real:
        raise InputError("all trajectories are of simulated tasks", advice="--with-simulated exports them")
    report = write_training_data(_load(store, settings, [row["id"] for row in real]), out, options)
    if len(real) < len(rows):
        report.left_out[LEFT_OUT] = len(rows) - len(real)
    return report


def _load(store: Store, settings: Settings, keys: list[str]) -> Iterator[ExportedTrajectory]:
    artifacts = Artifacts(settings.artifact_dir)
    for key in keys:
        trajectory = store.get(Trajectory, key)
        rollout = store.get(Rollout, trajectory.parent)
        yield ExportedTrajectory.load(trajectory, rollout, store.get(Task, rollout.parent), artifacts)


def _read_text(path: Path) -> str:
    try:
        return read_input(path).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"--system: cannot read {path}: {reason}", advice="keep, drop or a file") from error
