"""Local cluster: worker threads of this machine.

Threads and not processes, because the work happens in containers and in git, so a worker mostly waits. Workers share
a set of services, nothing is pickled, and a driver that is killed leaves no orphan processes.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from backends.cluster.base import MOST_RESULTS, Cluster, RecordKeeper
from core.text import format_count

Record = TypeVar("Record")
Result = TypeVar("Result")

RECORDS_PER_WORKER = 2
"""Records queued for each worker, including the current, so that no worker waits for mining."""
STOP_TIMEOUT = 10.0
"""Seconds that workers may take to end their current step when a map is left early."""

SIGNAL_SECONDS = 1.0
"""Longest wait for a message. Python handles a signal that came just before a wait only at its end."""


@dataclass(frozen=True)
class RecordDone:
    """Message of a worker that has finished a record; `error` is the exception of its function."""

    error: BaseException | None = None


@dataclass(frozen=True, kw_only=True)
class LocalCluster(Cluster):
    """Cluster of `workers` threads.

    `stop` is called with the exception by which a map is left early, to end the things that the workers wait for. They
    are then waited for `stop_timeout` seconds; later results are discarded. `records_per_worker`: queued for each
    worker, the current one included; 1 where whether a record is processed depends on the results of those before.
    """

    workers: int
    records_per_worker: int = RECORDS_PER_WORKER
    stop: Callable[[BaseException], object] = lambda _: None
    stop_timeout: float = STOP_TIMEOUT

    def describe(self) -> str:
        """Return the number of threads."""
        return f"{format_count(self.workers, 'thread')} of this machine"

    def map_batches(
        self,
        function: Callable[[Record], Iterator[Result]],
        records: Iterable[Record],
        keeper: RecordKeeper[Record, Result],
    ) -> Generator[list[Result], None, None]:
        """Yield all results; leaving the generator calls `stop`, and waits for at most `stop_timeout`."""
        inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        leaving = threading.Event()
        worker = _Worker(function, keeper, inbox, outbox, leaving)
        threads = [threading.Thread(target=worker.run, daemon=True, name=f"worker-{n}") for n in range(self.workers)]
        for thread in threads:
            thread.start()
        wait_until = float("inf")
        try:
            yield from _feed_workers(iter(records), inbox, outbox, self.workers * self.records_per_worker)
        except BaseException as error:
            leaving.set()
            wait_until = time.monotonic() + self.stop_timeout
            self.stop(error)
            raise
        finally:
            leaving.set()
            for _ in threads:
                inbox.put(None)
            for thread in threads:
                thread.join(max(0.0, wait_until - time.monotonic()) if wait_until < float("inf") else None)


def _feed_workers(
    records: Iterator[Record], inbox: queue.SimpleQueue[Any], outbox: queue.SimpleQueue[Any], limit: int
) -> Iterator[list[Any]]:
    """Keep at limit `limit` records queued and yield the results until all records are done."""
    running, more = 0, True
    while True:
        while more and running < limit:
            for record in records:
                inbox.put((record,))
                running += 1
                break
            else:
                more = False
            # reading a record may take long (mining): results must not wait for it
            running -= yield from _unpack_results(_take_waiting(outbox))
        if not running:
            return
        running -= yield from _unpack_results([_await_message(outbox), *_take_waiting(outbox)])


def _await_message(outbox: queue.SimpleQueue[Any]) -> Any:
    """Return the next message. A signal that arrives just before the wait is handled after SIGNAL_SECONDS."""
    while True:
        with contextlib.suppress(queue.Empty):
            return outbox.get(timeout=SIGNAL_SECONDS)


def _take_waiting(outbox: queue.SimpleQueue[Any]) -> list[Any]:
    """Return the messages that are there, a few of them where there are many."""
    waiting: list[Any] = []
    while len(waiting) < MOST_RESULTS - 1 and not outbox.empty():
        waiting.append(outbox.get())
    return waiting


def _unpack_results(messages: Iterable[Any]) -> Generator[list[Any], None, int]:
    """Yield the results as a list, and return the number of records that are done."""
    results, ended = list[Any](), list[RecordDone]()
    for message in messages:
        if isinstance(message, RecordDone):
            ended.append(message)
        else:
            results.append(message)
    if results:
        yield results
    for record in ended:
        if record.error is not None:
            raise record.error
    return len(ended)


@dataclass(frozen=True)
class _Worker(Generic[Record, Result]):
    """Work that all threads of a map run."""

    function: Callable[[Record], Iterator[Result]]
    keeper: RecordKeeper[Record, Result]
    inbox: queue.SimpleQueue[Any]
    outbox: queue.SimpleQueue[Any]
    leaving: threading.Event

    def run(self) -> None:
        """Process records until there are no more, or the map is left."""
        while (packed := self.inbox.get()) is not None and not self.leaving.is_set():
            error: BaseException | None = None
            try:
                self._process(packed[0])
            except BaseException as raised:  # noqa: BLE001 - raised again in the driver's thread
                error = raised
            self.outbox.put(RecordDone(error))

    def _process(self, record: Record) -> None:
        was_stopped = True
        try:
            for result in self.function(record):
                self.keeper.observe(result, "")
                self.outbox.put(result)
                if self.leaving.is_set():
                    return
            was_stopped = False
        finally:
            self.keeper.end_record(record, is_finished=not was_stopped)
