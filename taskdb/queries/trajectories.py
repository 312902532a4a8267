"""Queries over rollouts, trajectories and pass rates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Boolean, ColumnElement, Float, Integer, Select, String, column, or_, select, table

from core.errors import InputError
from taskdb.records.difficulty import Difficulty, compute_difficulty, make_difficulty_key
from taskdb.records.rollouts import Rollout, Trajectory, TrajectoryRole
from taskdb.schema.batches import KeyedQuery
from taskdb.schema.word_lists import match_words
from taskdb.store import Store

LIST_KEYS = (
    "id",
    "rollout",
    "task",
    "name",
    "environment",
    "scaffold",
    "model",
    "checkpoint",
    "attempt",
    "root",
    "role",
    "value",
    "n_requests",
    "n_branches",
    "prompt_tokens",
    "completion_tokens",
    "has_token_ids",
    "selected",
    "refused_by",
    "environment",
)
"""Keys of a listed trajectory."""
ID_DIGITS = 64
SYNTHETIC = "synthetic"
"""Environment of the rollouts of scenarios."""
ENVIRONMENTS = ("verified", "simulated", "none", SYNTHETIC)
"""Environments of rollouts."""
TRUSTED_ENVIRONMENTS = ("verified", "none")
"""Those that are selected unless others are named: the event that happened in them happened."""

_TRAJECTORIES = table(
    "trajectories",
    *(column(name, String()) for name in ("id", "rollout", "task", "name", "environment", "role", "scaffold", "model")),
    column("checkpoint", String()),
    *(column(name, Integer()) for name in ("attempt", "root", "n_requests", "n_branches")),
    *(column(name, Integer()) for name in ("prompt_tokens", "completion_tokens")),
    column("value", Float()),
    column("has_token_ids", Boolean()),
    column("selected", Boolean()),
    column("refused_by", String()),
    column("environment", String()),
)
_ROLLOUTS = table(
    "rollouts",
    *(column(name, String()) for name in ("id", "task", "name", "scaffold", "model", "checkpoint", "status", "at")),
    column("environment", String()),
    column("attempt", Integer()),
    column("value", Float()),
)
_DIFFICULTY = table(
    "difficulty",
    *(column(name, String()) for name in ("task", "name", "environment", "model", "checkpoint", "scaffold")),
    column("n", Integer()),
    column("c", Integer()),
    column("mean_value", Float()),
)


@dataclass(frozen=True, kw_only=True)
class TrajectoryFilters:
    """Conditions on trajectories; None and empty values select all."""

    scaffold: Sequence[str] = ()
    model: str | None = None
    min_value: float | None = None
    role: TrajectoryRole | None = None
    selected: bool | None = None
    """True: selected; False: refused, or not selected yet."""
    environments: Sequence[str] | None = None
    """Some of ENVIRONMENTS."""
    tasks: Collection[str] | None = None
    """Ids of tasks and scenarios."""

    def includes(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row is among the tasks."""
        return self.tasks is None or row["task"] in self.tasks


@dataclass(frozen=True, kw_only=True)
class TaskPassRate:
    """Pass rate of a model and scaffold at a task or scenario. `mean_value`: average reward, 0..1."""

    task: str
    name: str
    environment: str
    model: str
    checkpoint: str
    scaffold: str
    difficulty: Difficulty
    mean_value: float


def list_trajectories(store: Store, filters: TrajectoryFilters, limit: int | None = None) -> list[dict[str, Any]]:
    """Return trajectories under LIST_KEYS, by task, scaffold, model, attempt and root."""
    view = _TRAJECTORIES.c
    query = select(*(view[name] for name in LIST_KEYS)).where(*_build_conditions(filters))
    order = ("name", "scaffold", "model", "checkpoint", "attempt", "root", "id")
    query = query.order_by(*(view[name] for name in order))
    with store.read_transaction() as connection:
        rows = (dict(row) for row in connection.execute(query).mappings())
        return list(islice((row for row in rows if filters.includes(row)), limit))


