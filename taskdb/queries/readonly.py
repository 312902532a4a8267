"""Read-only SQL of users: a statement that can change neither this database nor another file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

from core.errors import UsageError
from taskdb.schema.database import LOCK_SECONDS, build_read_only_uri, parse_sqlite_path, translate_errors
from taskdb.store import Store

_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))
_FORBIDDEN_FUNCTIONS = frozenset(("load_extension", "writefile", "readfile", "edit", "fts3_tokenizer"))


def run_query(store: Store, statement: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a SELECT; repeated column names get a number.

    Raises:
        UsageError: the statement is invalid, not the only, or does more than read.
    """
    path = parse_sqlite_path(store.url)
    return (
        _query_postgres(store.url, statement) if path is None else _query_sqlite(path.resolve(), store.url, statement)
    )


def _query_sqlite(path: Path, url: str, statement: str) -> Iterator[dict[str, Any]]:
    uri = build_read_only_uri(path)
    with translate_errors(url), closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)) as connection:
        connection.execute("PRAGMA query_only=ON")
        connection.execute("SELECT value FROM json_each('[]')")  # its first use declares a table, which is denied later
        connection.set_authorizer(_authorize)
        try:
            cursor = connection.execute(statement)
            if cursor.description is None:
                raise UsageError("the statement is not a SELECT", advice="only reading is possible")
            names = _make_distinct([column[0] for column in cursor.description])
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except (sqlite3.Error, sqlite3.Warning) as error:
            if any(words in str(error) for words in ("locked", "disk I/O", "not a database", "malformed")):
                raise
            raise _build_usage_error(str(error)) from error


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _inside: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and second in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    del first
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _query_postgres(url: str, statement: str) -> Iterator[dict[str, Any]]:
    engine = create_engine(url)
    try:
        with translate_errors(url), engine.connect() as connection:
            raw: Any = connection.connection.driver_connection
            raw.read_only = True
            try:
                # A prepared statement is one statement; a list of them could end the read-only transaction.
                cursor = raw.execute(statement, prepare=True)
                if cursor.description is None:
                    raise UsageError("the statement is not a SELECT", advice="only reading is possible")
                names = _make_distinct([column.name for column in cursor.description])
                for row in cursor:
                    yield dict(zip(names, row, strict=True))
            except engine.dialect.loaded_dbapi.Error as error:
                raise _build_usage_error(str(error).splitlines()[0]) from error
            finally:
                raw.rollback()
    finally:
        engine.dispose()


def _build_usage_error(problem: str) -> UsageError:
    advice = (
        "only reading is possible"
        if "not authorized" in problem or "read-only" in problem
        else "docs/guide/query/query.md lists the views"
    )
    return UsageError(f"SQL: {problem}", advice=advice)


def _make_distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct
