"""Rejection sampling of the trajectories of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaluation.instructions.submission import extract_patch
from mergemill.bench.held_out import get_row_keys, split_held_out
from samplers.selection.selecting import (
    RuleCount,
    SelectionCandidate,
    SelectionLimits,
    hash_rules,
    select_trajectories,
)
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.queries.bench import find_held_out
from taskdb.queries.trajectories import TrajectoryFilters, list_trajectories
from taskdb.records import Task
from taskdb.records.rollouts import Rollout, Trajectory, TrajectoryRole, TrajectorySelection

if TYPE_CHECKING:
    from core.settings.agents import SelectionSettings
    from core.settings.storage import StorageSettings
    from samplers.selection.selecting import RubricCheck
    from taskdb.store import Store


@dataclass(frozen=True, kw_only=True)
class SelectionSummary:
    """Result of a selection."""

    trajectories: int
    """Main trajectories that were looked at."""
    held_out: int
    """Main trajectories that were not, since a frozen set holds out their tasks or scenarios."""
    selected: int
    counts: Sequence[RuleCount]


def run_selection(
    store: Store,
    selection: SelectionSettings,
    storage: StorageSettings,
    filters: TrajectoryFilters,
    limits: SelectionLimits,
    *,
    check_rubric: RubricCheck | None = None,
    with_held_out: bool = False,
) -> SelectionSummary:
    """Select among the trajectories of some filters, and store the result for each.

    Those of held-out tasks and scenarios are no candidates unless `with_held_out`.

    Raises:
        InputError: an artifact is missing, or the database is read-only.
    """
    rows, n_held_out = list_trajectories(store, filters), 0
    if not with_held_out:
        n_main = count_main(rows)
        rows, _ = split_held_out(rows, get_row_keys, find_held_out(store))
        n_held_out = n_main - count_main(rows)
    candidates = load_candidates(store, open_artifacts(storage), rows)
    outcome = select_trajectories(candidates, selection, limits, check_rubric)
    at, rules = store.clock(), hash_rules(selection, limits)
    records = []
    for candidate in candidates:
        trajectory = candidate.trajectory
        refusal = outcome.refusals[trajectory.id]
        records.append(
            TrajectorySelection(
                parent=trajectory.id,
                name=trajectory.name,
                selected=refusal is None,
                reason=refusal.rule if refusal else None,
                value=refusal.value if refusal else None,
                rules=rules,
                at=at,
            )
        )
    store.add(*records)
    return SelectionSummary(
        trajectories=outcome.counts[0].before,
        held_out=n_held_out,
        selected=outcome.counts[-1].after,
        counts=outcome.counts,
    )


def count_main(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of main trajectories among listed rows."""
    return sum(row["role"] == TrajectoryRole.MAIN.value for row in rows)


def load_candidates(store: Store, artifacts: Artifacts, rows: Sequence[Mapping[str, Any]]) -> list[SelectionCandidate]:
    """Return the trajectories of listed rows with their submissions and the kinds of their tasks."""
    trajectories = store.get_many(Trajectory, [row["id"] for row in rows])
    rollouts = store.get_many(Rollout, list({row["rollout"] for row in rows}))
    kinds = {key: task.kind for key, task in store.get_many(Task, list({row["task"] for row in rows})).items()}
    submissions = {
        key: b"" if rollout.submission is None else extract_patch(artifacts.get(rollout.submission))
        for key, rollout in rollouts.items()
    }
    return [
        SelectionCandidate(
            trajectory=trajectories[row["id"]],
            task=row["task"],
            kind=kinds.get(row["task"]),
            submission=submissions[row["rollout"]],
        )
        for row in rows
    ]
