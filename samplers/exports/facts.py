"""Origin of a row: task, repository and licence, rollout, scaffold, model and reward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from samplers.trajectories.content import TrajectoryContent, read_content
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.instructions import BoundConstraint, InstructionOracle
from taskdb.records.rollouts import Rollout, Trajectory
from taskdb.records.worlds import Scenario, World

SCENARIO_KIND = "scenario"
"""Kind of a scenario, as tasks have kinds."""


@dataclass(frozen=True, kw_only=True)
class RolloutSubject:
    """Subject that was worked on.

    A task, or a scenario, whose `repo` is the name of its world and which has no `language`.
    """

    id: str
    name: str
    environment: str
    """`verified`, `simulated` or `none` for a task, `synthetic` for a scenario."""
    kind: str
    repo: str
    license: str
    language: str
    source: str
    base_commit: str
    constraints: tuple[BoundConstraint, ...] = ()
    """Instructions of an instruction task."""

    @classmethod
    def from_task(cls, task: Task) -> RolloutSubject:
        """Return the facts of a task."""
        names = ("id", "name", "environment", "repo", "license", "language", "source", "base_commit")
        constraints = task.oracle.constraints if isinstance(task.oracle, InstructionOracle) else ()
        return cls(kind=task.kind.value, constraints=constraints, **{name: getattr(task, name) for name in names})

    @classmethod
    def from_scenario(cls, scenario: Scenario, world: World) -> RolloutSubject:
        """Return the facts of a scenario of a world."""
        return cls(
            id=scenario.id,
            name=scenario.name,
            environment=scenario.environment,
            kind=SCENARIO_KIND,
            repo=scenario.world,
            license=scenario.license,
            language="",
            source=world.source,
            base_commit="",
        )


@dataclass(frozen=True, kw_only=True)
class ExportedTrajectory:
    """A trajectory with its content, rollout and subject."""

    trajectory: Trajectory
    rollout: Rollout
    subject: RolloutSubject
    content: TrajectoryContent
    added_system: str = ""
    """Text that was added to the agent's system prompt; empty for none."""

    @classmethod
    def load(
        cls, trajectory: Trajectory, rollout: Rollout, subject: RolloutSubject, artifacts: Artifacts
    ) -> ExportedTrajectory:
        """Read the content of a trajectory.

        Raises:
            InputError: it is missing or damaged.
        """
        content = read_content(artifacts.get(trajectory.content))
        added = artifacts.get_text(rollout.added_system) if rollout.added_system else ""
        return cls(trajectory=trajectory, rollout=rollout, subject=subject, content=content, added_system=added)


def build_identity(item: ExportedTrajectory) -> dict[str, Any]:
    """Return the columns that every row begins with."""
    return {
        "instance_id": item.subject.name,
        "environment": item.subject.environment,
        "repo": item.subject.repo,
        "license": item.subject.license,
        "language": item.subject.language,
        "trajectory_id": item.trajectory.id,
    }


def build_metadata(item: ExportedTrajectory, exchanges: Iterator[int] | list[int]) -> dict[str, Any]:
    """Return the provenance of a row; `exchanges`: those whose answers it trains. All keys are always there."""
    rollout, trajectory, task = item.rollout, item.trajectory, item.subject
    return {
        "task": task.id,
        "kind": task.kind,
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
        "constraints": describe_constraints(item),
    }


def describe_constraints(item: ExportedTrajectory) -> list[dict[str, Any]]:
    """Return the instructions of a trajectory's task with the verdicts on its rollout; empty for other tasks.

    `verdict` is null where the rollout was not graded, or its submission is empty.
    """
    verdicts = item.rollout.score.verdicts if item.rollout.score else {}
    return [
        {
            "name": constraint.name,
            "source": constraint.source.value,
            "turn": constraint.turn,
            "text": constraint.text,
            "verdict": verdicts.get(constraint.name),
        }
        for constraint in item.subject.constraints
    ]
