"""Rows that an export of trajectories holds and the rows that it leaves out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from samplers.exports.facts import ExportedTrajectory
from samplers.exports.lengths import LengthBin, count_lengths


@dataclass(kw_only=True)
class TrainingReport:
    """Rows that an export holds and the rows that it leaves out."""

    rows: int = 0
    answers: int = 0
    """Answers that are trained."""
    trajectories: list[dict[str, Any]] = field(default_factory=list)
    """Environment -> trajectories, as the next three."""
    licenses: Counter[str] = field(default_factory=Counter)
    scaffolds: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    environments: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> rows, or trajectories where it holds for all of a trajectory."""
    notes: dict[str, int] = field(default_factory=dict)
    """Warning -> trajectories that it is about."""
    tokens: list[int] = field(default_factory=list)
    """Length of each row, as the upstream counted it."""
    requests: list[int] = field(default_factory=list)
    """Requests of each trajectory."""
    manifest_sha256: str = ""

    @property
    def lengths(self) -> dict[str, list[LengthBin]]:
        """Histograms of the lengths of rows in tokens, and of trajectories in requests."""
        return {"tokens": count_lengths(self.tokens), "requests": count_lengths(self.requests)}

    def add_row(self, n_tokens: int, n_answers: int) -> None:
        """Count a row."""
        self.rows += 1
        self.answers += n_answers
        self.tokens.append(n_tokens)

    def add_trajectory(self, item: ExportedTrajectory) -> None:
        """Count a trajectory of which a row is written."""
        self.trajectories.append(
            {
                "id": item.trajectory.id,
                "rollout": item.rollout.id,
                "task": item.subject.id,
                "instance_id": item.subject.name,
                "environment": item.subject.environment,
                "license": item.subject.license,
                "content": item.trajectory.content,
            }
        )
        self.environments[item.subject.environment] += 1
        self.licenses[item.subject.license or "unknown"] += 1
        self.scaffolds[item.rollout.scaffold] += 1
        self.models[item.rollout.model] += 1
        self.requests.append(item.trajectory.n_requests)
