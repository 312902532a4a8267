"""A map over the workers of a cluster."""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import RayActorError, RayError

from backends.cluster.base import MOST_RESULTS, RecordKeeper
from backends.cluster.ray_cluster.actors import DONE, LOG, READY, RESULT, WorkerMessage
from backends.cluster.ray_cluster.connection import CONNECT_SECONDS, START_NODE, shorten
from backends.cluster.ray_cluster.pool import STOP_SECONDS, WorkerPool
from backends.cluster.ray_cluster.state import Node, RecordAttempt, WorkerState
from core.errors import Transient

log = logging.getLogger(__name__)

Record = TypeVar("Record")
Result = TypeVar("Result")

ATTEMPTS = 3
"""Attempts at a record whose worker is lost or whose node fails."""
RECORDS_PER_WORKER = 2
"""Records that are read for each worker, those with workers included; a worker chooses among them by locality."""
TAKE_RECORDS, TAKE_SECONDS = 500, 1.0
"""Most messages that a call of the mailbox returns, and its longest wait."""
WATCH_SECONDS = 2.0
"""Time between two looks at workers."""
FAILURES_IN_ROW = 3
"""Failures of a node, in sequence, after which it rests."""
LOSSES_IN_ROW = 5
"""Workers that a node may lose, in sequence, before it is left out."""
NO_NODE_SECONDS = 300.0
"""Time without any node that can work, after which a map ends."""


