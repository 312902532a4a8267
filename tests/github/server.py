"""The server: real HTTP in threads on a free port. Tests use `GitHub`."""

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
from tests.github.answers import ApiRequest, ApiResponse, RequestLogEntry, make_error_response
from tests.github.apps import ServerApp
from tests.github.cost import QueryCost
from tests.github.faults import FaultPlan, make_primary_limit_response, make_secondary_limit_response
from tests.github.graphql import GraphQLEndpoint, schema
from tests.github.rate_limits import (
    ANONYMOUS,
    AccessToken,
    RateLimitLedger,
    ServerClock,
    TokenAccount,
    TokenLimits,
    Violation,
)
from tests.github.rest import RestEndpoint
from tests.github.world import World

READER = "ghp_reader"


class GitHub:
    """An emulated GitHub that runs inside a `with`. See the package's docstring for its use."""

    def __init__(
        self,
        world: World,
        *,
        tokens: Iterable[AccessToken | str] = (READER,),
        faults: FaultPlan | None = None,
        clock: ServerClock | None = None,
        anonymous: TokenLimits = ANONYMOUS,
        app: ServerApp | None = None,
        latency: float = 0.0,
    ) -> None:
        self.world = world
        given = (AccessToken(token) if isinstance(token, str) else token for token in tokens)
        self.tokens = {token.value: token for token in given}
        self.faults = faults or FaultPlan()
        self.clock = clock or ServerClock()
        self.books = RateLimitLedger(self.clock, anonymous)
        self.app = app
        self.latency = latency
        self.requests: list[RequestLogEntry] = []
        self.port = 0
        self._numbers = 0
        self._rest = RestEndpoint(world, self.books, self.clock, self.tokens, app)
        self._graphql = GraphQLEndpoint(world, self.books)
        self._lock = threading.Lock()

    def __enter__(self) -> GitHub:
        schema()
        self._server = _GitHubServer(("127.0.0.1", self.port), _GitHubHandler)  # port 0 selects any free one
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
        """Address of the API, and prefix of the repositories' addresses before "/OWNER/NAME"."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def enterprise_url(self) -> str:
        """The same for an Enterprise server: REST below /api/v3, GraphQL at /api/graphql."""
        return f"{self.url}/api/v3"

    @property
    def violations(self) -> list[Violation]:
        return self.books.violations

    def account(self, token: str = READER) -> TokenAccount:
        """Return the usage of a token, including its maximum number of concurrent requests."""
        return self.books.account(self.tokens.get(token))

    def list_requests(self, kind: str | None = None) -> list[RequestLogEntry]:
        """Return the log, or its entries of one kind: rest, graphql, git, free."""
        return [line for line in self.requests if kind in (None, line.kind)]

    # ---- one request

    def handle(self, ask: ApiRequest) -> ApiResponse:
        """Check limits, apply faults, answer, record the usage."""
        with self._lock:
            self._numbers += 1
            ask.number = self._numbers
        price = self._graphql.compute_price(ask) if ask.kind == "graphql" else QueryCost()
        running = self.books.begin_request(ask.token)
        try:
            answer = self._answer(ask, price, running)
            delay = answer.delay + self.latency
            if delay:
                time.sleep(delay)
        finally:
            self.books.end_request(ask.token)
        status = 0 if answer.cut_at is not None else answer.status
        cost, token = price.points if ask.kind == "graphql" else 0, ask.token.value if ask.token else ""
        self.requests.append(
            RequestLogEntry(
                ask.number,
                ask.method,
                ask.path,
                token,
                ask.kind,
                status,
                answer.points,
                cost,
                answer.fault,
                self.clock.now(),
            )
        )
        return answer

    def _answer(self, ask: ApiRequest, price: QueryCost, running: int) -> ApiResponse:
        fault = self.faults.select_fault(self, ask, price.largest_page)
        resource = {"graphql": "graphql"}.get(ask.kind, "search" if ask.path.startswith("/search") else "core")
        refused = self._check_credentials(ask)
        if refused:
            return self._add_headers(ask, refused)
        if ask.kind in ("rest", "graphql"):
            self.books.check_wait(ask.number, ask.token, resource)
        if fault and fault.instead:
            answer = fault.instead(self, ask)
            self._charge(ask, answer, resource, price)
        else:
            answer = self._check_limits(ask, resource, running) or self._make_content(ask, price, resource)
        if fault and fault.after:
            answer = fault.after(answer)
        answer.fault = fault.name if fault else ""
        return self._record_required_waits(ask, answer, resource)

    def _charge(self, ask: ApiRequest, answer: ApiResponse, resource: str, price: QueryCost) -> None:
        """Charge the points of an answer; a query that failed on the server costs its points once more."""
        if ask.kind not in ("rest", "graphql"):
            return
        if ask.kind == "graphql" and answer.points:
            answer.points = price.points * (2 if answer.status in (502, 504) else 1)
        self.books.charge(ask.token, resource, answer.points)

    def _record_required_waits(self, ask: ApiRequest, answer: ApiResponse, resource: str) -> ApiResponse:
        """Record the wait that this answer requires."""
        if ask.kind not in ("rest", "graphql"):
            answer.points = 0
            return self._add_headers(ask, answer, resource if ask.kind == "free" else None)
        headers = self.books.make_headers(ask.token, resource) | answer.headers
        answer.headers = headers
        was_received = answer.cut_at is None or answer.cut_at >= 0
        if answer.retry_at is not None and was_received:
            scope = resource if headers["X-RateLimit-Remaining"] == "0" else "*"
            reason = "remaining-0" if scope != "*" else "retry-after"
            self.books.add_required_wait(ask.token, scope, answer.retry_at, reason)
        elif headers["X-RateLimit-Remaining"] == "0" and was_received:
            reset = float(headers["X-RateLimit-Reset"])
            self.books.add_required_wait(ask.token, resource, reset, "remaining-0")
        return self._add_headers(ask, answer)

    def _check_credentials(self, ask: ApiRequest) -> ApiResponse | None:
        header = ask.headers.get("authorization", "")
        if ask.path.startswith("/app/"):
            return None
        expired = ask.token and ask.token.expires_at is not None and self.clock.now() >= ask.token.expires_at
        if header and (not ask.token or ask.token.revoked or expired):
            return make_error_response(401, "Bad credentials")
        if ask.kind == "graphql" and not ask.token:
            return make_error_response(401, "This endpoint requires you to be authenticated.")
        return None

    def _check_limits(self, ask: ApiRequest, resource: str, running: int) -> ApiResponse | None:
        """Return GitHub's rejection if a limit is exceeded, which is a violation for a secondary limit."""
        if ask.kind not in ("rest", "graphql"):
            return None
        account, now = self.books.account(ask.token), self.clock.now()
        with self.books.lock:
            account.refill(resource, now)
            crowded, nothing = account.is_over_minute_limit(ask.kind, now), account.remaining(resource) <= 0
        if running > account.limits.concurrent:
            self.books.add_violation(ask.number, ask.token, "concurrency", f"{running} at once")
            return make_secondary_limit_response(self, 403, account.limits.retry_after)
        if crowded:
            self.books.add_violation(ask.number, ask.token, "per-minute", ask.kind)
            return make_secondary_limit_response(self, 403, account.limits.retry_after)
        if nothing:
            answer = make_primary_limit_response(ask)
            answer.retry_at = float(account.reset[resource])
            return answer
        return None

    def _make_content(self, ask: ApiRequest, price: QueryCost, resource: str) -> ApiResponse:
        if ask.kind == "git":
            return git_http.handle_request(self.world, ask)
        if ask.kind == "graphql":  # charged before, since the answer contains the remaining budget
            self._charge(ask, ApiResponse(200), resource, price)
            answer = self._graphql.answer(ask, price)
            answer.points = price.points
            return answer
        answer = self._rest.answer(ask)
        self._charge(ask, answer, resource, price)
        return answer

    def _add_headers(self, ask: ApiRequest, answer: ApiResponse, resource: str | None = None) -> ApiResponse:
        own = {"X-GitHub-Request-Id": f"{ask.number:04X}:{secrets.token_hex(6).upper()}", "Server": "github.com"}
        if ask.kind != "git":
            own |= {"X-GitHub-Media-Type": "github.v3; format=json", "Vary": "Accept, Authorization"}
            own |= self.books.make_headers(ask.token, resource) if resource else {}
        date = {"Date": email.utils.formatdate(self.clock.now(), usegmt=True)}
        answer.headers = date | own | answer.headers
        return answer


class _GitHubServer(ThreadingHTTPServer):
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
        """Ignore a client that disconnected; report anything else."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def close_connections(self) -> None:
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _GitHubHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    server: _GitHubServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass

    def _handle(self) -> ApiRequest:
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
        token = git_http.find_token(headers.get("authorization", ""), self.server.hub.tokens)
        return ApiRequest(
            0,
            self.command,
            path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers,
            self._body(headers),
            root,
            prefix,
            kind,
            token,
        )

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
        self._send(self.server.hub.handle(self._handle()))

    do_POST = do_HEAD = do_GET  # noqa: N815 - the library's names

    def _send(self, answer: ApiResponse) -> None:
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

    def _send_head(self, answer: ApiResponse) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.stream is not None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()

    def _send_body(self, answer: ApiResponse) -> None:
        """Send the body, or the part of it that a cut allows."""
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
        """Break the connection."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
