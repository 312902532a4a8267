"""Program in a container of its own, with stdin and stdout open: a server that answers in lines.

The engine's attach stream carries stdin in a way and frames of stdout and stderr the other way. The container ends when
the program does, and a program that reads stdin sees its end when this process dies.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from backends.sandbox.container import POLL_SECONDS, Container
from backends.sandbox.output import CappedOutput, FrameDecoder, LineBuffer
from core.errors import CancelledRunError, Transient

CHUNK = 1 << 18
"""Bytes of a read."""


class DockerContainerProcess:
    """See `backends.sandbox.base.ContainerProcess`.

    Args:
        container: created, not yet started.
        translate_errors: function that turns the engine's exceptions into this project's.

    Raises:
        HTTPError: the engine cannot start the container.
    """

    def __init__(self, container: Container, translate_errors: Callable[[], AbstractContextManager[None]]) -> None:
        self._container = container
        self._translate_errors = translate_errors
        self._errors = CappedOutput(container.limits.output_bytes)
        self._lines = LineBuffer()
        self._frames = FrameDecoder(self._errors, self._lines)
        self._has_ended = False
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as opened:
            self._stream: Any = opened.enter_context(container.attach(stdin=True))
            self._poll = opened.enter_context(contextlib.closing(select.epoll()))
            self._poll.register(self._stream.fileno(), select.EPOLLIN)
            container.client.start(container.id)
            self._deadline = time.monotonic() + container.limits.seconds
            self._open = opened.pop_all()

    def write(self, data: bytes) -> None:
        """Write to stdin."""
        if self._has_ended:  # the engine takes input for a container that has ended
            raise Transient(f"the program of container {self._container.id[:12]} has ended")
        try:
            # The SDK wraps plain sockets for reading, encrypted ones not.
            getattr(self._stream, "_sock", self._stream).sendall(data)
        except (OSError, ValueError) as error:
            raise Transient(f"container {self._container.id[:12]} does not read its input: {error}") from error

    def read_line(self) -> bytes:
        """Return the next line of stdout, empty at the end."""
        with self._translate_errors():
            while (line := self._lines.take_line()) is None:
                if self._container.stopping.is_set():
                    raise CancelledRunError("stopped")
                self._has_ended = time.monotonic() >= self._deadline or (
                    bool(self._poll.poll(POLL_SECONDS)) and not self._read_chunk()
                )
                if self._has_ended:
                    return b""
            return line

    def get_errors(self) -> str:
        """Return head and tail of stderr."""
        return self._errors.get_text()

    def close(self) -> None:
        """Kill the container and close its streams."""
        with self._translate_errors():
            self._container.kill()
        self._open.close()

    def _read_chunk(self) -> bool:
        try:
            data = self._stream.read(CHUNK)
        except (ConnectionError, ValueError):  # ValueError: the stream was closed by another thread
            return False
        self._frames.feed(data or b"")
        return bool(data)
