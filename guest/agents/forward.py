"""Forward connections of a container's own address to the gateway's Unix socket. Runs inside the container.

Usage: python forward.py PORT SOCKET

A container without network has no other way out. While the gateway is started again its socket is missing: a
connection then waits, so that agents see a slow answer and not a refused connection.
"""

import asyncio
import sys

PATIENCE = 120.0
"""Seconds that a connection waits for the gateway."""
PAUSE = 0.2
CHUNK = 1 << 16


async def open_socket(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the gateway, which may be missing for a while."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            return await asyncio.open_unix_connection(path)
        except OSError:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(PAUSE)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy a direction until its end."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        pass


async def forward(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward a connection."""
    try:
        up_reader, up_writer = await open_socket(path)
        try:
            up, down = asyncio.ensure_future(copy(reader, up_writer)), asyncio.ensure_future(copy(up_reader, writer))
            await down
            up.cancel()
        finally:
            up_writer.close()
    except OSError:
        pass
    finally:
        writer.close()


async def main(port: int, path: str) -> None:
    """Serve until the container ends."""
    server = await asyncio.start_server(lambda r, w: forward(path, r, w), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
