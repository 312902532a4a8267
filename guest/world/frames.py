"""Messages between the server and its processes: JSON with its length (four bytes, big endian) in front."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct(">I")


class FrameTooLongError(Exception):
    """Message that is longer than allowed."""


class FrameReader:
    """Splits received bytes into messages."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._received = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are complete now.

        Raises:
            FrameTooLongError: a message is longer than the limit.
        """
        self._received += data
        frames = []
        while len(self._received) >= HEADER.size:
            (size,) = HEADER.unpack_from(self._received)
            if size > self._limit:
                raise FrameTooLongError(f"a message of {size} bytes")
            if len(self._received) < HEADER.size + size:
                break
            frames.append(bytes(self._received[HEADER.size : HEADER.size + size]))
            del self._received[: HEADER.size + size]
        return frames


def pack_frame(data: bytes) -> bytes:
    """Return a message as it is sent."""
    return HEADER.pack(len(data)) + data


def read_frame(channel: socket.socket) -> Any | None:
    """Return the JSON value of the next message of a blocking socket; None at its end."""
    head = _read_exactly(channel, HEADER.size)
    if head is None:
        return None
    data = _read_exactly(channel, HEADER.unpack(head)[0])
    return None if data is None else json.loads(data)


def _read_exactly(channel: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(min(size - len(data), 1 << 20))
        if not chunk:
            return None
        data += chunk
    return bytes(data)
