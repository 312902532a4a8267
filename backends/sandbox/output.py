"""What a container prints, read from the engine's attach stream and kept within a limit.

The stream is frames: one byte of stream number, three zeros, four bytes of length (big endian), then the payload
(Docker Engine API, "Attach to a container").
"""

from __future__ import annotations

import struct

HEADER = struct.Struct(">BxxxL")


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


class Frames:
    """Takes the attach stream apart, in pieces of any size, and hands the payloads on."""

    def __init__(self, output: CappedOutput) -> None:
        self._output = output
        self._header = bytearray()
        self._missing = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        view = memoryview(data)
        while view:
            if self._missing:
                payload = view[: self._missing]
                self._output.write(payload)
                self._missing -= len(payload)
                view = view[len(payload) :]
                continue
            wanted = HEADER.size - len(self._header)
            self._header += view[:wanted]
            view = view[wanted:]
            if len(self._header) == HEADER.size:
                self._missing = HEADER.unpack(self._header)[1]
                self._header.clear()
