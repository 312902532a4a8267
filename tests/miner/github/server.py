"""A server that says what a test wants it to say, over real HTTP, and a clock on which every wait is over at once."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from miner.github.pool import Clock

START = 1_800_000_000.0


class Instant(Clock):
    """A clock that stands still but for waits, which it notes. Threads share it."""

    def __init__(self) -> None:
        self.time = START
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float

    @property
    def token(self) -> str:
        return self.headers.get("Authorization", "").partition(" ")[2]


@dataclass
class Said:
    """An answer. `cut`: the connection breaks after so many bytes of the body; `slow`: real seconds before it."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    slow: float = 0.0

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Server:
    """Gives the answers in their order, the last for ever; a callable makes an answer from what was asked."""

    clock: Instant
    url: str = ""
    script: list[Said | Callable[[Asked], Said]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def says(self, *answers: Said | Callable[[Asked], Said]) -> None:
        self.script = list(answers)

    def answer(self, asked: Asked) -> Said:
        with self.lock:
            self.asked.append(asked)
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return step(asked) if callable(step) else step


def data(cost: int = 1, remaining: int = 4999, **more: Any) -> Said:
    """A good answer to a GraphQL query."""
    rate = {"limit": 5000, "cost": cost, "remaining": remaining, "resetAt": "2027-01-15T09:00:00Z"}
    return Said(200, {"data": {"repository": {"name": "n"}, **more, "rateLimit": rate}}, left(remaining))


def errors(*found: Mapping[str, Any], data: Any = None, **headers: str) -> Said:
    """GraphQL's errors, which come with status 200."""
    return Said(200, {"data": data, "errors": list(found)}, headers)


def left(remaining: int, reset: float = START + 1800, limit: int = 5000) -> dict[str, str]:
    """The headers that tell a budget."""
    return {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": str(int(reset)),
    }


@contextmanager
def serving(clock: Instant, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server on a free port, gone afterwards."""
    server = Server(clock)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 16 * 1024
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, self.headers, json.loads(body or b"null"), clock.now())
            said = server.answer(asked)
            time.sleep(said.slow)
            content = b"" if said.status == 304 else said.content()
            self.send_response_only(said.status)
            headers = {"Date": self.date_time_string(clock.now())} | dict(said.headers)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: said.cut])
            self.close_connection = said.cut is not None

        do_POST = do_GET  # noqa: N815 - the name that the base class calls

        def log_message(self, *_: object) -> None:
            """Nothing."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that hung up."""

    with Quiet(("127.0.0.1", 0), Handler) as http:
        if tls:
            http.socket = tls.wrap_socket(http.socket, server_side=True)
        server.url = f"http{'s' if tls else ''}://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
