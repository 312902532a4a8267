"""Yields: tasks and rejections per change and kind, and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Select, case, column, func, select, table, text

from taskdb import counts
from taskdb.records import Kind
from taskdb.records.kinds import ENVIRONMENT_KINDS
from taskdb.schema.batches import fetch_tuples
from taskdb.schema.columns import CHANGE_LISTING as _CHANGES
from taskdb.schema.columns import DERIVATION_LISTING as _LISTED
from taskdb.schema.word_lists import match_words
from taskdb.store import Store


def count_by_change(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each change with tasks or rejected kinds, newest first.

    Keys are `change`, `rejected` (stage and reason where verification or judge rejected the change itself, else None),
    and each kind. A kind's value is None where it is still open, `derived` or `certified` with the number of tasks
    (`certified 3`), or the reason of the rejection.
    """
    changes: list[dict[str, Any]] = []
    with store.read_transaction() as connection:
        rejected = {(row.source, row.name): f"{row.rejected_by} {row.reason}" for row in connection.execute(_REJECTED)}
        rows = fetch_tuples(connection, _select_rows(sources))
        for name, rows_of_name in groupby(rows, key=itemgetter(1)):  # of several sources, where two use one name
            cells: dict[str, dict[str, Counter[str]]] = {}
            for source, _, kind, word in rows_of_name:
                cells.setdefault(source, {}).setdefault(kind, Counter())[word] += 1
            changes += (
                {"change": name, "rejected": rejected.get((source, name)), **_NO_KINDS, **_write_cells(kinds)}
                for source, kinds in cells.items()
            )
    return changes


def _write_cells(kinds: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return kind -> its words, each with its number where it stands there several times."""
    return {
        kind: ", ".join(word if n == 1 else f"{word} {n}" for word, n in words.items()) for kind, words in kinds.items()
    }


_NO_KINDS = {kind.value: None for kind in Kind}


def count_by_kind(store: Store, sources: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each kind that was derived or rejected: `kind`, `changes`, `tasks`, `certified`, `rejected`."""
    with store.read_transaction() as connection:
        rows = counts.read_funnel(connection, "kind", sources)
    counted = []
    for kind in Kind:
        words, reasons = Counter[str](), Counter[str]()
        for row in rows:
            if row.value == kind:
                words[row.outputs] += row.n
                reasons.update({row.reason: row.n} if row.reason else {})
        if words:
            counted.append(
                {
                    "kind": kind.value,
                    "changes": words["change"],
                    "tasks": words["task"],
                    "certified": words["certified"],
                    "rejected": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
                }
            )
    return counted


def count_of_environments(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> list[dict[str, Any]]:
    """Return a row for each kind with tasks that descend from environments alone.

    Keys are `kind`, `changes` (whose environments they are), `rejected` (changes among these), `tasks` and `certified`.
    """
    change, rejected = _LISTED.c.change, _CHANGES.c.rejected_by.is_not(None)
    counts_of_kind = (
        func.count(change.distinct()),
        func.count(case((rejected, change)).distinct()),
        func.count(),
        func.count(_LISTED.c.certificate),
    )
    joined = _LISTED.join(_TASK, _TASK.c.id == _LISTED.c.task).join(
        _CHANGES, (_CHANGES.c.change == change) & (_CHANGES.c.environment == _TASK.c.parent)
    )
    query = select(_KIND, *counts_of_kind).select_from(joined).where(_KIND.in_(ENVIRONMENT_KINDS))
    if sources:
        query = query.where(match_words(_LISTED.c.source, sources))
    if repo is not None:
        query = query.where(_LISTED.c.repo == repo)
    with store.read_transaction() as connection:
        rows = fetch_tuples(connection, query.group_by(_KIND).order_by(_KIND))
    return [dict(zip(("kind", "changes", "rejected", "tasks", "certified"), row, strict=True)) for row in rows]


def count_of_environment(connection: Connection, environment: str) -> dict[str, dict[str, int]]:
    """Return kind -> numbers of `tasks` and `certified` tasks that descend from an environment (id) alone."""
    query = select(_KIND, func.count(), func.count(_LISTED.c.certificate))
    query = query.select_from(_TASK.join(_LISTED, _LISTED.c.task == _TASK.c.id)).where(_TASK.c.parent == environment)
    rows = fetch_tuples(connection, query.group_by(_KIND).order_by(_KIND))
    return {kind: {"tasks": n, "certified": n_certified} for kind, n, n_certified in rows}


_TASK = table("task", column("id"), column("parent"))
_KIND = _LISTED.c.kind
_REJECTED = text("""SELECT h.source, h.name, h.rejected_by, h.reason FROM change_listing h
                    WHERE h.rejected_by IN ('verify', 'judge')
                    AND EXISTS (SELECT 1 FROM derivation_listing d WHERE d.change = h.change)""")


def _select_rows(sources: Sequence[str]) -> Select[Any]:
    word = func.coalesce(_LISTED.c.reason, _LISTED.c.status)
    query = select(_LISTED.c.source, _LISTED.c.name, _LISTED.c.kind, word).order_by(
        _LISTED.c.merged_at.desc(), _LISTED.c.name, _LISTED.c.kind, _LISTED.c.task_name
    )
    return query.where(match_words(_LISTED.c.source, sources)) if sources else query
