"""Connection to a server of worlds: requests of many threads over a single pair of streams."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from core.closable import Closable
from core.errors import InputError, MergemillError, Transient

if TYPE_CHECKING:
    from backends.sandbox.base import ContainerProcess

Answer = Mapping[str, Any]
STOP_SECONDS = 10.0
"""Seconds that a server may take to end; its container is killed afterwards."""


class ServerConnection(Closable):
    """Sends requests and hands each answer to the thread that waits for it. Threads may share it.

    Args:
        process: the server, see `guest.world.server`.
    """

    def __init__(self, process: ContainerProcess) -> None:
        self._process = process
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Answer]] = {}
        self._lock = threading.Lock()
        # A lock of its own: a server whose answers are not read does not read either, and the reader needs the other.
        self._writing = threading.Lock()
        self._failure: MergemillError | None = None
        self._reader = threading.Thread(target=self._read_answers, name="mergemill-worlds", daemon=True)
        self._reader.start()

    @property
    def is_open(self) -> bool:
        """Whether the server answers, as far as is known."""
        return self._failure is None

    def request(self, message: Mapping[str, Any]) -> Answer:
        """Return the answer to a request.

        Raises:
            InputError: the server refuses the request: it names an unknown world or episode, a busy episode or too
                many.
            Transient: the container has ended, or the engine cannot be reached.
            CancelledRunError: the sandbox was stopped.
        """
        future: Future[Answer] = Future()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            number = next(self._numbers)
            self._waiting[number] = future
        line = json.dumps({"id": number, **message}).encode() + b"\n"
        with self._writing:
            self._process.write(line)
        answer = future.result()
        if "error" in answer:
            raise InputError(answer["error"])
        return answer

    def close(self) -> None:
        """End the server and wait until its last answer is read."""
        with contextlib.suppress(MergemillError), self._writing:  # it may have ended by itself
            self._process.write(b'{"op":"stop"}\n')
        self._reader.join(timeout=STOP_SECONDS)

    def _read_answers(self) -> None:
        failure: MergemillError
        try:
            while line := self._process.read_line():
                answer = json.loads(line)
                with self._lock:
                    future = self._waiting.pop(answer["id"])
                future.set_result(answer)
            errors = self._process.get_errors().strip()[-500:]
            failure = Transient(f"the server of worlds has ended{': ' if errors else ''}{errors}")
        except MergemillError as error:
            failure = error
        with self._lock:
            self._failure = failure
            waiting = list(self._waiting.values())
        for future in waiting:
            future.set_exception(failure)
