"""Origin of a row: task, repository and licence, rollout, scaffold, model and reward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from samplers.trajectories.content import TrajectoryContent, read_content
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.rollouts import Rollout, Trajectory


@dataclass(frozen=True, kw_only=True)
class ExportedTrajectory:
    """A trajectory with its content, rollout and task."""

    trajectory: Trajectory
    rollout: Rollout
    task: Task
    content: TrajectoryContent

    @classmethod
    def load(cls, trajectory: Trajectory, rollout: Rollout, task: Task, artifacts: Artifacts) -> ExportedTrajectory:
        """Read the content of a trajectory.

        Raises:
            InputError: it is missing or damaged.
        """
        content = read_content(artifacts.get(trajectory.content))
        return cls(trajectory=trajectory, rollout=rollout, task=task, content=content)


def build_identity(item: ExportedTrajectory) -> dict[str, Any]:
    """Return the columns that every row begins with."""
    return {
        "instance_id": item.task.name,
        "repo": item.task.repo,
        "license": item.task.license,
        "language": item.task.language,
        "trajectory_id": item.trajectory.id,
    }


def build_metadata(item: ExportedTrajectory, exchanges: Iterator[int] | list[int]) -> dict[str, Any]:
    """Return the provenance of a row; `exchanges`: those whose answers it trains. All keys are always there."""
    rollout, trajectory, task = item.rollout, item.trajectory, item.task
    return {
        "task": task.id,
        "kind": task.kind.value,
        "environment": task.environment,
        "source": task.source,
        "base_commit": task.base_commit,
        "rollout": rollout.id,
        "origin": rollout.origin,
        "scaffold": rollout.scaffold,
        "scaffold_version": rollout.scaffold_version,
        "model": rollout.model,
        "checkpoint": rollout.checkpoint,
        "attempt": rollout.attempt,
        "role": trajectory.role.value,
        "value": trajectory.value,
        "exchanges": list(exchanges),
    }
