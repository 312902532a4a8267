"""Code that runs in the cluster's own processes: workers, and the mailbox with their messages."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ray

from backends.cluster.base import Notice
from backends.cluster.nodes import NodeFunctions, get_node_name, pickle_message

READY, RESULT, DONE, LOG = "ready", "result", "done", "log"
SENT_AT_ONCE = 100
"""Most messages that a worker sends to the mailbox with a call."""
NOTICE_SECONDS = 0.05
"""Longest time that messages wait for others."""
GATHER_SECONDS = 0.01
"""Time in which the mailbox gathers messages for a call of the driver, which stores them together."""
MOST_UNSENT = 1000
"""Messages after which a worker waits for the mailbox."""


@dataclass(frozen=True)
class WorkerMessage:
    """Message of a worker. `key`: of an attempt, or of the worker for READY and LOG."""

    kind: str
    key: str
    content: Any = None


class Mailbox:
    """Actor with the messages of all workers; those of a worker are in their order."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()

    async def put(self, messages: list[bytes]) -> None:
        """Keep messages until they are taken."""
        for message in messages:
            await self._messages.put(message)

    async def take(self, most: int, seconds: float) -> list[bytes]:
        """Return messages, also those that come right after the first; none after `seconds` without one."""
        try:
            taken = [await asyncio.wait_for(self._messages.get(), seconds)]
        except TimeoutError:
            return []
        await asyncio.sleep(GATHER_SECONDS)
        while len(taken) < most and not self._messages.empty():
            taken.append(self._messages.get_nowait())
        return taken


class Sender:
    """Sends the messages of a process to the mailbox, in their order.

    A call takes some milliseconds of worker, head and driver, so that messages which nobody waits for are sent with the
    next messages, or after NOTICE_SECONDS.
    """

    def __init__(self, mailbox: Any) -> None:
        self._mailbox = mailbox
        self._unsent: queue.Queue[bytes] = queue.Queue(MOST_UNSENT)
        self._failure: Exception | None = None
        self._is_awaited = threading.Event()
        threading.Thread(target=self._run, name="mergemill-sender", daemon=True).start()

    def send(self, message: WorkerMessage) -> None:
        """Send a message soon; raise the error that an earlier send failed with."""
        self._check()
        self._unsent.put(pickle_message(message))

    def flush(self) -> None:
        """Wait until the mailbox has all messages; raise the error that sending failed with."""
        self._is_awaited.set()
        self._unsent.join()
        self._is_awaited.clear()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while True:
            messages = [self._unsent.get()]
            self._is_awaited.wait(NOTICE_SECONDS)
            while len(messages) < SENT_AT_ONCE and not self._unsent.empty():
                messages.append(self._unsent.get())
            try:
                if self._failure is None:
                    ray.get(self._mailbox.put.remote(messages))
            except Exception as error:  # noqa: BLE001 - raised in the threads that send
                self._failure = error
            for _ in messages:
                self._unsent.task_done()


class WorkerActor:
    """Actor that processes records, one at a time. `stop` is called while one is being processed."""

    def __init__(self, key: str, mailbox: Any, functions: NodeFunctions) -> None:
        self._key, self._sender, self._functions = key, Sender(mailbox), functions
        self._is_stopped = False
        root = logging.getLogger()
        root.addHandler(_MailboxHandler(lambda content: self._send(LOG, self._key, content)))

    def greet(self) -> None:
        """Send that the worker has started."""
        self._send(READY, self._key, get_node_name())
        self._sender.flush()

    def process(self, attempt: str, function: Callable[[Any], Iterator[Any]], record: Any) -> None:
        """Send each result of a record, then how it ended; return when the driver can read all of that."""
        error: BaseException | None = None
        try:
            for result in function(record):
                self._send(RESULT, attempt, result)
                if not isinstance(result, Notice):
                    self._sender.flush()
                if self._is_stopped:
                    break
        except Exception as raised:  # noqa: BLE001 - raised again in the driver
            error = raised
        self._send(DONE, attempt, error)
        self._sender.flush()

    def stop(self) -> None:
        """End the work that the current record waits for; it ends at its next result."""
        self._is_stopped = True
        self._functions.stop()

    def drain(self) -> None:
        """Let records end early."""
        self._functions.drain()

    def _send(self, kind: str, key: str, content: Any) -> None:
        self._sender.send(WorkerMessage(kind, key, content))


class _MailboxHandler(logging.Handler):
    """Sends warnings of a worker to the driver."""

    def __init__(self, send: Callable[[tuple[str, int, str]], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("ray"):
            self._send((record.name, record.levelno, f"{get_node_name()}: {record.getMessage()}"))
