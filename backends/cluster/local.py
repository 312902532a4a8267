"""The cluster that is this machine: worker threads.

Threads and not processes, because the work itself happens in containers and in git: a worker mostly waits. So workers
share one set of services, nothing is pickled, and a driver that is killed leaves no orphan processes behind.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

Record = TypeVar("Record")
Result = TypeVar("Result")

AHEAD = 2
"""Records taken for each worker, the one worked on among them, so that none waits for the next to be mined."""
PATIENCE = 10.0
"""Seconds the workers have to end what they are at when a map is left early."""


@dataclass(frozen=True)
class _Ended:
    """A worker is done with a record; `error` is what its function raised."""

    error: BaseException | None = None


@dataclass(frozen=True, kw_only=True)
class LocalCluster:
    """`workers` threads. `stop` is called when a map is left early, to end what the workers are waiting for.

    `patience`: seconds they are then waited for. Whoever is later works for nothing: nobody takes what it brings.
    """

    workers: int
    stop: Callable[[], object] = lambda: None
    patience: float = PATIENCE

    def map(
        self, function: Callable[[Record], Iterator[Result]], records: Iterable[Record]
    ) -> Generator[Result, None, None]:
        """Everything that `function(record)` yields, over all records, in the order of completion.

        Records are taken lazily, in the caller's thread, a few ahead of the workers. An exception of the function is a
        bug of it: the map ends with it. Leaving the generator (Ctrl-C, `close`) hands out nothing more, calls `stop`,
        and returns when each worker has ended the step it is at, or after `patience`.
        """
        inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        leaving = threading.Event()
        threads = [
            threading.Thread(target=_work, args=(function, inbox, outbox, leaving), daemon=True, name=f"worker-{n}")
            for n in range(self.workers)
        ]
        for thread in threads:
            thread.start()
        wait_until = float("inf")
        try:
            yield from _drive(iter(records), inbox, outbox, self.workers * AHEAD)
        except BaseException:
            leaving.set()
            wait_until = time.monotonic() + self.patience
            self.stop()
            raise
        finally:
            leaving.set()
            for _ in threads:
                inbox.put(None)
            for thread in threads:
                thread.join(max(0.0, wait_until - time.monotonic()) if wait_until < float("inf") else None)


def _drive(
    records: Iterator[Record], inbox: queue.SimpleQueue[Any], outbox: queue.SimpleQueue[Any], most: int
) -> Iterator[Any]:
    """Keep at most `most` records with the workers and yield their results until both records and workers are done."""
    running, more = 0, True
    while True:
        while more and running < most:
            for record in records:
                inbox.put((record,))
                running += 1
                break
            else:
                more = False
            while not outbox.empty():  # taking a record may have lasted long (mining): results must not wait for it
                running -= yield from _result(outbox.get())
        if not running:
            return
        running -= yield from _result(outbox.get())


def _result(came: Any) -> Generator[Any, None, int]:
    """Yield a result; 1 when it was the sign that a record is done, else 0."""
    if not isinstance(came, _Ended):
        yield came
        return 0
    if came.error is not None:
        raise came.error
    return 1


def _work(
    function: Callable[[Record], Iterator[Result]],
    inbox: queue.SimpleQueue[Any],
    outbox: queue.SimpleQueue[Any],
    leaving: threading.Event,
) -> None:
    while (packed := inbox.get()) is not None and not leaving.is_set():
        error: BaseException | None = None
        try:
            for result in function(packed[0]):
                outbox.put(result)
                if leaving.is_set():
                    break
        except BaseException as raised:  # noqa: BLE001 - raised again in the driver's thread
            error = raised
        outbox.put(_Ended(error))
