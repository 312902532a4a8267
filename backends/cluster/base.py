"""Cluster protocol: map a function over records in parallel."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Protocol, TypeVar

Record = TypeVar("Record")
Result = TypeVar("Result")


class Cluster(Protocol):
    """Workers of this machine or of others."""

    def map(
        self, function: Callable[[Record], Iterator[Result]], records: Iterable[Record]
    ) -> Generator[Result, None, None]:
        """Yield the function's results for all records as they complete; see `cluster.local.LocalCluster`."""
        ...
