"""A model server that costs next to nothing: `python -m benchmarks.gateway.fast_model`. It prints its port.

Every answer is the same. A streamed one has as many tokens, and as many seconds between them, as the request's `tokens`
and `pause`.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]

_TOKENS = re.compile(rb'"tokens": ?(\d+)')
_PAUSE = re.compile(rb'"pause": ?([\d.]+)')
FRAME = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "m"}
USAGE = {"prompt_tokens": 4000, "completion_tokens": 60, "total_tokens": 4060}
CALL = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls -la src"}'}}
ANSWER = json.dumps(
    FRAME
    | {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "I look at the files first. " * 8, "tool_calls": [CALL]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": USAGE,
    }
).encode()


def build_chunk(delta: object, finish: str | None = None) -> bytes:
    """Return one event of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: %s\n\n" % json.dumps(FRAME | {"object": "chat.completion.chunk", "choices": [choice]}).encode()


TOKEN = build_chunk({"content": "token "})
END = (
    build_chunk({}, "stop")
    + b"data: %s\n\n" % json.dumps(FRAME | {"object": "chat.completion.chunk", "choices": [], "usage": USAGE}).encode()
    + b"data: [DONE]\n\n"
)


async def application(
    _scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Answer one request."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    tokens = _TOKENS.search(body)
    if tokens is None or b'"stream":' not in body:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": ANSWER})
        return
    pause = _PAUSE.search(body)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    for _ in range(int(tokens[1])):
        await send({"type": "http.response.body", "body": TOKEN, "more_body": True})
        await asyncio.sleep(float(pause[1]) if pause else 0)
    await send({"type": "http.response.body", "body": END})


def main() -> None:
    """Serve until the process is ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        application, http="httptools", loop="uvloop", ws="none", lifespan="off", log_config=None, access_log=False,
        backlog=4096, timeout_keep_alive=120, date_header=False, server_header=False,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
