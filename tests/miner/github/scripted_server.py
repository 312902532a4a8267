"""An HTTP server with scripted responses, and a clock on which every wait returns at once."""

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

from miner.github.pool import SystemClock

START = 1_800_000_000.0


class FrozenClock(SystemClock):
    """A clock that only waits advance, and that records them. Shared by threads."""

    def __init__(self) -> None:
        self.time = START
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


@dataclass
class ReceivedRequest:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float

    @property
    def token(self) -> str:
        return self.headers.get("Authorization", "").partition(" ")[2]


@dataclass
class ScriptedAnswer:
    """A response. `cut`: the connection breaks after so many bytes of the body; `slow`: real seconds before it."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    slow: float = 0.0

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class ScriptedServer:
    """Server that sends its responses in order and repeats the last one; a callable builds one from the request."""

    clock: FrozenClock
    url: str = ""
    script: list[ScriptedAnswer | Callable[[ReceivedRequest], ScriptedAnswer]] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def script_answers(self, *answers: ScriptedAnswer | Callable[[ReceivedRequest], ScriptedAnswer]) -> None:
        self.script = list(answers)

    def next_answer(self, request: ReceivedRequest) -> ScriptedAnswer:
        with self.lock:
            self.requests.append(request)
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return step(request) if callable(step) else step


def build_data_answer(cost: int = 1, remaining: int = 4999, **more: Any) -> ScriptedAnswer:
    """Build a successful response to a GraphQL query."""
    rate = {"limit": 5000, "cost": cost, "remaining": remaining, "resetAt": "2027-01-15T09:00:00Z"}
    return ScriptedAnswer(
        200, {"data": {"repository": {"name": "n"}, **more, "rateLimit": rate}}, build_rate_headers(remaining)
    )


def build_error_answer(*errors: Mapping[str, Any], data: Any = None, **headers: str) -> ScriptedAnswer:
    """Build GraphQL errors, which have status 200."""
    return ScriptedAnswer(200, {"data": data, "errors": list(errors)}, headers)


def build_rate_headers(remaining: int, reset: float = START + 1800, limit: int = 5000) -> dict[str, str]:
    """Build the headers that report a budget."""
    return {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": str(int(reset)),
    }


@contextmanager
def run_server(clock: FrozenClock, tls: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
    """Run a server on a free port."""
    server = ScriptedServer(clock)

    class ScriptedHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 16 * 1024
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = ReceivedRequest(self.command, self.path, self.headers, json.loads(body or b"null"), clock.now())
            response = server.next_answer(request)
            time.sleep(response.slow)
            content = b"" if response.status == 304 else response.content()
            self.send_response_only(response.status)
            headers = {"Date": self.date_time_string(clock.now())} | dict(response.headers)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: response.cut])
            self.close_connection = response.cut is not None

        do_POST = do_GET  # noqa: N815 - the name that the base class calls

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Ignore a client that disconnects."""

    with QuietServer(("127.0.0.1", 0), ScriptedHandler) as http:
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
