"""Samples of tasks: a seeded order by hash, caps per repository, family and the like, and shares of strata.

A task's place in the order depends on the seed and its name alone. So a sample is the same in any database that holds
the same tasks, whatever the order in which they were added; and a task that is added or removed moves only those of its
own family, repository and stratum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, literal, select

from taskdb.queries.task_filters import CAPPED, TASKS, Allocation, TaskFilters
from taskdb.store import Store

Stratum = tuple[str | None, ...]


def sample_tasks(store: Store, filters: TaskFilters) -> tuple[str, ...]:
    """Return the ids of a sample of the tasks that the other filters select, sorted.

    First the limits of `TaskFilters.caps` are applied in their order, such as at most `per_family` tasks of each family
    and then `per_repo` of each repository; then `sample` of all are drawn. The database does the work, so that memory
    holds the result and one number per stratum.
    """
    with store.read_transaction() as connection:
        if connection.dialect.name == "sqlite":
            connection.connection.driver_connection.create_function(  # type: ignore[union-attr]
                "md5", 1, _hash_text, deterministic=True
            )
        capped = _cap(_select_ranked(filters), filters)
        return tuple(sorted(_draw(connection, capped, filters)))


def allocate(sizes: Mapping[Stratum, int], total: int, allocation: Allocation) -> dict[Stratum, int]:
    """Return how many tasks each stratum gives.

    Args:
        sizes: number of tasks of each stratum.
        total: number of tasks wanted; at most all are given.
        allocation: `proportional`: shares as in the population, rounded by largest remainder; `equal`: the same number
            of each, and the rows that small strata lack are spread over the others.
    """
    order = sorted(sizes, key=lambda stratum: [(value is not None, value or "") for value in stratum])
    total = min(total, sum(sizes.values()))
    if allocation is Allocation.EQUAL:
        return _fill_evenly(sizes, order, total)
    every = sum(sizes.values()) or 1
    given = {stratum: sizes[stratum] * total // every for stratum in order}
    remainders = sorted(order, key=lambda stratum: -(sizes[stratum] * total % every))
    for stratum in remainders[: total - sum(given.values())]:
        given[stratum] += 1
    return given


def _fill_evenly(sizes: Mapping[Stratum, int], order: Sequence[Stratum], total: int) -> dict[Stratum, int]:
    given: dict[Stratum, int] = {}
    for at, stratum in enumerate(sorted(order, key=lambda stratum: sizes[stratum])):
        share = (total - sum(given.values())) // (len(order) - at)
        given[stratum] = min(sizes[stratum], share)
    rest = total - sum(given.values())
    for stratum in [stratum for stratum in order if sizes[stratum] > given[stratum]][:rest]:
        given[stratum] += 1
    return given


def _hash_text(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _select_ranked(filters: TaskFilters) -> Select[Any]:
    strata = [_build_stratum(name).label(f"stratum_{at}") for at, name in enumerate(filters.stratify)]
    no_limits: dict[str, Any] = {f"per_{name}": None for name in CAPPED}
    unsampled = replace(filters, sample=None, **no_limits)
    rank = func.md5(literal(f"{filters.seed} ").concat(TASKS.c.name)).label("rank")
    groups = [_build_group(name).label(f"group_{name}") for name in filters.caps]
    return unsampled.apply(select(TASKS.c.id, *groups, rank, *strata))


def _build_group(name: str) -> ColumnElement[Any]:
    """Return the value that tasks of a group share; a task without one has its own."""
    repo = func.lower(TASKS.c.repo)
    if name == "repo":
        return repo
    return func.coalesce(repo.concat(" ").concat(TASKS.c[name]) if name == "functions" else TASKS.c[name], TASKS.c.id)


def _build_stratum(name: str) -> ColumnElement[Any]:
    return func.substr(TASKS.c.created_at, 1, 4) if name == "year" else TASKS.c[name]


def _cap(query: Select[Any], filters: TaskFilters) -> Select[Any]:
    for name, most in filters.caps.items():
        rows = _number(query, [f"group_{name}"]).subquery()
        query = select(*(rows.c[column] for column in dict(query.selected_columns))).where(rows.c.place <= most)
    return query


def _number(query: Select[Any], by: Sequence[str]) -> Select[Any]:
    """Return the query with the `place` of each row among those that share the columns `by`."""
    rows = query.subquery()
    place = func.row_number().over(partition_by=[rows.c[name] for name in by], order_by=[rows.c.rank, rows.c.id])
    return select(*rows.c, place.label("place"))


def _draw(connection: Connection, query: Select[Any], filters: TaskFilters) -> list[str]:
    rows = query.subquery()
    if filters.sample is None:
        return list(connection.execute(select(rows.c.id)).scalars())
    names = [f"stratum_{at}" for at in range(len(filters.stratify))]
    strata = [rows.c[name] for name in names]
    if not strata:
        return list(
            connection.execute(select(rows.c.id).order_by(rows.c.rank, rows.c.id).limit(filters.sample)).scalars()
        )
    counted = connection.execute(select(func.count(), *strata).group_by(*strata))
    quotas = allocate({tuple(row[1:]): row[0] for row in counted}, filters.sample, filters.allocate)
    placed = _number(query, names).subquery()
    most = max(quotas.values(), default=0)
    chosen = select(placed.c.id, placed.c.place, *(placed.c[name] for name in names)).where(placed.c.place <= most)
    return [row[0] for row in connection.execute(chosen) if row[1] <= quotas[tuple(row[2:])]]
