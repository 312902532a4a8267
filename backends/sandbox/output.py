"""Output of a container, decoded from the engine's attach stream and limited in size.

The stream consists of frames: a byte of stream number, three zeros, four bytes of length (big endian), then the
payload (Docker Engine API, "Attach to a container").
"""

from __future__ import annotations

import struct
import time
from collections import deque
from typing import Protocol

HEADER = struct.Struct(">BxxxL")
STDOUT = 1
READ_RATE = 128 * 1024 * 1024
"""Bytes of output per second that are read of a command.

A command that prints faster waits: all output passes the engine,
on CPUs that are not the container's."""
BURST_SECONDS = 1.0
"""Seconds of silence whose bytes may be read at any speed."""


class OutputSink(Protocol):
    """Receiver of decoded output."""

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        ...


class CappedOutput:
    """Buffer of the first and the last `limit / 2` bytes; the bytes between them are counted and dropped."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append output."""
        self._seen += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Truncated seldom, not at every write, which would copy the tail each time.
        if len(self._tail) > 2 * self._half + 65536:
            del self._tail[: -self._half]

    def get_text(self) -> str:
        """Return the kept bytes as text; undecodable bytes become U+FFFD."""
        tail = self._tail[-self._half :]
        dropped = self._seen - len(self._head) - len(tail)
        between = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
        return bytes(self._head + between + tail).decode("utf-8", errors="replace")


class BoundedBuffer:
    """Buffer of at most `limit` bytes; it is empty when more were written."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen = 0
        self._kept = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        self._seen += len(data)
        if self._seen <= self._limit:
            self._kept += data

    @property
    def has_overflowed(self) -> bool:
        """Whether more bytes were written than it holds."""
        return self._seen > self._limit

    def get_content(self) -> bytes:
        """Return all bytes, or none when there were too many."""
        return b"" if self.has_overflowed else bytes(self._kept)


class LineBuffer:
    """Buffer of complete lines, which are taken individually."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        *lines, rest = bytes(data).split(b"\n")
        for line in lines:
            self._lines.append(bytes(self._rest) + line + b"\n")
            self._rest.clear()
        self._rest += rest

    def take_line(self) -> bytes | None:
        """Return the first line that was not taken yet, or None."""
        return self._lines.popleft() if self._lines else None


class ReadPacer:
    """Keeps the reading of a command's output to `READ_RATE`, so that printing costs the neighbours little."""

    def __init__(self) -> None:
        self._due = 0.0

    def wait(self, size: int) -> None:
        """Sleep until the next bytes may be read. `size`: bytes just read."""
        now = time.monotonic()
        self._due = max(self._due, now - BURST_SECONDS) + size / READ_RATE
        if self._due > now:
            time.sleep(self._due - now)


class FrameDecoder:
    """Decodes the attach stream, in chunks of any size.

    Args:
        output: function that receives stderr, and stdout where there is no `results`.
        results: function that receives stdout.
    """

    def __init__(self, output: OutputSink, results: OutputSink | None = None) -> None:
        self._output = output
        self._results = results
        self._to = output
        self._header = bytearray()
        self._missing = 0

    def feed(self, data: bytes) -> None:
        """Decode the next chunk of the stream."""
        view = memoryview(data)
        while view:
            if self._missing:
                payload = view[: self._missing]
                self._to.write(payload)
                self._missing -= len(payload)
                view = view[len(payload) :]
                continue
            wanted = HEADER.size - len(self._header)
            self._header += view[:wanted]
            view = view[wanted:]
            if len(self._header) == HEADER.size:
                number, self._missing = HEADER.unpack(self._header)
                self._to = self._results if self._results is not None and number == STDOUT else self._output
                self._header.clear()
