"""What runs in the cluster's own processes: workers, and the mailbox with their messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ray

from backends.cluster.nodes import NodeFunctions, get_node_name, pickle_message

READY, RESULT, DONE, LOG = "ready", "result", "done", "log"


@dataclass(frozen=True)
class WorkerMessage:
    """Message of a worker. `key`: of an attempt, or of the worker for READY and LOG."""

    kind: str
    key: str
    content: Any = None


class Mailbox:
    """Actor with the messages of all workers, in their order."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()

    async def put(self, message: bytes) -> None:
        """Keep a message until it is taken."""
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


class WorkerActor:
    """Actor that processes records, one at a time. `stop` is called while one is being processed."""

    def __init__(self, key: str, mailbox: Any, functions: NodeFunctions) -> None:
        self._key, self._mailbox, self._functions = key, mailbox, functions
        self._is_stopped = False
        root = logging.getLogger()
        root.addHandler(_MailboxHandler(lambda content: self._send(LOG, self._key, content)))

    def greet(self) -> None:
        """Send that the worker has started."""
        self._send(READY, self._key, get_node_name())

    def process(self, attempt: str, function: Callable[[Any], Iterator[Any]], record: Any) -> None:
        """Send each result of a record, then how it ended."""
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
        """End what the current record waits for; it ends at its next result."""
        self._is_stopped = True
        self._functions.stop()

    def drain(self) -> None:
        """Let records end early."""
        self._functions.drain()

    def _send(self, kind: str, key: str, content: Any) -> None:
        ray.get(self._mailbox.put.remote(pickle_message(WorkerMessage(kind, key, content))))


class _MailboxHandler(logging.Handler):
    """Sends warnings of a worker to the driver."""

    def __init__(self, send: Callable[[tuple[str, int, str]], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("ray"):
            self._send((record.name, record.levelno, f"{get_node_name()}: {record.getMessage()}"))