def _build_conditions(filters: TrajectoryFilters) -> list[ColumnElement[bool]]:
    view = _TRAJECTORIES.c
    conditions: list[ColumnElement[bool]] = []
    if filters.scaffold:
        conditions.append(match_words(view.scaffold, filters.scaffold))
    if filters.model is not None:
        conditions.append(view.model == filters.model)
    if filters.min_value is not None:
        conditions.append(view.value >= filters.min_value)
    if filters.role is not None:
        conditions.append(view.role == filters.role.value)
    if filters.environments is not None:
        conditions.append(match_words(view.environment, filters.environments))
    if filters.selected is not None:
        is_selected = view.selected.is_(True)
        conditions.append(is_selected if filters.selected else or_(view.selected.is_(None), ~view.selected))
    return conditions


def resolve_trajectory(store: Store, word: str) -> Trajectory:
    """Return the trajectory of an id or an unambiguous beginning; of a rollout's, its first main trajectory.

    Raises:
        InputError: none or several match.
    """
    ids = _find_ids(store, select(_TRAJECTORIES.c.id, _TRAJECTORIES.c.name), _TRAJECTORIES.c.id, word)
    if not ids:
        main = select(_TRAJECTORIES.c.id, _TRAJECTORIES.c.name, _TRAJECTORIES.c.rollout)
        main = main.order_by(_TRAJECTORIES.c.role != TrajectoryRole.MAIN.value, _TRAJECTORIES.c.root)
        of_rollouts = _find_ids(store, main, _TRAJECTORIES.c.rollout, word)
        if len({row["rollout"] for row in of_rollouts}) == 1:
            ids = of_rollouts[:1]
    return store.get(Trajectory, _require_one(ids, word, "trajectory or rollout"))


def resolve_rollout(store: Store, word: str) -> Rollout:
    """Return the rollout of an id or an unambiguous beginning.

    Raises:
        InputError: none or several match.
    """
    ids = _find_ids(store, select(_ROLLOUTS.c.id, _ROLLOUTS.c.name), _ROLLOUTS.c.id, word)
    return store.get(Rollout, _require_one(ids, word, "rollout"))


def _find_ids(store: Store, query: Select[Any], key: ColumnElement[str], word: str) -> list[dict[str, Any]]:
    if len(word) > ID_DIGITS or not word or set(word) - set("0123456789abcdef"):
        return []
    with store.read_transaction() as connection:
        # `g` follows the hex digits, so the range holds every id with this beginning and can use the index.
        bounded = query.where(key >= word, key < f"{word}g")
        return [dict(row) for row in connection.execute(bounded).mappings()]


def _require_one(rows: Sequence[Mapping[str, Any]], word: str, what: str) -> str:
    if not rows:
        raise InputError(f"there is no {what} {word}", advice="`mergemill trajectories list` lists them")
    if len(rows) > 1:
        matches = ", ".join(f"{row['id'][:16]} ({row['name']})" for row in rows[:5])
        raise InputError(f"{word} is ambiguous, {len(rows)} match: {matches}")
    return str(rows[0]["id"])


def list_rollouts(store: Store, task: str) -> list[dict[str, Any]]:
    """Return the rollouts of a task (id) in the order of their attempts."""
    view = _ROLLOUTS.c
    query = select(*view).where(view.task == task).order_by(view.scaffold, view.model, view.attempt, view.at, view.id)
    with store.read_transaction() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


class Agent(NamedTuple):
    """Model and scaffold of rollouts; a scaffold such as `oracle` has no model."""

    model: str
    checkpoint: str
    scaffold: str

    @property
    def name(self) -> str:
        """Its key in the column `difficulty` of tasks; of a scaffold without a model, its name alone."""
        return make_difficulty_key(*self) if self.model else self.scaffold


def resolve_agent(store: Store, word: str) -> Agent:
    """Return the agent with rollouts that a word names: `MODEL/SCAFFOLD`, `MODEL@CHECKPOINT/SCAFFOLD`, or a part of it.

    Raises:
        InputError: none or several match.
    """
    view = _ROLLOUTS.c
    query = select(view.model, view.checkpoint, view.scaffold).distinct()
    with store.read_transaction() as connection:
        agents = sorted(Agent(*row) for row in connection.execute(query))
    for names in (
        [agent for agent in agents if agent.name == word],
        [agent for agent in agents if word in (agent.name.rpartition("/")[0], agent.model, agent.scaffold)],
    ):
        if len(names) == 1:
            return names[0]
        if names:
            listed = ", ".join(agent.name for agent in names[:5])
            raise InputError(f"{word} is ambiguous, {len(names)} match: {listed}", advice="name model and scaffold")
    known = ", ".join(agent.name for agent in agents[:5]) or "none"
    raise InputError(f"there is no rollout of {word} (rollouts: {known})", advice="such as MODEL/SCAFFOLD")