class RayMap(Generic[Record, Result]):
    """A map."""

    def __init__(
        self, pool: WorkerPool, function: Any, records: Iterator[Record], keeper: RecordKeeper[Record, Result]
    ) -> None:
        self.pool, self.function, self.records, self.keeper = pool, function, records, keeper
        self.window: deque[RecordAttempt[Record]] = deque()
        """Records without a worker: those to try again, and those that were read ahead."""
        self.running: dict[str, tuple[RecordAttempt[Record], str]] = {}
        """Key of an attempt -> attempt and key of its worker."""
        self.more = True
        self._next_watch = 0.0
        self._had_node = time.monotonic()
        self._inbox: queue.SimpleQueue[WorkerMessage | Exception] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._receiver = threading.Thread(target=self._receive, name="mergemill-mailbox", daemon=True)

    def run(self) -> Iterator[list[Result]]:
        """Yield all results."""
        self._receiver.start()
        while True:
            if lost := list(self._watch()):
                yield lost
            # Messages are handled between records, as reading a record may take long where the miner waits for the
            # network.
            while self._wants_record():
                self._read_record()
                self._assign()
                yield from self._handle_messages(wait=False)
            self._assign()
            if not (self.more or self.window or self.running):
                return
            yield from self._handle_messages(wait=True)

    def close(self) -> None:
        """End the thread of the map; the messages that its workers send are dropped from now on."""
        self._closing.set()
        if self._receiver.ident is not None:
            self._receiver.join(TAKE_SECONDS + CONNECT_SECONDS)
        with contextlib.suppress(queue.Empty):
            while True:  # a worker greets once
                message = self._inbox.get_nowait()
                if isinstance(message, WorkerMessage) and message.kind == READY:
                    self._greet(message)

    def stop_workers(self) -> None:
        """End the work that the workers are waiting for, and wait for the end of their step."""
        busy = [worker for worker in self.pool.workers.values() if worker.attempt]
        with contextlib.suppress(RayError, ConnectionError):
            for worker in busy:
                worker.actor.stop.remote()
            references = [worker.attempt.reference for worker in busy if worker.attempt]
            if references:
                ray.wait(references, num_returns=len(references), timeout=STOP_SECONDS)

    # ---------------------------------------------------------------------------------------------- messages

    def _receive(self) -> None:
        """Move messages from the mailbox to the inbox; runs in a thread of its own."""
        while not self._closing.is_set():
            try:
                taken = ray.get(self.pool.mailbox.take.remote(TAKE_RECORDS, TAKE_SECONDS))
            except Exception as error:  # noqa: BLE001 - raised in the driver's thread
                self._inbox.put(error)
                return
            for packed in taken:
                message: WorkerMessage = pickle.loads(packed)  # noqa: S301 - of our own workers
                task = self.running.get(message.key)
                # Noted at once: the driver may be storing results for seconds, and the live table shows what runs.
                if message.kind == RESULT and task is not None:
                    worker = self.pool.workers.get(task[1])
                    self.keeper.observe(message.content, worker.node.name if worker else "")
                self._inbox.put(message)

    def _handle_messages(self, *, wait: bool) -> Iterator[list[Result]]:
        """Handle the messages that are there; with `wait`, wait for a message, but not longer than WATCH_SECONDS."""
        results: list[Result] = []
        for message in self._take_messages(wait=wait):
            if results and self._needs_earlier_results(message):
                yield results
                results = []
            results += self._handle(message)
        if results:
            yield results

    def _take_messages(self, *, wait: bool) -> list[WorkerMessage | Exception]:
        taken: list[WorkerMessage | Exception] = []
        with contextlib.suppress(queue.Empty):
            taken.append(self._inbox.get(wait, timeout=WATCH_SECONDS if wait else None))
            while len(taken) < MOST_RESULTS:
                taken.append(self._inbox.get_nowait())
        return taken

    def _needs_earlier_results(self, message: WorkerMessage | Exception) -> bool:
        """Return whether the results of before must be with the caller: a record is read again, or the map ends."""
        if isinstance(message, Exception):
            return True
        attempt, _ = self.running.get(message.key, (None, ""))
        return message.kind == DONE and attempt is not None and (attempt.has_failed or message.content is not None)

    def _handle(self, message: WorkerMessage | Exception) -> Iterator[Result]:
        if isinstance(message, Exception):
            advice = "run the same command again once it is there"
            raise Transient(f"the Ray cluster is gone: {shorten(message)}", advice=advice) from message
        if message.kind == READY:
            self._greet(message)
            self._assign()
        elif message.kind == LOG:
            name, level, text = message.content
            logging.getLogger(name).log(level, "%s", text)
        elif message.key in self.running:
            yield from self._handle_attempt(message)

    def _greet(self, message: WorkerMessage) -> None:
        if worker := self.pool.workers.get(message.key):
            worker.is_ready = True

    def _handle_attempt(self, message: WorkerMessage) -> Iterator[Result]:
        attempt, key = self.running[message.key]
        if message.kind == RESULT:
            # The result is dropped, since another node may give a better one; the last attempt's counts.
            if attempt.number < ATTEMPTS and self.keeper.is_node_failure(message.content):
                attempt.has_failed = True
                return
            yield message.content
            return
        del self.running[message.key]
        if worker := self.pool.workers.get(key):
            worker.attempt = None
            self._judge_node(worker.node, failed=attempt.has_failed)
            if attempt.has_failed:
                attempt.avoid.add(worker.node.id)
        if message.content is not None:
            raise message.content
        if attempt.has_failed:
            yield from self._try_again(attempt, "its node failed")
        else:
            self.keeper.end_record(attempt.record, is_finished=True)
        self._assign()

    def _judge_node(self, node: Node, *, failed: bool) -> None:
        """Let a node rest after failures in a row."""
        # A worker that ended its record shows that the node's processes live.
        node.losses = 0
        node.failures = node.failures + 1 if failed else 0
        if not failed:
            node.rests = 0
        if node.failures >= FAILURES_IN_ROW:
            node.rest()
            self.pool.notify(f"node {node.name} failed {FAILURES_IN_ROW} times in a row; others take its work")

    # ---------------------------------------------------------------------------------------------- records

    def _wants_record(self) -> bool:
        # Records that are read ahead are chosen by locality; more of them would only make resuming slower.
        limit = RECORDS_PER_WORKER * max(1, len(self.pool.workers))
        return self.more and len(self.running) + len(self.window) < limit

    def _read_record(self) -> None:
        for record in self.records:
            self.window.append(RecordAttempt(record))
            return
        self.more = False

    def _assign(self) -> None:
        """Give records to idle workers."""
        idle = [
            (key, worker)
            for key, worker in self.pool.workers.items()
            if worker.is_ready and worker.attempt is None and not worker.node.is_left_out
        ]
        awake = [pair for pair in idle if not pair[1].node.is_resting]
        if not awake and all(node.is_resting or node.is_left_out for node in self.pool.nodes.values()):
            awake = idle  # a tired node is better than none
        for key, worker in awake:
            if (attempt := self._choose(worker.node)) is not None:
                self._start(attempt, key, worker)

    def _choose(self, node: Node) -> RecordAttempt[Record] | None:
        """Take the record for an idle worker of a node from the window; None where there is none.

        First come records whose key the node has claimed, then those that nobody has, then the oldest.
        """
        # A record may return to a node that failed with it where no other node is left to try.
        others = {other.id for other in self.pool.nodes.values() if not other.is_left_out}
        allowed = [item for item in self.window if node.id not in item.avoid or not others - item.avoid]
        if not allowed:
            return None
        best = min(allowed, key=lambda item: self._rank(item, node))
        self.window.remove(best)
        return best

    def _rank(self, attempt: RecordAttempt[Record], node: Node) -> int:
        key = self.keeper.get_locality(attempt.record)
        claims = self.pool.get_claims(key)
        # A record that is tried again waits for no particular node.
        if attempt.number > 1 or not key or node.id in claims:
            return 0
        return 2 if claims else 1

    def _start(self, attempt: RecordAttempt[Record], key: str, worker: WorkerState) -> None:
        # New for each attempt, so that late messages of a lost worker are not taken for those of its successor.
        attempt.key = uuid.uuid4().hex
        self.running[attempt.key] = (attempt, key)
        worker.attempt = attempt
        self.pool.claim(self.keeper.get_locality(attempt.record), worker.node)
        attempt.reference = worker.actor.process.remote(attempt.key, self.function, attempt.record)

    def _try_again(self, attempt: RecordAttempt[Record], reason: str) -> Iterator[Result]:
        """Put a record back into the window, as it is stored now; yield its loss after the last attempt."""
        self.keeper.end_record(attempt.record, is_finished=False)
        if attempt.number >= ATTEMPTS:
            yield self.keeper.make_loss(attempt.record, f"{reason}, as {ATTEMPTS - 1} times before")
            self.keeper.end_record(attempt.record, is_finished=True)
            return
        # The lost worker may have stored some of its stages.
        record = self.keeper.resume(attempt.record)
        if record is None:
            self.keeper.end_record(attempt.record, is_finished=True)
            return
        # At the front: its change has waited longest, and its images are still there.
        self.window.appendleft(RecordAttempt(record, attempt.number + 1, attempt.avoid))

    # ----------------------------------------------------------------------------------------- lost workers

    def _watch(self) -> Iterator[Result]:
        """Find lost workers and give their records to others; look for new nodes."""
        if time.monotonic() < self._next_watch:
            return
        self._next_watch = time.monotonic() + WATCH_SECONDS
        workers = self.pool.workers
        references = {
            worker.attempt.reference if worker.attempt else worker.greeting: key
            for key, worker in workers.items()
            if worker.attempt or not worker.is_ready
        }
        ended, _ = ray.wait(list(references), num_returns=len(references), timeout=0) if references else ([], [])
        for reference in ended:
            try:
                ray.get(reference, timeout=CONNECT_SECONDS)
            except RayError as error:
                yield from self._lose(references[reference], error)
        if self.pool.is_draining():
            for worker in workers.values():
                if worker.attempt:
                    worker.actor.drain.remote()
        self.pool.look_for_nodes()
        self._require_node()

    def _require_node(self) -> None:
        """Check that there has been a node lately.

        Raises:
            Transient: all are gone or left out, and no other has come.
        """
        now = time.monotonic()
        if any(not worker.node.is_left_out for worker in self.pool.workers.values()):
            self._had_node = now
        elif now - self._had_node > NO_NODE_SECONDS:
            raise Transient("no node of the cluster is left", advice=f"start one ({START_NODE}), then run this again")

    def _lose(self, key: str, error: RayError) -> Iterator[Result]:
        """Forget a worker whose process is gone, once the messages that it sent before are handled."""
        worker = self.pool.workers[key]
        attempt = worker.attempt
        # Its last messages may still be in the mailbox; the worker is forgotten at the next look.
        if attempt and not attempt.is_lost:
            attempt.is_lost = True
            return
        del self.pool.workers[key]
        self.pool.look_soon()
        node = worker.node
        node.losses += 1
        if not isinstance(error, RayActorError):
            log.warning("a worker of %s ended through a bug: %s", node.name, shorten(error))
        if node.losses >= LOSSES_IN_ROW and not node.is_left_out:
            node.is_left_out = True
            self.pool.notify(f"node {node.name} is left out: it lost {node.losses} workers in a row")
        if attempt and self.running.pop(attempt.key, None):
            attempt.avoid.add(node.id)
            yield from self._try_again(attempt, f"its worker on {node.name} was lost")
