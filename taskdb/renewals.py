"""Renewals: verified changes with tasks whose bound rests on copies of tests, which are to be verified again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection, and_, bindparam, text

from taskdb.pending import find_open_states, select_open_changes
from taskdb.records import Kind
from taskdb.records.kinds import Prerequisites, Requirement
from taskdb.records.work import NOT_RENEWED, Scope
from taskdb.schema.batches import execute_in_batches

_RESTS_ON_COPIES = "change_listing.change IN (SELECT change FROM task_listing WHERE rests_on_copies = 1)"
# A renewal that failed is made again on request only, as it would cost the same runs each time.
_NOT_TRIED = """NOT EXISTS (
    SELECT 1 FROM event x
    WHERE x.seq = (SELECT max(y.seq) FROM event y
                   WHERE y.parent = change_listing.environment AND y.stage = 'verify')
      AND x.reason = :reason)"""


def select_changes(connection: Connection, scope: Scope) -> list[int]:
    """Return the changes (`seq`) of a scope to verify again, newest first; its limit counts these alone.

    `scope.only` may also have names and ids of their tasks. Changes whose last renewal failed are among them where
    `scope.retry` has its reason.
    """
    conditions = [text(_RESTS_ON_COPIES)]
    if NOT_RENEWED not in scope.retry:
        conditions.append(text(_NOT_TRIED).bindparams(reason=NOT_RENEWED))
    if scope.only:
        rows = execute_in_batches(connection, _CHANGES_OF_TASKS, scope.only)
        scope = replace(scope, only=[*scope.only, *(row.change_name for row in rows)])
    states = find_open_states(connection, scope, lambda _: True)
    return select_open_changes(connection, scope, states, and_(*conditions))


def is_renewable(connection: Connection, change: int) -> bool:
    """Return whether any task of a change rests on copies of tests."""
    return connection.execute(_IS_RENEWABLE, {"key": change}).first() is not None


def load_kinds(
    connection: Connection, change: int, kinds: Mapping[Kind, Prerequisites]
) -> tuple[tuple[Kind, ...], dict[str, Kind]]:
    """Return the kinds that follow from the verification of a change, and its certified tasks: name -> kind.

    Kinds that the change does not give are among them, so that its state is as before.

    Args:
        connection: the database.
        change: the change (`seq`).
        kinds: kinds of tasks, in the order in which they are derived.
    """
    verified = {kind: kinds[kind] for kind in kinds if kinds[kind].requirement in _VERIFIED}
    rows = [row for row in connection.execute(_KINDS, {"key": change}) if row.kind in verified]
    known = {row.kind for row in rows}
    certified = {row.task_name: Kind(row.kind) for row in rows if row.certificate is not None}
    return tuple(kind for kind in verified if kind in known), certified


_VERIFIED = (Requirement.VERIFIED, Requirement.PAIR, Requirement.ENVIRONMENT)
_CHANGES_OF_TASKS = text("SELECT DISTINCT change_name FROM task_listing WHERE name IN :keys OR id IN :keys").bindparams(
    bindparam("keys", expanding=True)
)
_IS_RENEWABLE = text("SELECT 1 FROM task_listing WHERE change = :key AND rests_on_copies = 1 LIMIT 1")
# Tasks of an environment descend from no verification, so a new one replaces none of them.
_KINDS = text("""SELECT kind, task_name, certificate FROM derivation_listing d WHERE change = :key
                 AND NOT EXISTS (SELECT 1 FROM task t JOIN environment e ON e.id = t.parent WHERE t.id = d.task)""")
