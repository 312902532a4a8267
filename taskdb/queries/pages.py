"""Queries of the web pages: lists of changes, facets, and the records behind a task. All results are plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, text

from taskdb import counts
from taskdb.queries.task_filters import TASKS, TaskFilters, format_filters
from taskdb.records import Candidate, Certificate, Environment, PullRequest, Rejection, Task, Verification
from taskdb.records.audits import Audit
from taskdb.records.verdicts import Verdict
from taskdb.schema.batches import fetch_tuples
from taskdb.store import Store

MAX_COUNTED = 5000
"""Tasks that `count_facets` reads, about 20 ms of them."""


@dataclass(frozen=True, kw_only=True)
class TaskRecords:
    """The records of one task's lineage; each is None where the lineage has none."""

    task: Task
    candidate: Candidate | None
    environment: Environment | None
    verification: Verification | None
    verdict: Verdict | None
    certificate: Certificate | None
    audit: Audit | None
    """The newest candidate."""
    scores: Sequence[Mapping[str, Any]]
    """Newest first: id, submission, value, resolved, added_at."""


@dataclass(frozen=True, kw_only=True)
class ChangeRecords:
    """The records of one change's current lineage; each is None where the lineage has none."""

    row: Mapping[str, Any]
    """Row of the view `changes`."""
    environment: Environment | None
    verification: Verification | None
    rejection: Rejection | None
    derivations: Sequence[Mapping[str, Any]]
    """Rows of the view `derivations`."""


def load_task_records(store: Store, task: Task) -> TaskRecords:
    """Return the records that a task was made of, its certificate and its scores."""
    with store.read_transaction() as connection:
        key = {"id": task.id, "parent": task.parent}
        certificate = connection.execute(_CERTIFICATE, key).scalar()
        verification = connection.execute(_VERIFICATION, key).scalar()
        environment = connection.execute(_ENVIRONMENT, key).scalar()
        verdict = connection.execute(_VERDICT, key).scalar()
        audit = connection.execute(_AUDIT, key).scalar()
        scores = [dict(row) for row in connection.execute(_SCORES, key).mappings()]
    run = store.get(Verification, verification) if verification else None
    return TaskRecords(
        task=task,
        candidate=_get_or_none(store, Candidate, task.candidate),
        environment=_get_or_none(store, Environment, environment),
        verification=run,
        verdict=store.get(Verdict, verdict) if verdict else None,
        certificate=store.get(Certificate, certificate) if certificate else None,
        audit=_get_or_none(store, Audit, audit),
        scores=scores,
    )


def load_change_records(store: Store, change: PullRequest) -> ChangeRecords:
    """Return the row of a change and the records of its current lineage."""
    with store.read_transaction() as connection:
        found_row = connection.execute(_CHANGE, {"id": change.id}).mappings().first()
        row: dict[str, Any] = dict(found_row) if found_row else {}
        rows = connection.execute(_DERIVATIONS, {"id": change.id})
        derivations = [dict(derivation) for derivation in rows.mappings()]
    return ChangeRecords(
        row=row,
        environment=_get_or_none(store, Environment, row.get("environment")),
        verification=_get_or_none(store, Verification, row.get("verification")),
        rejection=_get_or_none(store, Rejection, row.get("rejection")),
        derivations=derivations,
    )


def _get_or_none(store: Store, kind: type[Any], key: str | None) -> Any:
    """Return a record, or None where there is no id or no such record."""
    return store.get_many(kind, [key]).get(key) if key else None


_CERTIFICATE = text("SELECT id FROM certificate WHERE parent = :id ORDER BY seq DESC LIMIT 1")
_VERIFICATION = text("SELECT id FROM verification WHERE id = :parent")
_ENVIRONMENT = text("""SELECT parent FROM verification WHERE id = :parent
                       UNION ALL SELECT id FROM environment WHERE id = :parent""")
_VERDICT = text("SELECT id FROM verdict WHERE parent = :parent ORDER BY seq DESC LIMIT 1")
_AUDIT = text("SELECT id FROM audit WHERE parent = :id ORDER BY seq DESC LIMIT 1")
_SCORES = text("""SELECT id, submission, value, resolved, added_at FROM score
                  WHERE task = :id ORDER BY seq DESC LIMIT 50""")
_CHANGE = text("SELECT * FROM changes WHERE pull_request = :id")
_DERIVATIONS = text("""SELECT kind, status, rejected_by, reason, detail, task, task_name FROM derivation_listing
                       WHERE change IN (SELECT change FROM change_listing WHERE pull_request = :id)
                       ORDER BY kind, task_name""")


def load_task_row(store: Store, task: Task) -> dict[str, Any] | None:
    """Return a task's row of the view `tasks`, or None for one of a superseded lineage."""
    with store.read_transaction() as connection:
        row = connection.execute(text("SELECT * FROM tasks WHERE id = :id"), {"id": task.id}).mappings().first()
    return dict(row) if row else None


def count_facets(store: Store, filters: TaskFilters, columns: Sequence[str]) -> dict[str, dict[str, int | None]]:
    """Return column -> value -> number of tasks.

    Without filters the maintained counters are read. With filters at most MAX_COUNTED tasks are; where more match, the
    values of all tasks are returned, with None for their number.
    """
    with store.read_transaction() as connection:
        if filters == TaskFilters():
            return {column: dict(values) for column, values in counts.read_facet_counts(connection, columns).items()}
        rows: Sequence[Any] = ()
        is_large = _has_many_by_counters(connection, filters)
        if not is_large:
            query = filters.apply(select(*(TASKS.c[column] for column in columns))).limit(MAX_COUNTED + 1)
            rows = list(fetch_tuples(connection, query))
        if is_large or len(rows) > MAX_COUNTED:
            counters = counts.read_facet_counts(connection, columns)
            return {column: dict.fromkeys(values) for column, values in counters.items()}
    facets: dict[str, dict[str, int | None]] = {}
    for column, values in zip(columns, zip(*rows, strict=True), strict=False):
        counted: dict[str | None, int] = Counter(values)
        facets[column] = {value: n for value, n in counted.items() if value is not None}
    return facets


_COUNTED_FILTERS = ("repo", "language", "kind", "status", "license", "split")
"""Filters whose tasks are those that the facet of the same name counts."""


def _has_many_by_counters(connection: Connection, filters: TaskFilters) -> bool:
    """Return whether counters alone show that more than MAX_COUNTED tasks match: those of a single filter."""
    [name, *others] = format_filters(filters)
    if others or name not in _COUNTED_FILTERS:
        return False
    given = getattr(filters, name)
    words = {word.lower() for word in ([given] if isinstance(given, str) else given)}
    counted = counts.read_facet_counts(connection, [name])[name]
    return sum(n for value, n in counted.items() if value.lower() in words) > MAX_COUNTED


def count_tasks_by_kind(store: Store) -> dict[str, int]:
    """Return the number of tasks of each kind, most frequent first."""
    with store.read_transaction() as connection:
        counted = counts.read_task_counts(connection, "kind")
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
