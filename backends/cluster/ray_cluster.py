"""Cluster of Ray: worker processes on the nodes that have a Docker engine. The only module that imports ray.

A worker is an actor that takes one record at a time. It sends each result at once to a mailbox, an actor of its own,
from which the driver takes them in batches: generators are not among what a driver outside of the cluster can use. A
record is given to a worker as an attempt; messages of an attempt that is over (its node was lost, and came back) are
dropped, so no record has results of two attempts that the driver did not put in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import queue
import socket
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from backends.cluster.base import MOST_RESULTS, Cluster, RecordKeeper
from backends.cluster.nodes import NodeFunctions, NodeReport, WorkerNeeds, get_node_name, pickle_message
from core.errors import MachineError, Transient

log = logging.getLogger(__name__)

Record = TypeVar("Record")
Result = TypeVar("Result")

HEAD = "node:__internal_head__"
"""Resource by which Ray marks the head of a cluster."""
ENGINES = "docker"
"""Custom resource of a node: the number of workers that its Docker engine is for."""
START_NODE = """ray start --address=HOST:6379 --resources '{"docker": 4}'"""
ATTEMPTS = 3
"""Attempts at a record whose worker is lost or whose node fails."""
RECORDS_PER_WORKER = 2
"""Records that are read for each worker, those with workers included; a worker chooses among them by locality."""
TAKE_RECORDS, TAKE_SECONDS = 500, 1.0
"""Most messages that one call of the mailbox returns, and its longest wait."""
WATCH_SECONDS = 2.0
"""Time between two looks at workers."""
NODES_SECONDS = 10.0
"""Time between two looks for new nodes."""
CHECK_SECONDS = 90.0
"""Time that a node may take to report on itself."""
CONNECT_SECONDS = 10.0
STOP_SECONDS = 10.0
"""Time that workers may take to end their step when a map is left early."""
FAILURES_IN_ROW = 3
"""Failures of a node, one after the other, after which it rests."""
REST_SECONDS = 60.0
"""First rest of a node; each further one is twice as long."""
LOSSES_IN_ROW = 5
"""Workers that a node may lose, one after the other, before it is left out."""
NO_NODE_SECONDS = 300.0
"""Time without any node that can work, after which a map ends."""

READY, RESULT, DONE, LOG = "ready", "result", "done", "log"


@dataclass(frozen=True)
class _Message:
    """Message of a worker. `key`: of an attempt, or of the worker for READY and LOG."""

    kind: str
    key: str
    content: Any = None


class _Mailbox:
    """Actor with the messages of all workers, in their order."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()

    async def put(self, message: bytes) -> None:
        await self._messages.put(message)

    async def take(self, most: int, seconds: float) -> list[bytes]:
        """Return messages; none after `seconds` without one."""
        try:
            taken = [await asyncio.wait_for(self._messages.get(), seconds)]
        except TimeoutError:
            return []
        while len(taken) < most and not self._messages.empty():
            taken.append(self._messages.get_nowait())
        return taken


class _WorkerActor:
    """Actor that processes records, one at a time. `stop` is called while one is being processed."""

    def __init__(self, key: str, mailbox: Any, functions: NodeFunctions) -> None:
        self._key, self._mailbox, self._functions = key, mailbox, functions
        self._is_stopped = False
        root = logging.getLogger()
        root.addHandler(_MailboxHandler(lambda content: self._send(LOG, self._key, content)))

    def greet(self) -> None:
        self._send(READY, self._key, get_node_name())

    def process(self, attempt: str, function: Callable[[Any], Iterator[Any]], record: Any) -> None:
        error: BaseException | None = None
        try:
            for result in function(record):
                self._send(RESULT, attempt, result)
                if self._is_stopped:
                    break
        except Exception as raised:  # noqa: BLE001 - raised again in the driver
            error = raised
        self._send(DONE, attempt, error)

    def stop(self) -> None:
        self._is_stopped = True
        self._functions.stop()

    def drain(self) -> None:
        self._functions.drain()

    def _send(self, kind: str, key: str, content: Any) -> None:
        ray.get(self._mailbox.put.remote(pickle_message(_Message(kind, key, content))))