def load_rollouts_of(
    store: Store, agent: Agent, *, environments: Sequence[str] | None, tasks: Collection[str] | None
) -> list[Rollout]:
    """Return the rollouts of an agent, oldest first; arguments as of `list_pass_rates`."""
    view = _ROLLOUTS.c
    query = select(view.id, view.task).where(
        view.model == agent.model, view.checkpoint == agent.checkpoint, view.scaffold == agent.scaffold
    )
    if environments is not None:
        query = query.where(match_words(view.environment, environments))
    with store.read_transaction() as connection:
        ids = [row.id for row in connection.execute(query) if tasks is None or row.task in tasks]
    rollouts = store.get_many(Rollout, ids)
    return sorted(rollouts.values(), key=lambda rollout: (rollout.at, rollout.retry, rollout.id))


def find_environment(store: Store, rollout: Rollout) -> str:
    """Return the environment of a rollout, one of ENVIRONMENTS."""
    query = select(_ROLLOUTS.c.environment).where(_ROLLOUTS.c.id == rollout.id)
    with store.read_transaction() as connection:
        return str(connection.execute(query).scalar_one())


def list_trajectories_of(store: Store, rollout: str) -> list[str]:
    """Return the ids of a rollout's trajectories in the order of their roots."""
    query = select(_TRAJECTORIES.c.id).where(_TRAJECTORIES.c.rollout == rollout).order_by(_TRAJECTORIES.c.root)
    with store.read_transaction() as connection:
        return [str(row.id) for row in connection.execute(query)]


def load_main_metrics(store: Store, rollouts: Sequence[str]) -> dict[str, list[Mapping[str, float]]]:
    """Return rollout (id) -> measures of its main trajectories, by root, for those of some rollouts that have any."""
    with store.read_transaction() as connection:
        keys = [str(key) for (key,) in _MAIN_OF_ROLLOUTS.fetch(connection, rollouts)]
    metrics: dict[str, list[Mapping[str, float]]] = {}
    for trajectory in sorted(store.get_many(Trajectory, keys).values(), key=lambda trajectory: trajectory.root):
        metrics.setdefault(trajectory.parent, []).append(trajectory.metrics)
    return metrics


_MAIN_OF_ROLLOUTS = KeyedQuery("SELECT id FROM trajectory WHERE role = 'main' AND parent IN :keys")


def list_pass_rates(
    store: Store,
    *,
    scaffold: Sequence[str] = (),
    model: str | None = None,
    environments: Sequence[str] | None = None,
    tasks: Collection[str] | None = None,
) -> list[TaskPassRate]:
    """Return the pass rates of tasks and scenarios, by name, model and scaffold.

    Rollouts without a value do not count.

    Args:
        store: the database.
        scaffold: names of scaffolds; empty for all.
        model: name of the model; None for all.
        environments: some of ENVIRONMENTS; None for all.
        tasks: ids of tasks and scenarios; None for all.
    """
    view = _DIFFICULTY.c
    query = select(*view).order_by(view.name, view.model, view.checkpoint, view.scaffold)
    if scaffold:
        query = query.where(match_words(view.scaffold, scaffold))
    if model is not None:
        query = query.where(view.model == model)
    if environments is not None:
        query = query.where(match_words(view.environment, environments))
    with store.read_transaction() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return [_make_rate(row) for row in rows if tasks is None or row["task"] in tasks]


def _make_rate(row: Mapping[str, Any]) -> TaskPassRate:
    names = ("task", "name", "environment", "model", "checkpoint", "scaffold", "mean_value")
    return TaskPassRate(**{name: row[name] for name in names}, difficulty=compute_difficulty(row["n"], row["c"]))
