"""What a container prints, read from the engine's attach stream and kept within a limit.

The stream is frames: one byte of stream number, three zeros, four bytes of length (big endian), then the payload
(Docker Engine API, "Attach to a container").
"""

from __future__ import annotations

import struct

HEADER = struct.Struct(">BxxxL")
STDOUT = 1


class CappedOutput:
    """Keeps the first and the last half of `limit` bytes; what lies between is counted and dropped."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def write(self, data: bytes | memoryview) -> None:
        """Take more output."""
        self._seen += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Cut seldom, not at every write: a gigabyte must not be moved byte by byte.
        if len(self._tail) > 2 * self._half + 65536:
            del self._tail[: -self._half]

    def text(self) -> str:
        """What was kept, as text; undecodable bytes become U+FFFD."""
        tail = self._tail[-self._half :]
        dropped = self._seen - len(self._head) - len(tail)
        between = f"\n[... {dropped} bytes left out ...]\n".encode() if dropped else b""
        return bytes(self._head + between + tail).decode("utf-8", errors="replace")


class Results:
    """Keeps everything up to `limit` bytes, and nothing of what is longer."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen = 0
        self._kept = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        """Take more of them."""
        self._seen += len(data)
        if self._seen <= self._limit:
            self._kept += data

    def content(self) -> bytes:
        """All that came, or nothing when that was too much."""
        return bytes(self._kept) if self._seen <= self._limit else b""


class Frames:
    """Takes the attach stream apart, in pieces of any size, and hands the payloads on.

    `results`: takes what comes on stdout; without it both streams are output.
    """

    def __init__(self, output: CappedOutput, results: Results | None = None) -> None:
        self._output = output
        self._results = results
        self._to: CappedOutput | Results = output
        self._header = bytearray()
        self._missing = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream."""
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
