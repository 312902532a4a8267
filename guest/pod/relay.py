"""Offer a Unix socket in a pod and relay its connections over stdin and stdout. Runs in a container of its own.

Usage: python3 -c RELAY SOCKET

A frame is the number of the connection (4 bytes, big endian), its kind (1), the length of its payload (4) and that.
This side alone sends `READY`, once the socket is there, and `OPEN`. It ends with its stdin.
"""

import asyncio
import contextlib
import os
import struct
import sys

FRAME = struct.Struct(">IBI")
OPEN, DATA, END, CLOSE, READY = range(5)
CHUNK = 1 << 15


class Relay:
    """Connections by their number."""

    def __init__(self) -> None:
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._count = 0

    def send(self, number: int, kind: int, payload: bytes = b"") -> None:
        """Send a frame."""
        sys.stdout.buffer.write(FRAME.pack(number, kind, len(payload)) + payload)
        sys.stdout.buffer.flush()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay the bytes that a connection sends."""
        self._count += 1
        number = self._count
        self._writers[number] = writer
        self.send(number, OPEN)
        with contextlib.suppress(OSError):
            while True:
                data = await reader.read(CHUNK)
                if not data:
                    break
                self.send(number, DATA, data)
        self.send(number, END)

    async def serve(self, stdin: asyncio.StreamReader) -> None:
        """Relay the bytes that the other side sends, until it ends."""
        while True:
            number, kind, length = FRAME.unpack(await stdin.readexactly(FRAME.size))
            payload = await stdin.readexactly(length)
            writer = self._writers.get(number)
            if writer is None:
                continue
            with contextlib.suppress(OSError):
                if kind == DATA:
                    writer.write(payload)
                elif kind == END and writer.can_write_eof():
                    writer.write_eof()
            if kind == CLOSE:
                writer.close()
                del self._writers[number]


async def main(path: str) -> None:
    """Serve until stdin ends."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - of a relay before this one
    relay, stdin = Relay(), asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    await asyncio.start_unix_server(relay.accept, path)
    os.chmod(path, 0o777)  # noqa: S103, PTH101 - for all users of the pod
    relay.send(0, READY)
    with contextlib.suppress(asyncio.IncompleteReadError):
        await relay.serve(stdin)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
