"""Batches of values, since databases limit the number of parameters of a statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Row

T = TypeVar("T")


def split_batches(values: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the values in batches."""
    for start in range(0, len(values), size):
        yield list(values[start : start + size])


def execute_in_batches(connection: Connection, query: Any, keys: Sequence[str], part: int = 500) -> Iterator[Row[Any]]:
    """Yield the rows of a query for many `keys`, run for a batch of them at a time."""
    for some in split_batches(keys, part):
        yield from connection.execute(query, {"keys": some})
