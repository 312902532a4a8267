"""What a cluster is: it maps a function over records, many at a time, and brings back what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Protocol, TypeVar

Record = TypeVar("Record")
Result = TypeVar("Result")


class Cluster(Protocol):
    """Workers, here or elsewhere."""

    def map(
        self, function: Callable[[Record], Iterator[Result]], records: Iterable[Record]
    ) -> Generator[Result, None, None]:
        """Everything the function yields for the records, as it comes; see `backends.cluster.local.LocalCluster`."""
        ...
