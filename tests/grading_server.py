"""The real grading server over a database, in a thread, and a server that fails in scripted ways."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn

from core.config import Settings
from core.sockets import bind_socket
from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.store import Store

TOKEN = "correct horse battery"


@contextmanager
def serve_gradings(settings: Settings, *, queue_limit: int = 1000, port: int = 0) -> Iterator[str]:
    """Serve a database with grading; yield the address."""
    with Store.open(settings.storage.db) as store, closing(bind_socket("127.0.0.1", port)) as listener:
        rules = make_access_rules("127.0.0.1", TOKEN)
        application = make_application(store, settings, rules, queue_limit=queue_limit)
        config = uvicorn.Config(application, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            application.state.grading.close()


@dataclass
class FlakyServer:
    """Answers to `POST /grade`, in their order; the last one is repeated. `reset` closes the connection."""

    answers: list[tuple[int | str, dict[str, str], Any]]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """Requests as they came."""
    url: str = ""

    def choose_answer(self, body: dict[str, Any]) -> tuple[int | str, dict[str, str], Any]:
        """Record a request and return its answer."""
        self.bodies.append(body)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serve_answers(*answers: tuple[int | str, dict[str, str], Any]) -> Iterator[FlakyServer]:
    """Serve scripted answers."""
    script = FlakyServer(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, headers, content = script.choose_answer(body)
            if not isinstance(status, int):
                self.connection.close()
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
