"""Databases of earlier versions, as SQL dumps, and how to make a database of one.

`revision_N.sql` is what the last version with schema N wrote: its tables and views, a change for each outcome (the
first certified, graded and exported, others rejected by each stage or left waiting), and a row of every record.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import ProgrammingError

from taskdb.schema import search
from taskdb.schema.database import MIGRATIONS
from tests.taskdb.lineages import make_url

FOLDER = Path(__file__).parent
_KINDS = {"FLOAT": "DOUBLE PRECISION", "BLOB": "BYTEA"}
REVISIONS = sorted(path.stem.removeprefix("revision_") for path in FOLDER.glob("revision_*.sql"))


def make_sqlite(revision: str, folder: Path) -> str:
    """Return the URL of a SQLite database as the revision left it."""
    connection = sqlite3.connect(folder / "m.db")
    connection.executescript((FOLDER / f"revision_{revision}.sql").read_text())
    connection.close()
    return make_url(folder)


def make_postgresql(revision: str, url: str, folder: Path) -> None:
    """Fill an empty PostgreSQL database: tables by the migrations up to the revision, rows and views from the dump."""
    source = sqlite3.connect(make_sqlite(revision, folder).removeprefix("sqlite:///"))
    source.row_factory = sqlite3.Row
    engine = create_engine(url)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with engine.connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        inspector = inspect(connection)
        connection.exec_driver_sql("SET session_replication_role = replica")  # rows come in any order
        tables = [name for name in inspector.get_table_names() if name not in ("alembic_version", "task_search")]
        for table in tables:
            columns = {column["name"]: str(column["type"]) for column in inspector.get_columns(table)}
            for _, name, kind, *_ in source.execute(f"PRAGMA table_info({table})"):
                if name not in columns:  # of a table that follows from others, made again with further columns
                    connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {name} {_KINDS.get(kind, kind)}")
                    columns[name] = kind
            marks = ", ".join(f":{name}" for name in columns)
            rows = [_convert(row, columns) for row in source.execute(f"SELECT * FROM {table}")]  # noqa: S608
            if rows:
                connection.execute(text(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"), rows)  # noqa: S608
            if "seq" in columns:  # later rows go on counting
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), coalesce(max(seq), 0) + 1) FROM {table}"  # noqa: S608
                )
        if "task_search" in inspector.get_table_names():  # each kind of database has an index of its own
            search.rebuild_index(connection)
        connection.exec_driver_sql("SET session_replication_role = origin")
        _create_views(connection, [sql for (sql,) in source.execute("SELECT sql FROM sqlite_master WHERE type='view'")])
    source.close()
    engine.dispose()


def _convert(row: sqlite3.Row, columns: dict[str, str]) -> dict[str, Any]:
    return {
        name: bool(row[name]) if kind == "BOOLEAN" and row[name] is not None else row[name]
        for name, kind in columns.items()
    }


def _create_views(connection: Any, statements: list[str]) -> None:
    """Create views in an order that their dependencies allow."""
    while statements:
        waiting = []
        for statement in statements:
            try:
                with connection.begin_nested():
                    connection.execute(text(statement))
            except ProgrammingError:
                waiting.append(statement)
        assert len(waiting) < len(statements), waiting
        statements = waiting
