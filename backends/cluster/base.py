"""Cluster protocol: map a function over records in parallel, and the facts that the driver knows of these records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Generic, TypeVar

from core.errors import Transient

Record = TypeVar("Record")
Result = TypeVar("Result")

MOST_RESULTS = 200
"""Most results that are yielded as a list."""


class Notice:
    """Base of results that are shown and not stored: the work goes on before one has arrived, and one may be lost."""


class RecordKeeper(Generic[Record, Result]):
    """Facts that the driver knows of the records of a map. This class is for records that are worth no second attempt.

    `observe` and `end_record` are called as soon as possible, in any thread; the other methods in the caller's thread.
    """

    def observe(self, result: Result, place: str) -> None:
        """Take note of a result that is on its way to the caller.

        `place`: name of the machine, empty for this machine.
        """

    def end_record(self, record: Record, *, is_finished: bool) -> None:
        """Take note that no worker has the record any more. `is_finished`: it is neither stopped nor tried again."""

    def is_node_failure(self, result: Result) -> bool:
        """Return whether the result is a failure that another machine may not have."""
        del result
        return False

    def resume(self, record: Record) -> Record | None:
        """Return the record with the results that were stored meanwhile; None where nothing is left to do for it."""
        return record

    def make_loss(self, record: Record, detail: str) -> Result:
        """Return the result of a record whose workers were lost each time.

        Raises:
            Transient: there is no such result; the map ends.
        """
        del record
        raise Transient(detail, advice="run the same command again")

    def get_locality(self, record: Record) -> str:
        """Return the key of the things that a machine keeps for records such as these; empty for nothing."""
        del record
        return ""


class Cluster(ABC):
    """Workers of this machine or of others."""

    @abstractmethod
    def describe(self) -> str:
        """Return which workers there can be, for people."""

    @abstractmethod
    def map_batches(
        self,
        function: Callable[[Record], Iterator[Result]],
        records: Iterable[Record],
        keeper: RecordKeeper[Record, Result],
    ) -> Generator[list[Result], None, None]:
        """Yield the function's results for all records as they complete, those that are there at a time as a list.

        No list is empty or longer than MOST_RESULTS. Records are read lazily, in the caller's thread, a few ahead of
        the workers. An exception of the function ends the map. Leaving the generator (Ctrl-C, `close`) starts no
        further record and waits for the workers to end their step.
        """

    def map(
        self,
        function: Callable[[Record], Iterator[Result]],
        records: Iterable[Record],
        keeper: RecordKeeper[Record, Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results of `map_batches` individually."""
        with closing(self.map_batches(function, records, keeper or RecordKeeper())) as batches:
            for results in batches:
                yield from results
