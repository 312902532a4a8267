"""Batches: of values, as databases limit the parameters of a statement, and of rows, as single rows take longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Executable, Result, Row, bindparam, text

T = TypeVar("T")


def split_batches(values: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the values in batches."""
    for start in range(0, len(values), size):
        yield list(values[start : start + size])


def execute_in_batches(connection: Connection, query: Any, keys: Sequence[str], part: int = 500) -> Iterator[Row[Any]]:
    """Yield the rows of a query for many `keys`, run for a batch of them at a time."""
    for some in split_batches(keys, part):
        yield from connection.execute(query, {"keys": some})


class KeyedQuery:
    """SQL with the condition `IN :keys`, for a list of ids or numbers.

    PostgreSQL is given the list as an array: a thousand parameters take longer to plan than to run.
    """

    def __init__(self, query: str) -> None:
        self._with_parameters = text(query).bindparams(bindparam("keys", expanding=True))
        self._with_array = text(query.replace("IN :keys", "= ANY(:keys)"))

    def fetch(self, connection: Connection, keys: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows as the driver's tuples."""
        if connection.dialect.name != "sqlite":
            return _fetch_all(connection, self._with_array, keys)
        parts = split_batches(keys, _MAX_PARAMETERS)
        return [row for part in parts for row in _fetch_all(connection, self._with_parameters, part)]


_MAX_PARAMETERS = 32_000
"""Parameters of a statement of SQLite, which has at most 32,766."""


def _fetch_all(connection: Connection, query: Executable, keys: Sequence[Any]) -> list[tuple[Any, ...]]:
    cursor: Any = cast("CursorResult[Any]", connection.execute(query, {"keys": list(keys)})).cursor
    return list(cursor.fetchall())


def stream_parts(connection: Connection, query: Executable, size: int) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the rows of a query, `size` at a time, which stay in the database until then."""
    if connection.dialect.name == "sqlite":
        return _iter_parts(connection.execute(query), size)
    return connection.execute(query.execution_options(yield_per=size)).partitions(size)


def fetch_tuples(
    connection: Connection, query: Executable, values: Mapping[str, Any] | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query as the driver's tuples, which on PostgreSQL are all in memory.

    Of a million rows that are only counted these are enough: an object for each takes longer than reading it. psycopg
    makes a thousand of them in half the time that it takes for as many single rows.
    """
    return chain.from_iterable(_iter_parts(connection.execute(query, values), _FETCHED))


_FETCHED = 1000


def _iter_parts(result: Result[Any], size: int) -> Iterator[list[tuple[Any, ...]]]:
    cursor: Any = cast("CursorResult[Any]", result).cursor
    return iter(partial(cursor.fetchmany, size), [])
