"""Copying a generated SQLite database into PostgreSQL, so that both hold the same rows and are generated once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Boolean, Connection, make_url, text

from benchmarks.taskdb.write import set_indices_aside
from taskdb.schema import search, tables
from taskdb.store import Store

_BATCH = 5000
_OWN_ROWS = ("alembic_version", "meta")
"""Tables whose rows describe a database itself."""
_CONSTRAINTS = """SELECT conrelid::regclass::text AS "table", conname AS name, contype AS kind,
                         pg_get_constraintdef(oid) AS definition
                  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f')
                  ORDER BY contype = 'f'"""


def copy_database(source: str, target: str) -> None:
    """Copy all rows of a SQLite database into an empty one on PostgreSQL, with its index of words.

    Indices and constraints are taken away before and made again after, which checks every row.

    Args:
        source: URL of a SQLite database of the newest schema.
        target: URL of an empty PostgreSQL database.
    """
    path = str(make_url(source).database)
    with Store.open(target) as store, closing(sqlite3.connect(path)) as reader:
        with store.write_transaction() as connection:
            _copy_rows(connection, reader)
        with store.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM ANALYZE"))


def _copy_rows(connection: Connection, reader: sqlite3.Connection) -> None:
    connection.execute(text("SET LOCAL maintenance_work_mem = '1GB'"))
    restoring = _drop_indices(connection)
    for table in tables.METADATA.sorted_tables:
        if table.name not in _OWN_ROWS:
            flags = [at for at, column in enumerate(table.columns) if isinstance(column.type, Boolean)]
            _copy_table(connection, reader, table.name, [column.name for column in table.columns], flags)
    search.rebuild_index(connection)
    for statement in restoring:
        connection.execute(text(statement))
    _set_sequences(connection)


def _drop_indices(connection: Connection) -> list[str]:
    """Drop constraints and indices; return the statements that make them again, in order."""
    constraints = connection.execute(text(_CONSTRAINTS)).all()
    for constraint in reversed(constraints):
        connection.execute(text(f'ALTER TABLE "{constraint.table}" DROP CONSTRAINT "{constraint.name}"'))
    made = [
        f'ALTER TABLE "{constraint.table}" ADD CONSTRAINT "{constraint.name}" {constraint.definition}'
        for constraint in constraints
    ]
    return [*made, *set_indices_aside(connection)]


def _copy_table(
    connection: Connection, reader: sqlite3.Connection, table: str, columns: Sequence[str], flags: Sequence[int]
) -> None:
    """Copy the rows of a table; `flags`: positions of its truth values, which are numbers in SQLite."""
    driver: Any = connection.connection.driver_connection
    names = ", ".join(f'"{name}"' for name in columns)
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table}" ({names}) FROM STDIN'.encode()) as copy:
        for row in _read_rows(reader, f'SELECT {names} FROM "{table}"'):  # noqa: S608 - own tables
            copy.write_row([bool(value) if at in flags else value for at, value in enumerate(row)] if flags else row)


def _read_rows(reader: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    cursor = reader.execute(query)
    while rows := cursor.fetchmany(_BATCH):
        yield from rows


def _set_sequences(connection: Connection) -> None:
    """Let new rows be counted on from the copied ones."""
    owned = connection.execute(
        text("""SELECT c.table_name AS "table", c.column_name AS "column", s.name
                FROM information_schema.columns c,
                     LATERAL (SELECT pg_get_serial_sequence(quote_ident(c.table_name), c.column_name) AS name) s
                WHERE c.table_schema = 'public' AND s.name IS NOT NULL""")
    ).all()
    for row in owned:
        newest = f'SELECT coalesce(max("{row.column}"), 0) + 1 FROM "{row.table}"'  # noqa: S608 - own tables
        connection.execute(text(f"SELECT setval('{row.name}', ({newest}), false)"))
