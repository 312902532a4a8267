"""Batches: of values, as databases limit the parameters of a statement, and of rows, as single ones take longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Row

T = TypeVar("T")


def split_batches(values: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the values in batches."""
    for start in range(0, len(values), size):
        yield list(values[start : start + size])


def execute_in_batches(connection: Connection, query: Any, keys: Sequence[str], part: int = 500) -> Iterator[Row[Any]]:
    """Yield the rows of a query for many `keys`, run for a batch of them at a time."""
    for some in split_batches(keys, part):
        yield from connection.execute(query, {"keys": some})


def fetch_tuples(
    connection: Connection, query: Any, values: Mapping[str, Any] | None = None
) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a query as the driver's tuples, one after the other.

    Of a million rows that are only counted these are enough: an object for each takes longer than reading it.
    """
    cursor: Any = cast("CursorResult[Any]", connection.execute(query, values)).cursor
    # psycopg makes a thousand tuples in half the time that it takes for as many single ones
    return chain.from_iterable(iter(partial(cursor.fetchmany, _FETCHED), []))


_FETCHED = 1000
