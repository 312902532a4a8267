"""Rollouts and trajectories of the database as conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import InputError
from mergemill.web.trajectories import RolloutConversation, make_conversation
from samplers.trajectories.showing import describe_trajectory
from taskdb.artifacts import Artifacts
from taskdb.queries.trajectories import find_environment, list_trajectories_of, resolve_rollout, resolve_trajectory
from taskdb.records.rollouts import Rollout, Trajectory
from taskdb.store import Store

FACTS = (
    "status",
    "reason",
    "scaffold",
    "scaffold_version",
    "model",
    "checkpoint",
    "attempt",
    "value",
    "origin",
    "detail",
)
"""Facts of a rollout that its page shows where they are not empty."""


@dataclass(frozen=True)
class StoredRollout:
    """A rollout with the conversation that is shown, and all its trajectories."""

    rollout: Rollout
    conversation: RolloutConversation
    trajectories: tuple[Trajectory, ...]
    shown: str | None
    """Id of the trajectory that is shown; None for a rollout without any."""


def find_stored_rollout(store: Store, artifacts: Artifacts, word: str) -> StoredRollout | None:
    """Return the rollout of an id of its own or of a trajectory, or of a beginning of an id; None for no such id.

    Raises:
        InputError: the content of the trajectory is missing or damaged.
    """
    try:
        trajectory = resolve_trajectory(store, word)
        rollout = store.get(Rollout, trajectory.parent)
    except InputError:
        try:
            rollout = resolve_rollout(store, word)
        except InputError:
            return None
        facts = _list_facts(rollout, find_environment(store, rollout))
        return StoredRollout(rollout, make_conversation(rollout.id, [], facts), (), None)
    environment = find_environment(store, rollout)
    details = describe_trajectory(trajectory, rollout, artifacts, environment)
    facts = _list_facts(rollout, environment) | {"role": trajectory.role, "branches": str(trajectory.n_branches)}
    longest = max(details["conversations"], key=len)
    trajectories = store.get_many(Trajectory, list_trajectories_of(store, rollout.id))
    others = tuple(sorted(trajectories.values(), key=lambda other: other.root))
    return StoredRollout(rollout, make_conversation(rollout.id, longest, facts), others, trajectory.id)


def _list_facts(rollout: Rollout, environment: str) -> dict[str, str]:
    facts: Mapping[str, Any] = {name: getattr(rollout, name) for name in FACTS}
    known = {name: str(value) for name, value in facts.items() if value not in (None, "")}
    leaks = {"leaks": ", ".join(leak.name for leak in rollout.leaks)} if rollout.leaks else {}
    return {"task": rollout.name, "environment": environment, **known, **leaks}
