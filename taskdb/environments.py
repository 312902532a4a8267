"""Environments that tasks are derived from: how many each has given, and for how many it was searched in vain.

A search that gave fewer tasks than wanted is remembered as a rejection of the environment under the name of the task
that it did not give: `ada__greet-3.injected-20` where twenty were wanted in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, text

from taskdb.pending import find_states, select_open_changes
from taskdb.records import Kind, Stage
from taskdb.records.work import Scope
from taskdb.schema.batches import split_batches

_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class EnvironmentState:
    """Number of tasks of a kind that an environment has given, and its newest search that gave fewer."""

    change: int
    """Its change (`seq`)."""
    environment: str
    """Its id."""
    name: str
    """Name of the change."""
    repo: str
    n_tasks: int
    """Tasks of the kind, certified or not."""
    n_searched: int
    """Greatest number of tasks for which it was searched and gave fewer; 0 where it gave all that were wanted."""
    reason: str | None
    """Reason of the newest search that gave fewer, with its detail."""
    detail: str | None


def find_environments(connection: Connection, scope: Scope, kind: Kind) -> Iterator[EnvironmentState]:
    """Yield the environments of a scope, newest change first, whatever was decided on their changes.

    The limit of the scope counts all candidates of a source, as everywhere.
    """
    states = find_states(connection, lambda state: Stage.BUILD in state.passed)
    yield from load_environment_states(connection, select_open_changes(connection, scope, states), kind)


def load_environment_states(connection: Connection, changes: list[int], kind: Kind) -> Iterator[EnvironmentState]:
    """Yield the states of the environments of some changes (`seq`) that have one, in the same order."""
    query = _STATES.bindparams(kind=kind.value)
    for keys in split_batches(changes, _AT_ONCE):
        rows = {row.change: row for row in connection.execute(query, {"keys": keys})}
        for row in (rows[key] for key in keys if key in rows):
            yield EnvironmentState(**row._mapping)


def list_tasks_of_kind(connection: Connection, change: int, kind: Kind) -> list[tuple[str, bool]]:
    """Return the tasks (ids) of a kind that a change or its environment has given, each with whether it is open.

    An open task is neither certified nor rejected.
    """
    rows = connection.execute(_TASKS, {"key": change, "kind": kind.value}).all()
    # By number: in the order of names the tenth task precedes the second.
    ordered = sorted(rows, key=lambda row: (len(row.task_name), row.task_name))
    return [(row.task, row.status == "derived") for row in ordered]


def count_tasks_by_repository(connection: Connection, kind: Kind) -> dict[str, int]:
    """Return repository -> number of its tasks of a kind, certified or not."""
    return {row.repo: row.n for row in connection.execute(_BY_REPOSITORY, {"kind": kind.value})}


def count_tasks_by_environment(connection: Connection, kind: Kind, repo: str) -> dict[str, int]:
    """Return id of an environment of a repository -> number of tasks of a kind that its change has given."""
    return {row.environment: row.n for row in connection.execute(_BY_ENVIRONMENT, {"kind": kind.value, "repo": repo})}


# `d.kind || ''`: by its own index, a kind would be looked for among all tasks.
_IS_TASK = "d.kind || '' = :kind AND d.task IS NOT NULL AND d.status <> 'imported'"
# The name of a rejection ends with the number of tasks that were wanted; that of a change's own ends without.
_STATES = text(f"""
    SELECT h.change, h.environment, h.name, h.repo,
           (SELECT count(*) FROM derivation_listing d WHERE d.change = h.change AND {_IS_TASK}) AS n_tasks,
           coalesce((SELECT max(CASE WHEN substr(r.name, 1, length(h.name || '.' || r.kind || '-'))
                                          = h.name || '.' || r.kind || '-'
                                     THEN CAST(substr(r.name, length(h.name || '.' || r.kind || '-') + 1) AS INTEGER)
                                     ELSE 0 END)
                     FROM rejection r WHERE r.parent = h.environment AND r.kind = :kind), 0) AS n_searched,
           s.reason, s.detail
    FROM change_listing h
    LEFT JOIN rejection s ON s.seq = (SELECT max(r.seq) FROM rejection r
                                      WHERE r.parent = h.environment AND r.kind = :kind AND r.name <> h.name)
    WHERE h.change IN :keys AND h.environment IS NOT NULL""").bindparams(  # noqa: S608 - a constant condition
    bindparam("keys", expanding=True)
)
_TASKS = text(f"SELECT d.task, d.task_name, d.status FROM derivation_listing d WHERE d.change = :key AND {_IS_TASK}")  # noqa: S608
_BY_REPOSITORY = text(f"SELECT d.repo, count(*) AS n FROM derivation_listing d WHERE {_IS_TASK} GROUP BY d.repo")  # noqa: S608
_BY_ENVIRONMENT = text(f"""
    SELECT h.environment, count(*) AS n FROM change_listing h JOIN derivation_listing d ON d.change = h.change
    WHERE h.repo = :repo AND {_IS_TASK} AND h.environment IS NOT NULL GROUP BY h.environment""")  # noqa: S608
