"""Foreign SQL, read-only: one statement that cannot change anything, neither here nor in another file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from sqlalchemy import create_engine

from mergemill.errors import UsageError
from taskdb.schema import LOCK_SECONDS, speaking, sqlite_path
from taskdb.store import Store

_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))
_FORBIDDEN_FUNCTIONS = frozenset(("load_extension", "writefile", "readfile", "edit", "fts3_tokenizer"))


def query(store: Store, statement: str) -> Iterator[dict[str, Any]]:
    """Rows of one SELECT, as they come; columns of the same name are told apart by a number.

    Raises:
        UsageError: the statement is wrong, more than one, or would do something else than read.
    """
    path = sqlite_path(store.url)
    return _postgres(store.url, statement) if path is None else _sqlite(str(path.resolve()), store.url, statement)


def _sqlite(path: str, url: str, statement: str) -> Iterator[dict[str, Any]]:
    uri = f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro"
    with speaking(url), closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)) as connection:
        connection.execute("PRAGMA query_only=ON")
        connection.set_authorizer(_judge)
        try:
            cursor = connection.execute(statement)
            if cursor.description is None:
                raise UsageError("that is no SELECT", advice="only reading is possible")
            names = _distinct([column[0] for column in cursor.description])
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except (sqlite3.Error, sqlite3.Warning) as error:
            if any(words in str(error) for words in ("locked", "disk I/O", "not a database", "malformed")):
                raise
            raise _refused(str(error)) from error


def _judge(action: int, first: str | None, second: str | None, _database: str | None, _inside: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and second in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    del first
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _postgres(url: str, statement: str) -> Iterator[dict[str, Any]]:
    engine = create_engine(url)
    try:
        with speaking(url), engine.connect() as connection:
            raw: Any = connection.connection.driver_connection
            raw.read_only = True
            try:
                # A prepared statement is one statement; a list of them could end the read-only transaction.
                cursor = raw.execute(statement, prepare=True)
                if cursor.description is None:
                    raise UsageError("that is no SELECT", advice="only reading is possible")
                names = _distinct([column.name for column in cursor.description])
                for row in cursor:
                    yield dict(zip(names, row, strict=True))
            except engine.dialect.loaded_dbapi.Error as error:
                raise _refused(str(error).splitlines()[0]) from error
            finally:
                raw.rollback()
    finally:
        engine.dispose()


def _refused(said: str) -> UsageError:
    advice = (
        "only reading is possible"
        if "not authorized" in said or "read-only" in said
        else "docs/query.md lists the views"
    )
    return UsageError(f"SQL: {said}", advice=advice)


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct
