"""New SQLite databases made by the statements that migrations leave, without the migrations.

A new database is migrated from the first revision to the newest, which takes a quarter of a second, and twice that in a
process that has not imported alembic. The tests open a few thousand. The first one of a process is migrated; the others
get its tables, indices, triggers and rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, inspect

from taskdb.schema import database

migrate = database._migrate

OBJECTS = """SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
    AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid"""
TABLES = """SELECT name FROM pragma_table_list WHERE type IN ('table', 'shadow') AND schema = 'main'
    AND name NOT LIKE 'sqlite_%'"""
"""Shadow tables are made with their virtual table; the settings of the full-text search are rows of theirs."""


@dataclass
class NewDatabase:
    """What a new database has after its migrations.

    Attributes:
        statements: SQL that makes its tables, indices and triggers.
        rows: rows of its tables, by an INSERT with a question mark for each value.
    """

    statements: list[str] = field(default_factory=list)
    rows: list[tuple[str, list[tuple[Any, ...]]]] = field(default_factory=list)

    def read(self, connection: Connection) -> None:
        """Read a database that has been migrated."""
        self.statements = list(connection.exec_driver_sql(OBJECTS).scalars())
        for table in connection.exec_driver_sql(TABLES).scalars().all():
            if rows := connection.exec_driver_sql(f"SELECT * FROM {table}").all():  # noqa: S608 - a table of its own
                marks = ", ".join("?" * len(rows[0]))
                self.rows.append((f"INSERT OR REPLACE INTO {table} VALUES ({marks})", [tuple(row) for row in rows]))  # noqa: S608

    def write(self, connection: Connection) -> None:
        """Make an empty database a new one."""
        for statement in self.statements:
            connection.exec_driver_sql(statement)
        for statement, rows in self.rows:
            connection.exec_driver_sql(statement, rows)


KNOWN = NewDatabase()


def migrate_or_copy(connection: Connection, revision: str | None, url: str) -> None:
    """Do what `database._migrate` does."""
    is_new = connection.dialect.name == "sqlite" and revision is None and not _list_tables(connection)
    if is_new and KNOWN.statements:
        KNOWN.write(connection)
        return
    migrate(connection, revision, url)
    if is_new:
        KNOWN.read(connection)


def _list_tables(connection: Connection) -> Sequence[str]:
    return inspect(connection).get_table_names()


def copy_new_databases() -> None:
    """Let this process, and those forked from it, migrate only its first new database."""
    database._migrate = migrate_or_copy
