"""Load on a chat completions API by a client that costs little itself: plain HTTP/1.1 over asyncio."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from dataclasses import dataclass, field

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_FILLER = "def f(x):\n    return x + 1  # a line of a file that the agent has read\n"
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class LoadTarget:
    """A server under load."""

    name: str
    port: int
    path: str = "/v1/chat/completions"
    key: str = "k"


@dataclass
class StreamMeasures:
    """What came of many streams. Times in seconds."""

    first_token: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    failed: int = 0


def build_request(target: LoadTarget, kilobytes: int, **more: object) -> bytes:
    """Return a request, which is like no other, with a conversation of about so many kilobytes."""
    turns = max(kilobytes // 2, 1)
    content = _FILLER * (2048 // len(_FILLER))
    messages: list[object] = [{"role": "user", "content": f"task {next(_numbers)}"}]
    for turn in range(turns):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "bash", "arguments": '{"command": "cat f"}'}}
        messages.append({"role": "assistant", "content": "I read it.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": content})
    body = json.dumps({"model": "m", "messages": messages, "tools": [TOOL], **more}).encode()
    head = (
        f"POST {target.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {target.key}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def send_request(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes
) -> tuple[float, bytes]:
    """Send a request on an open connection; return the seconds until its answer was there, and the answer."""
    reader, writer = connection
    began = time.perf_counter()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    content = await reader.readexactly(int(length[1])) if length else await _read_chunks(reader)
    seconds = time.perf_counter() - began
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"{head.decode()}{content[:500].decode(errors='replace')}")
    return seconds, content


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    content = b""
    while size := int(await reader.readline(), 16):
        content += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return content


async def measure_latency(target: LoadTarget, requests: list[bytes], concurrency: int) -> list[float]:
    """Return the seconds of each request, sent by so many clients, each on a connection of its own."""
    waiting = iter(requests)
    latencies: list[float] = []

    async def work() -> None:
        connection = await asyncio.open_connection("127.0.0.1", target.port)
        for request in waiting:
            seconds, _ = await send_request(connection, request)
            latencies.append(seconds)
        connection[1].close()

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return latencies


async def measure_throughput(target: LoadTarget, kilobytes: int, concurrency: int, seconds: float) -> float:
    """Return the requests a second that are answered while so many clients send one after the other."""
    prepared = itertools.cycle([build_request(target, kilobytes) for _ in range(64)])
    until = time.perf_counter() + seconds
    done = 0

    async def work(number: int) -> None:
        nonlocal done
        connection = await asyncio.open_connection("127.0.0.1", target.port)
        mark = b"task "
        for turn in itertools.count():
            if time.perf_counter() > until:
                break
            request = next(prepared)
            at = request.index(mark) + len(mark)
            width = request.index(b'"', at) - at
            unique = b"%0*x" % (width, (number * 1_000_003 + turn) % 16**width)
            await send_request(connection, request[:at] + unique + request[at + width :])
            done += 1
        connection[1].close()

    began = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(concurrency)))
    return done / (time.perf_counter() - began)


async def measure_streams(target: LoadTarget, count: int, tokens: int, pause: float, ramp: float) -> StreamMeasures:
    """Open so many streams within `ramp` seconds and read them to their end.

    Args:
        target: the server.
        count: streams at once.
        tokens: of each stream.
        pause: seconds between two tokens.
        ramp: seconds in which the streams begin; `tokens * pause` must be longer, so that all are open at once.
    """
    measures = StreamMeasures()

    async def work(number: int) -> None:
        await asyncio.sleep(ramp * number / count)
        request = build_request(target, 2, stream=True, tokens=tokens, pause=pause)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            began = time.perf_counter()
            writer.write(request)
            content = await reader.readuntil(b'"token ')
            measures.first_token.append(time.perf_counter() - began)
            content += await reader.readuntil(b"[DONE]")
            measures.tokens.append(content.count(b'"token '))
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            measures.failed += 1

    await asyncio.gather(*(work(number) for number in range(count)))
    return measures
