"""The server: real HTTP in threads on a free port. `GitHub` is what tests hold."""

from __future__ import annotations

import email.utils
import math
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.github import git_http
from tests.github.answers import Answer, Ask, Asked, message
from tests.github.apps import App
from tests.github.budget import ANONYMOUS, Account, Books, Clock, Limits, Token, Violation
from tests.github.cost import Cost
from tests.github.faults import Faults, limited, too_fast
from tests.github.graphql import GraphQL, schema
from tests.github.rest import Rest
from tests.github.world import World

READER = "ghp_reader"


class GitHub:
    """A made-up GitHub that answers while the `with` lasts. See the package's docstring for its use."""

    def __init__(
        self, world: World, *, tokens: Iterable[Token | str] = (READER,), faults: Faults | None = None,
        clock: Clock | None = None, anonymous: Limits = ANONYMOUS, app: App | None = None, latency: float = 0.0,
    ) -> None:  # fmt: skip
        self.world = world
        given = (Token(token) if isinstance(token, str) else token for token in tokens)
        self.tokens = {token.value: token for token in given}
        self.faults = faults or Faults()
        self.clock = clock or Clock()
        self.books = Books(self.clock, anonymous)
        self.app = app
        self.latency = latency
        self.requests: list[Asked] = []
        self.port = 0
        self._numbers = 0
        self._rest = Rest(world, self.books, self.clock, self.tokens, app)
        self._graphql = GraphQL(world, self.books)
        self._lock = threading.Lock()

    def __enter__(self) -> GitHub:
        schema()
        self._server = _Server(("127.0.0.1", self.port), _Handler)  # a port of 0 is any free one
        self._server.hub = self
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The API's address, and before "/OWNER/NAME" that of the repositories."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def enterprise_url(self) -> str:
        """The same as an Enterprise server has it: REST below /api/v3, GraphQL at /api/graphql."""
        return f"{self.url}/api/v3"

    @property
    def violations(self) -> list[Violation]:
        return self.books.violations

    def account(self, token: str = READER) -> Account:
        """What a token has used, and how many requests it had running at most."""
        return self.books.account(self.tokens.get(token))

    def asked(self, kind: str | None = None) -> list[Asked]:
        """The log, or its lines of one kind: rest, graphql, git, free."""
        return [line for line in self.requests if kind in (None, line.kind)]

    # ---- one request

    def handle(self, ask: Ask) -> Answer:
        """Check limits, let faults strike, answer, keep the books."""
        with self._lock:
            self._numbers += 1
            ask.number = self._numbers
        price = self._graphql.price(ask) if ask.kind == "graphql" else Cost()
        running = self.books.enter(ask.token)
        try:
            answer = self._answer(ask, price, running)
            delay = answer.delay + self.latency
            if delay:
                time.sleep(delay)
        finally:
            self.books.leave(ask.token)
        status = 0 if answer.cut_at is not None else answer.status
        cost, token = price.points if ask.kind == "graphql" else 0, ask.token.value if ask.token else ""
        self.requests.append(
            Asked(ask.number, ask.method, ask.path, token, ask.kind, status, answer.points, cost, answer.fault,
                  self.clock.now())
        )  # fmt: skip
        return answer

    def _answer(self, ask: Ask, price: Cost, running: int) -> Answer:
        fault = self.faults.pick(self, ask, price.largest_page)
        resource = {"graphql": "graphql"}.get(ask.kind, "search" if ask.path.startswith("/search") else "core")
        refused = self._credentials(ask)
        if refused:
            return self._with_headers(ask, refused)
        if ask.kind in ("rest", "graphql"):
            self.books.check_waited(ask.number, ask.token, resource)
        if fault and fault.instead:
            answer = fault.instead(self, ask)
            self._charge(ask, answer, resource, price)
        else:
            answer = self._limits(ask, resource, running) or self._content(ask, price, resource)
        if fault and fault.after:
            answer = fault.after(answer)
        answer.fault = fault.name if fault else ""
        return self._book(ask, answer, resource)

    def _charge(self, ask: Ask, answer: Answer, resource: str, price: Cost) -> None:
        """Take the points of an answer; a query that failed on the server costs its points once more."""
        if ask.kind not in ("rest", "graphql"):
            return
        if ask.kind == "graphql" and answer.points:
            answer.points = price.points * (2 if answer.status in (502, 504) else 1)
        self.books.charge(ask.token, resource, answer.points)

    def _book(self, ask: Ask, answer: Answer, resource: str) -> Answer:
        """Remember what the client is told to wait for by this answer."""
        if ask.kind not in ("rest", "graphql"):
            answer.points = 0
            return self._with_headers(ask, answer, resource if ask.kind == "free" else None)
        told = self.books.headers(ask.token, resource) | answer.headers
        answer.headers = told
        heard = answer.cut_at is None or answer.cut_at >= 0
        if answer.retry_at is not None and heard:
            scope = resource if told["X-RateLimit-Remaining"] == "0" else "*"
            why = "remaining-0" if scope != "*" else "retry-after"
            self.books.tell(ask.token, scope, answer.retry_at, why)
        elif told["X-RateLimit-Remaining"] == "0" and heard:
            reset = float(told["X-RateLimit-Reset"])
            self.books.tell(ask.token, resource, reset, "remaining-0")
        return self._with_headers(ask, answer)

    def _credentials(self, ask: Ask) -> Answer | None:
        header = ask.headers.get("authorization", "")
        if ask.path.startswith("/app/"):
            return None
        expired = ask.token and ask.token.expires_at is not None and self.clock.now() >= ask.token.expires_at
        if header and (not ask.token or ask.token.revoked or expired):
            return message(401, "Bad credentials")
        if ask.kind == "graphql" and not ask.token:
            return message(401, "This endpoint requires you to be authenticated.")
        return None

    def _limits(self, ask: Ask, resource: str, running: int) -> Answer | None:
        """GitHub's refusal when a real limit is passed, which is a violation when it is a secondary one."""
        if ask.kind not in ("rest", "graphql"):
            return None
        account, now = self.books.account(ask.token), self.clock.now()
        with self.books.lock:
            account.refill(resource, now)
            crowded, nothing = account.crowded(ask.kind, now), account.remaining(resource) <= 0
        if running > account.limits.concurrent:
            self.books.blame(ask.number, ask.token, "concurrency", f"{running} at once")
            return too_fast(self, 403, account.limits.retry_after)
        if crowded:
            self.books.blame(ask.number, ask.token, "per-minute", ask.kind)
            return too_fast(self, 403, account.limits.retry_after)
        if nothing:
            answer = limited(ask)
            answer.retry_at = float(account.reset[resource])
            return answer
        return None

    def _content(self, ask: Ask, price: Cost, resource: str) -> Answer:
        if ask.kind == "git":
            return git_http.answer(self.world, ask)
        if ask.kind == "graphql":  # charged before: its answer tells what remains after it
            self._charge(ask, Answer(200), resource, price)
            answer = self._graphql.answer(ask, price)
            answer.points = price.points
            return answer
        answer = self._rest.answer(ask)
        self._charge(ask, answer, resource, price)
        return answer

    def _with_headers(self, ask: Ask, answer: Answer, resource: str | None = None) -> Answer:
        own = {"X-GitHub-Request-Id": f"{ask.number:04X}:{secrets.token_hex(6).upper()}", "Server": "github.com"}
        if ask.kind != "git":
            own |= {"X-GitHub-Media-Type": "github.v3; format=json", "Vary": "Accept, Authorization"}
            own |= self.books.headers(ask.token, resource) if resource else {}
        date = {"Date": email.utils.formatdate(self.clock.now(), usegmt=True)}
        answer.headers = date | own | answer.headers
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    hub: GitHub

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.open: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours; anything else is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def close_connections(self) -> None:
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass

    def _ask(self) -> Ask:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        root = f"http://{headers.get('host', f'127.0.0.1:{self.server.hub.port}')}"
        path, prefix = parts.path, ""
        if path == "/api/graphql" or path.startswith("/api/v3/"):
            prefix = "/api/v3"
            path = path.removeprefix("/api/v3") if path != "/api/graphql" else "/graphql"
        kind = "graphql" if path == "/graphql" else "git" if git_http.is_git(path) else "rest"
        if path == "/rate_limit" or path.startswith("/app/"):
            kind = "free"
        token = git_http.token_of(headers.get("authorization", ""), self.server.hub.tokens)
        return Ask(
            0, self.command, path, dict(parse_qsl(parts.query, keep_blank_values=True)), headers, self._body(headers),
            root, prefix, kind, token,
        )  # fmt: skip

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_GET(self) -> None:
        self._send(self.server.hub.handle(self._ask()))

    do_POST = do_HEAD = do_GET  # noqa: N815 - the library's names

    def _send(self, answer: Answer) -> None:
        try:
            if answer.cut_at is None or answer.cut_at >= 0:
                self._send_head(answer)
                if self.command == "HEAD" or answer.status == 304:
                    return
                self._send_body(answer)
            if answer.cut_at is not None:
                self._cut()
        finally:
            if answer.stream is not None:
                answer.stream.close()

    def _send_head(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.stream is not None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()

    def _send_body(self, answer: Answer) -> None:
        """The body, or so much of it as a cut lets through: never all."""
        left = math.inf if answer.cut_at is None else answer.cut_at
        if answer.stream is None:
            most = len(answer.body) if answer.cut_at is None else min(answer.cut_at, len(answer.body) // 2)
            self.wfile.write(answer.body[:most])
        for chunk in answer.stream or ():
            part = chunk if len(chunk) <= left else chunk[: int(left)]
            left -= len(part)
            if part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            if left <= 0:
                break
        if answer.stream is not None and answer.cut_at is None:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _cut(self) -> None:
        """Break the connection without a farewell."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