class _MailboxHandler(logging.Handler):
    """Sends warnings of a worker to the driver."""

    def __init__(self, send: Callable[[tuple[str, int, str]], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("ray"):
            self._send((record.name, record.levelno, f"{get_node_name()}: {record.getMessage()}"))


@dataclass
class _Node:
    """A node with an engine."""

    id: str
    name: str
    slots: int
    version: str = ""
    failures: int = 0
    """In a row."""
    losses: int = 0
    """Workers lost in a row."""
    rests: int = 0
    rest_until: float = 0.0
    is_left_out: bool = False

    def rest(self) -> None:
        self.rest_until = time.monotonic() + REST_SECONDS * 2**self.rests
        self.rests += 1
        self.failures = 0

    @property
    def is_resting(self) -> bool:
        return time.monotonic() < self.rest_until


@dataclass
class _Attempt(Generic[Record]):
    """A record with a worker."""

    record: Record
    number: int = 1
    avoid: set[str] = field(default_factory=set)
    """Ids of nodes that failed at it."""
    key: str = ""
    has_failed: bool = False
    """Whether the node failed, which is not yielded as another node gets the record."""
    reference: Any = None
    is_lost: bool = False


@dataclass
class _WorkerState:
    """A worker as the driver knows it."""

    actor: Any
    node: _Node
    greeting: Any
    is_ready: bool = False
    attempt: _Attempt[Any] | None = None


class RayCluster(Cluster):
    """Context manager of workers in a Ray cluster, used for any number of maps, one after the other.

    Args:
        address: `ray://HOST:PORT`, or None for a cluster on this machine, which is started and ended here.
        needs: what is reserved for a worker.
        functions: what the nodes run besides the function of a map.
        notify: shows a message.
        stop: called with the exception by which a map is left early.
        is_draining: returns whether the records that are being processed are to end early.

    Raises:
        MachineError: no cluster answers, it has another version, or none of its nodes can be used.
    """

    def __init__(
        self,
        *,
        address: str | None,
        needs: WorkerNeeds,
        functions: NodeFunctions,
        version: str,
        notify: Callable[[str], None],
        stop: Callable[[BaseException], object] = lambda _: None,
        is_draining: Callable[[], bool] = lambda: False,
    ) -> None:
        self.address, self.needs, self.functions, self.version = address, needs, functions, version
        self.notify, self.stop, self.is_draining = notify, stop, is_draining
        self.nodes: dict[str, _Node] = {}
        self.workers: dict[str, _WorkerState] = {}
        self.mailbox: Any = None
        self._checks: dict[str, tuple[Any, float]] = {}
        self._next_look = 0.0
        self._claims: dict[str, set[str]] = {}

    def __enter__(self) -> Self:
        _connect(self.address, self.needs)
        try:
            self.mailbox = _open_mailbox()
            self._find_first_nodes()
        except BaseException:
            ray.shutdown()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(Exception):
            stopping = [worker.actor.stop.remote() for worker in self.workers.values() if worker.is_ready]
            if stopping:
                ray.wait(stopping, num_returns=len(stopping), timeout=STOP_SECONDS)
            for worker in self.workers.values():
                ray.kill(worker.actor)
            ray.kill(self.mailbox)
        self.workers.clear()
        ray.shutdown()

    def map_batches(
        self,
        function: Callable[[Record], Iterator[Result]],
        records: Iterable[Record],
        keeper: RecordKeeper[Record, Result],
    ) -> Generator[list[Result], None, None]:
        """Yield all results. The function is pickled.

        A record whose worker is lost, or whose node fails (`keeper.is_node_failure`), is given to another node, up to
        ATTEMPTS times.
        """
        one = _RayMap(self, ray.put(function), iter(records), keeper)
        try:
            yield from one.run()
        except BaseException as error:
            self.stop(error)
            one.stop_workers()
            raise
        finally:
            one.close()

    # ------------------------------------------------------------------------------------------------- nodes

    def _find_first_nodes(self) -> None:
        """Wait for the reports of the nodes; one that can be used is enough to go on."""
        self._begin_checks()
        if not self._checks:
            raise MachineError(f"no node of the cluster has the resource {ENGINES!r}", advice=START_NODE)
        problems: list[str] = []
        while self._checks:
            problems += self._end_checks(wait=True)
        if not any(node.slots for node in self.nodes.values()):
            raise MachineError(f"no node of the cluster can be used: {'; '.join(problems)}")

    def look_soon(self) -> None:
        """Look for nodes at the next occasion: a worker was lost, perhaps with its node."""
        self._next_look = 0.0

    def look_for_nodes(self) -> None:
        """Take note of nodes that came and went, and start the workers that are missing."""
        now = time.monotonic()
        self._end_checks(wait=False)
        if now >= self._next_look:
            self._begin_checks()
        self.start_workers()

    def _begin_checks(self) -> None:
        self._next_look = time.monotonic() + NODES_SECONDS
        alive = {node["NodeID"]: node for node in _list_nodes() if node["Alive"]}
        for gone in self.nodes.keys() - alive.keys():
            self.notify(f"node {self.nodes.pop(gone).name} is gone")
            for places in self._claims.values():
                places.discard(gone)
        for key, node in alive.items():
            if key in self.nodes or key in self._checks or not node["Resources"].get(ENGINES):
                continue
            place = NodeAffinitySchedulingStrategy(node_id=key, soft=False)
            check = ray.remote(_call).options(num_cpus=0, max_retries=0, scheduling_strategy=place)
            self._checks[key] = (check.remote(self.functions.check), time.monotonic() + CHECK_SECONDS)

    def _end_checks(self, *, wait: bool) -> list[str]:
        """Read the reports that are there; return the problems of nodes that cannot be used."""
        problems = []
        resources = {node["NodeID"]: node for node in _list_nodes()} if self._checks else {}
        for key, (reference, deadline) in list(self._checks.items()):
            timeout = max(0.0, deadline - time.monotonic()) if wait else 0.0
            try:
                report: NodeReport = ray.get(reference, timeout=timeout)
            except GetTimeoutError:
                if time.monotonic() < deadline:
                    continue
                report = NodeReport(name=key[:8], version="", problem="does not answer")
            except RayError as error:
                report = NodeReport(name=key[:8], version="", problem=_shorten(error))
            del self._checks[key]
            node = self._add_node(key, report, resources.get(key, {}).get("Resources", {}))
            if isinstance(node, str):
                problems.append(node)
                self.notify(f"a node is left out: {node}")
        return problems

    def _add_node(self, key: str, report: NodeReport, resources: dict[str, float]) -> _Node | str:
        node = self.nodes[key] = _Node(key, report.name, 0, report.version, is_left_out=True)
        if report.problem:
            return f"{report.name}: {report.problem}"
        if report.version != self.version:
            return f"{report.name} has mergemill {report.version}, this machine {self.version}: install the same"
        limits = {
            f"the resource {ENGINES!r} of at least 1": resources.get(ENGINES, 0),
            f"{self.needs.cpus:g} CPUs": resources.get("CPU", 0) / self.needs.cpus,
            f"{self.needs.memory_bytes >> 20} MB of memory": resources.get("memory", 0) / self.needs.memory_bytes,
        }
        if report.disk_slots is not None:
            limits["more free disk (disk_mb)"] = report.disk_slots
        lacking, least = min(limits.items(), key=lambda item: item[1])
        if least < 1:
            return f"{report.name} is too small for a worker, which needs {lacking}"
        node.slots, node.is_left_out = int(least), False
        return node

    def start_workers(self) -> None:
        """Start workers on all nodes up to their slots, and up to the number that is allowed."""
        counts: dict[str, int] = {}
        for worker in self.workers.values():
            counts[worker.node.id] = counts.get(worker.node.id, 0) + 1
        usable = [node for node in self.nodes.values() if not node.is_left_out]
        while self.needs.workers is None or len(self.workers) < self.needs.workers:
            free = [node for node in usable if counts.get(node.id, 0) < node.slots]
            if not free:
                return
            node = min(free, key=lambda node: counts.get(node.id, 0))  # spread
            self._start_worker(node)
            counts[node.id] = counts.get(node.id, 0) + 1

    def _start_worker(self, node: _Node) -> None:
        key = uuid.uuid4().hex
        options = {
            "num_cpus": self.needs.cpus,
            "memory": self.needs.memory_bytes,
            "resources": {ENGINES: 1},
            "max_concurrency": 2,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node.id, soft=False),
        }
        make: Any = ray.remote(_WorkerActor)
        actor = make.options(**options).remote(key, self.mailbox, self.functions)
        self.workers[key] = _WorkerState(actor, node, actor.greet.remote())

    # ---------------------------------------------------------------------------------------------- locality

    def claim(self, key: str, node: _Node) -> None:
        """Note that a node keeps what records of this key share."""
        if key:
            self._claims.setdefault(key, set()).add(node.id)

    def get_claims(self, key: str) -> set[str]:
        """Return the ids of the nodes that keep what records of this key share."""
        return self._claims.get(key, set())


class _RayMap(Generic[Record, Result]):
    """One map."""

    def __init__(
        self, cluster: RayCluster, function: Any, records: Iterator[Record], keeper: RecordKeeper[Record, Result]
    ) -> None:
        self.cluster, self.function, self.records, self.keeper = cluster, function, records, keeper
        self.window: deque[_Attempt[Record]] = deque()
        """Records without a worker: those to try again, and those that were read ahead."""
        self.running: dict[str, tuple[_Attempt[Record], str]] = {}
        """Key of an attempt -> attempt and key of its worker."""
        self.more = True
        self._next_watch = 0.0
        self._had_node = time.monotonic()
        self._inbox: queue.SimpleQueue[_Message | Exception] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._receiver = threading.Thread(target=self._receive, name="mergemill-mailbox", daemon=True)

    def run(self) -> Iterator[list[Result]]:
        """Yield all results."""
        self._receiver.start()
        while True:
            if lost := list(self._watch()):
                yield lost
            while self._wants_record():
                self._read_record()
                self._assign()
                yield from self._handle_messages(wait=False)
            self._assign()
            if not (self.more or self.window or self.running):
                return
            yield from self._handle_messages(wait=True)

    def close(self) -> None:
        """End the thread of the map; what its workers send is dropped from now on."""
        self._closing.set()
        if self._receiver.ident is not None:
            self._receiver.join(TAKE_SECONDS + CONNECT_SECONDS)
        with contextlib.suppress(queue.Empty):
            while True:  # a worker greets once
                message = self._inbox.get_nowait()
                if isinstance(message, _Message) and message.kind == READY:
                    self._greet(message)

    def stop_workers(self) -> None:
        """End what the workers are waiting for, and wait for the end of their step."""
        busy = [worker for worker in self.cluster.workers.values() if worker.attempt]
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
                taken = ray.get(self.cluster.mailbox.take.remote(TAKE_RECORDS, TAKE_SECONDS))
            except Exception as error:  # noqa: BLE001 - raised in the driver's thread
                self._inbox.put(error)
                return
            for packed in taken:
                message: _Message = pickle.loads(packed)  # noqa: S301 - of our own workers
                found = self.running.get(message.key)
                if message.kind == RESULT and found is not None:
                    worker = self.cluster.workers.get(found[1])
                    self.keeper.observe(message.content, worker.node.name if worker else "")
                self._inbox.put(message)

    def _handle_messages(self, *, wait: bool) -> Iterator[list[Result]]:
        """Handle the messages that are there; with `wait`, wait for one, but not longer than WATCH_SECONDS."""
        results: list[Result] = []
        for message in self._take_messages(wait=wait):
            if results and self._needs_earlier_results(message):
                yield results
                results = []
            results += self._handle(message)
        if results:
            yield results

    def _take_messages(self, *, wait: bool) -> list[_Message | Exception]:
        taken: list[_Message | Exception] = []
        with contextlib.suppress(queue.Empty):
            taken.append(self._inbox.get(wait, timeout=WATCH_SECONDS if wait else None))
            while len(taken) < MOST_RESULTS:
                taken.append(self._inbox.get_nowait())
        return taken

    def _needs_earlier_results(self, message: _Message | Exception) -> bool:
        """Return whether the results of before must be with the caller: a record is read again, or the map ends."""
        if isinstance(message, Exception):
            return True
        attempt, _ = self.running.get(message.key, (None, ""))
        return message.kind == DONE and attempt is not None and (attempt.has_failed or message.content is not None)

    def _handle(self, message: _Message | Exception) -> Iterator[Result]:
        if isinstance(message, Exception):
            advice = "run the same command again once it is there"
            raise Transient(f"the Ray cluster is gone: {_shorten(message)}", advice=advice) from message
        if message.kind == READY:
            self._greet(message)
            self._assign()
        elif message.kind == LOG:
            name, level, text = message.content
            logging.getLogger(name).log(level, "%s", text)
        elif message.key in self.running:
            yield from self._handle_attempt(message)

    def _greet(self, message: _Message) -> None:
        if worker := self.cluster.workers.get(message.key):
            worker.is_ready = True

    def _handle_attempt(self, message: _Message) -> Iterator[Result]:
        attempt, key = self.running[message.key]
        if message.kind == RESULT:
            if attempt.number < ATTEMPTS and self.keeper.is_node_failure(message.content):
                attempt.has_failed = True
                return
            yield message.content
            return
        del self.running[message.key]
        if worker := self.cluster.workers.get(key):
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

    def _judge_node(self, node: _Node, *, failed: bool) -> None:
        """Let a node rest after failures in a row."""
        node.losses = 0
        node.failures = node.failures + 1 if failed else 0
        if not failed:
            node.rests = 0
        if node.failures >= FAILURES_IN_ROW:
            node.rest()
            self.cluster.notify(f"node {node.name} failed {FAILURES_IN_ROW} times in a row; others take its work")

    # ---------------------------------------------------------------------------------------------- records

    def _wants_record(self) -> bool:
        limit = RECORDS_PER_WORKER * max(1, len(self.cluster.workers))
        return self.more and len(self.running) + len(self.window) < limit

    def _read_record(self) -> None:
        for record in self.records:
            self.window.append(_Attempt(record))
            return
        self.more = False

    def _assign(self) -> None:
        """Give records to idle workers."""
        idle = [
            (key, worker)
            for key, worker in self.cluster.workers.items()
            if worker.is_ready and worker.attempt is None and not worker.node.is_left_out
        ]
        awake = [one for one in idle if not one[1].node.is_resting]
        if not awake and all(node.is_resting or node.is_left_out for node in self.cluster.nodes.values()):
            awake = idle  # a tired node is better than none
        for key, worker in awake:
            if (attempt := self._choose(worker.node)) is not None:
                self._start(attempt, key, worker)

    def _choose(self, node: _Node) -> _Attempt[Record] | None:
        """Take the record for an idle worker of a node from the window; None where there is none.

        First come records whose key the node has claimed, then those that nobody has, then the oldest.
        """
        others = {one.id for one in self.cluster.nodes.values() if not one.is_left_out}
        allowed = [one for one in self.window if node.id not in one.avoid or not others - one.avoid]
        if not allowed:
            return None
        best = min(allowed, key=lambda one: self._rank(one, node))
        self.window.remove(best)
        return best

    def _rank(self, attempt: _Attempt[Record], node: _Node) -> int:
        key = self.keeper.get_locality(attempt.record)
        claims = self.cluster.get_claims(key)
        if attempt.number > 1 or not key or node.id in claims:
            return 0
        return 2 if claims else 1

    def _start(self, attempt: _Attempt[Record], key: str, worker: _WorkerState) -> None:
        attempt.key = uuid.uuid4().hex
        self.running[attempt.key] = (attempt, key)
        worker.attempt = attempt
        self.cluster.claim(self.keeper.get_locality(attempt.record), worker.node)
        attempt.reference = worker.actor.process.remote(attempt.key, self.function, attempt.record)

    def _try_again(self, attempt: _Attempt[Record], reason: str) -> Iterator[Result]:
        """Put a record back into the window, as it is stored now; yield its loss after the last attempt."""
        self.keeper.end_record(attempt.record, is_finished=False)
        if attempt.number >= ATTEMPTS:
            yield self.keeper.make_loss(attempt.record, f"{reason}, as {ATTEMPTS - 1} times before")
            self.keeper.end_record(attempt.record, is_finished=True)
            return
        record = self.keeper.resume(attempt.record)
        if record is None:
            self.keeper.end_record(attempt.record, is_finished=True)
            return
        self.window.appendleft(_Attempt(record, attempt.number + 1, attempt.avoid))

    # ----------------------------------------------------------------------------------------- lost workers

    def _watch(self) -> Iterator[Result]:
        """Find lost workers and give their records to others; look for new nodes."""
        if time.monotonic() < self._next_watch:
            return
        self._next_watch = time.monotonic() + WATCH_SECONDS
        workers = self.cluster.workers
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
        if self.cluster.is_draining():
            for worker in workers.values():
                if worker.attempt:
                    worker.actor.drain.remote()
        self.cluster.look_for_nodes()
        self._require_node()

    def _require_node(self) -> None:
        """Check that there has been a node lately.

        Raises:
            Transient: all are gone or left out, and no other has come.
        """
        now = time.monotonic()
        if any(not worker.node.is_left_out for worker in self.cluster.workers.values()):
            self._had_node = now
        elif now - self._had_node > NO_NODE_SECONDS:
            raise Transient("no node of the cluster is left", advice=f"start one ({START_NODE}), then run this again")

    def _lose(self, key: str, error: RayError) -> Iterator[Result]:
        """Forget a worker whose process is gone, once the messages that it sent before are handled."""
        worker = self.cluster.workers[key]
        attempt = worker.attempt
        if attempt and not attempt.is_lost:
            attempt.is_lost = True
            return
        del self.cluster.workers[key]
        self.cluster.look_soon()
        node = worker.node
        node.losses += 1
        if not isinstance(error, RayActorError):
            log.warning("a worker of %s ended through a bug: %s", node.name, _shorten(error))
        if node.losses >= LOSSES_IN_ROW and not node.is_left_out:
            node.is_left_out = True
            self.cluster.notify(f"node {node.name} is left out: it lost {node.losses} workers in a row")
        if attempt and self.running.pop(attempt.key, None):
            attempt.avoid.add(node.id)
            yield from self._try_again(attempt, f"its worker on {node.name} was lost")


# -------------------------------------------------------------------------------------------------- connection


def _is_busy(error: BaseException) -> bool:
    """Return whether the head did not start its process for a driver (in time), which it may do the next time."""
    return isinstance(error, ConnectionAbortedError) or "client server failed" in str(error)


_CONNECT_POLICY = Retrying(
    retry=retry_if_exception(_is_busy), stop=stop_after_attempt(3), wait=wait_fixed(2), reraise=True
)


def _connect(address: str | None, needs: WorkerNeeds) -> None:
    """Connect to a cluster, or start one on this machine.

    Raises:
        MachineError: no cluster answers, or it has another version.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    for name in ("ray", "ray.client_builder"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)  # it warns of its being enabled
    logging.getLogger("ray.util.client.logsclient").disabled = True  # lines of the head's log; workers send their own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray, about its own next versions
        if address is None:
            _start_local(needs)
            return
        _require_port(address)
        try:
            _CONNECT_POLICY(ray.init, address, log_to_driver=False, logging_level=logging.WARNING)
        except (ConnectionError, RuntimeError, RayError) as error:
            text = _shorten(error)
            if "version" in text.lower():
                raise MachineError(
                    f"the cluster at {address} has other versions than this machine: {text}",
                    advice="install the same Python and Ray on both",
                ) from error
            raise MachineError(f"no Ray cluster answers at {address}: {text}", advice=_HEAD_ADVICE) from error


_HEAD_ADVICE = "start one: ray start --head --ray-client-server-port=10001, or check host and port"


def _start_local(needs: WorkerNeeds) -> None:
    workers = needs.workers or os.cpu_count() or 1
    cpus = max(os.cpu_count() or 1, int(needs.cpus * workers + 0.999))
    try:
        ray.init(
            address="local",
            num_cpus=cpus,
            resources={ENGINES: workers},
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
    except (ConnectionError, RuntimeError, RayError, OSError) as error:
        raise MachineError(f"Ray does not start on this machine: {_shorten(error)}") from error


def _require_port(address: str) -> None:
    """Check that something listens, which Ray itself finds out after half a minute."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or 10001
    except ValueError:
        host, port = None, 0
    if not host:
        raise MachineError(f"{address} is not the address of a cluster", advice="ray://HOST:PORT")
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise MachineError(f"no Ray cluster answers at {address}: {reason}", advice=_HEAD_ADVICE) from error


def _open_mailbox() -> Any:
    """Return the mailbox, on the head: any other node may be lost while a run goes on."""
    head = next(node["NodeID"] for node in _list_nodes() if node["Alive"] and HEAD in node["Resources"])
    place = NodeAffinitySchedulingStrategy(node_id=head, soft=False)
    return ray.remote(_Mailbox).options(num_cpus=0, max_concurrency=1000, scheduling_strategy=place).remote()


def _call(function: Callable[[], NodeReport]) -> NodeReport:
    return function()


def _list_nodes() -> list[dict[str, Any]]:
    """Return id, resources and state of all nodes that ever were in the cluster."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return nodes


def _shorten(error: BaseException) -> str:
    """Return an error's text as one line: of a traceback its end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    shown = lines[-1:] if any(line.endswith("Traceback (most recent call last):") for line in lines) else lines[:2]
    return " ".join(shown)[:300]
