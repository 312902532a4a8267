"""Columns of tasks that were declared after the newest migration.

A declared column needs no migration: a database whose tables lack it gets it when it is opened, with a value for each
task. Alembic's `env.py` and migrations that write the listings again call this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, inspect, text

from taskdb.records import Task
from taskdb.schema import tables
from taskdb.schema.mapping import clean_value
from taskdb.schema.stored_records import unpack_bodies
from taskdb.schema.task_columns import DECLARED, NULLABLE, VALUE_TYPES

_BATCH = 1000
_DEFAULTS = {str: "''", int: "0", float: "0"}
"""Values of rows until they are computed; SQLite adds no column that is never null where there is none."""


def add_missing_columns(connection: Connection) -> bool:
    """Add the declared columns that the tables of tasks lack; return whether there were any.

    Values that are computed from records are written here, those of the listing by `taskdb.listing.rebuild`.
    """
    computed = {name: declared.record for name, declared in DECLARED.items() if declared.record is not None}
    if added := _add_columns(connection, "task", computed):
        _compute_values(connection, {name: computed[name] for name in added})
    return bool(_add_columns(connection, "task_listing", DECLARED))


def _add_columns(connection: Connection, table: str, names: Iterable[str]) -> list[str]:
    there = {column["name"] for column in inspect(connection).get_columns(table)}
    missing = [name for name in names if name not in there]
    for name in missing:
        kind = tables.METADATA.tables[table].c[name].type.compile(connection.dialect)
        rule = "" if name in NULLABLE else f" NOT NULL DEFAULT {_DEFAULTS[VALUE_TYPES[name]]}"
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {name} {kind}{rule}"))
    return missing


def _compute_values(connection: Connection, computed: Mapping[str, Callable[[Any], object]]) -> None:
    query, last = text("SELECT seq, body FROM task WHERE seq > :last ORDER BY seq LIMIT :most"), 0
    assignments = ", ".join(f"{name} = :{name}" for name in computed)
    statement = text(f"UPDATE task SET {assignments} WHERE seq = :seq")  # noqa: S608 - declared names
    while rows := connection.execute(query, {"last": last, "most": _BATCH}).all():
        bodies = unpack_bodies(connection, [row.body for row in rows])
        tasks = [Task.model_validate(body) for body in bodies]
        values = [{name: clean_value(compute(task)) for name, compute in computed.items()} for task in tasks]
        connection.execute(statement, [{"seq": row.seq, **of} for row, of in zip(rows, values, strict=True)])
        last = rows[-1].seq
