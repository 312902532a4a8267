"""Requests to the model server: pooled connections, a limit of concurrency, attempts with growing pauses."""

from __future__ import annotations

import asyncio
import json
import random
import re
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from backends.llm.error_responses import ErrorKind, ErrorResponse, classify_error, parse_retry_after
from samplers.gateway.access import Upstream
from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import RETRYABLE_KINDS, ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json, read_object

MAX_BODY = 64 << 20
"""Bytes of a plain answer: text, token ids and log-probs."""
MAX_STREAM = 512 << 20
"""Bytes of a streamed answer, which repeats its frame with each token."""
MAX_EVENT = 16 << 20
MAX_PAUSE = 60.0
"""Seconds between two attempts at most; a longer Retry-After is a failure."""
CONNECT_TIMEOUT = 15.0
MAX_DETAIL = 500
ANTHROPIC_VERSION = "2023-06-01"
_EVENT_END = re.compile(rb"\r?\n\r?\n")
_PATHS = {Dialect.CHAT: "chat/completions", Dialect.MESSAGES: "messages"}
_FAILURE_KINDS = {
    ErrorKind.CONTEXT_LENGTH: ExchangeFailure.CONTEXT,
    ErrorKind.INVALID_KEY: ExchangeFailure.KEY,
    ErrorKind.NO_CREDIT: ExchangeFailure.KEY,
}

EventSink = Callable[[Json, bytes], None]
"""Receives an event of a stream, parsed and as it came."""


class UpstreamClient:
    """Client of a model server. Not thread-safe: bound to an event loop."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.dialect = Dialect.MESSAGES if upstream.dialect == "anthropic" else Dialect.CHAT
        self._base = _complete_url(upstream)
        self._proxy = _find_proxy(self._base)
        self._slots = asyncio.Semaphore(upstream.concurrency)
        self._draining = asyncio.Event()
        timeout = aiohttp.ClientTimeout(
            # A long answer may take any time: only a pause in it is a timeout.
            total=None,
            sock_connect=min(CONNECT_TIMEOUT, upstream.request_timeout),
            sock_read=upstream.request_timeout,
        )
        self._session = aiohttp.ClientSession(
            # Without a limit of its own, as the semaphore limits the requests.
            connector=aiohttp.TCPConnector(limit=0),
            timeout=timeout,
            headers=_build_headers(upstream),
            read_bufsize=1 << 18,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def drain(self) -> None:
        """Begin no more attempts: requests that wait for their turn or for another attempt fail."""
        self._draining.set()

    async def complete(
        self, body: bytes, headers: Mapping[str, str], on_event: EventSink | None, count_attempt: Callable[[], None]
    ) -> Json | None:
        """Send a request until it is answered or cannot be.

        Args:
            body: body as the upstream gets it.
            headers: headers of every attempt, among them the key by which the upstream can recognise the request.
            on_event: function that receives the events of a stream; None for a plain answer. After its first call
                nothing is retried.
            count_attempt: function that is called before each attempt.

        Returns:
            The plain answer; None where events were given.

        Raises:
            GatewayFailure: there is no answer.
        """
        async with self._slots:
            for attempt in range(1, self.upstream.attempts + 1):
                if self._draining.is_set():
                    again = " again" if attempt > 1 else ""
                    raise GatewayFailure(
                        ExchangeFailure.CLOSING, f"the gateway ends before the request was sent{again}", 503
                    )
                count_attempt()
                sink = None if on_event is None else _CountingSink(on_event)
                try:
                    return await self._attempt(body, headers, sink)
                except GatewayFailure as failure:
                    has_begun = sink is not None and sink.count > 0
                    is_last = attempt == self.upstream.attempts or failure.retry_after > MAX_PAUSE
                    if has_begun or is_last or failure.kind not in RETRYABLE_KINDS:
                        raise
                    await self._pause(self._compute_pause(attempt, failure.retry_after))
        raise AssertionError("an upstream has at least one attempt")

    async def _pause(self, seconds: float) -> None:
        """Wait between two attempts, or until no more are begun."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._draining.wait(), seconds)

    def _compute_pause(self, attempt: int, retry_after: float) -> float:
        grown = min(self.upstream.first_pause * 2 ** (attempt - 1), MAX_PAUSE)
        # The random part spreads the attempts of requests that failed together.
        return max(retry_after, float(grown) * random.uniform(0.5, 1.0))  # noqa: S311

    async def _attempt(self, body: bytes, headers: Mapping[str, str], sink: _CountingSink | None) -> Json | None:
        async with self._send("POST", _PATHS[self.dialect], body, headers, is_streamed=sink is not None) as response:
            if sink is not None and response.content_type == "text/event-stream":
                await self._read_events(response, sink)
                return None
            return _parse_answer(await _read_body(response), self.dialect)

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, is_streamed: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield a response with status 200; failures of the transport and other statuses are raised."""
        accept = {"Accept": "text/event-stream" if is_streamed else "application/json"}
        has_answer = False
        try:
            url = f"{self._base}/{path}"
            async with self._session.request(
                method, url, data=body, headers={**headers, **accept}, proxy=self._proxy
            ) as response:
                has_answer = response.status == 200
                if not has_answer:
                    raise self._read_error(response, await _read_body(response))
                yield response
        except aiohttp.ConnectionTimeoutError as error:
            raise GatewayFailure(ExchangeFailure.CONNECTION, "the upstream accepts no connection", 502) from error
        except TimeoutError as error:
            detail = f"the upstream sent nothing for {self.upstream.request_timeout:g} s"
            raise GatewayFailure(ExchangeFailure.TIMEOUT, detail, 504) from error
        except aiohttp.ClientError as error:
            kind = ExchangeFailure.CUT if has_answer else ExchangeFailure.CONNECTION
            detail = f"{'the answer was cut' if has_answer else 'cannot reach the upstream'}: {_describe_error(error)}"
            raise GatewayFailure(kind, detail, 502) from error

    async def _read_events(self, response: aiohttp.ClientResponse, sink: _CountingSink) -> None:
        rest = b""
        size = 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            *events, rest = _split_events(rest + chunk)
            for event in events:
                sink.feed(event)
            if size > MAX_STREAM or len(rest) > MAX_EVENT:
                raise GatewayFailure(ExchangeFailure.TOO_LARGE, f"the answer has more than {MAX_STREAM >> 20} MB", 502)
        # The last event may lack the empty line behind it.
        if rest.strip():
            sink.feed(rest)
        if not sink.count:
            raise GatewayFailure(ExchangeFailure.CUT, "the answer was cut: it has no event", 502)

    def _read_error(self, response: aiohttp.ClientResponse, content: bytes) -> GatewayFailure:
        error = _parse_error(content)
        given = error.get("message") or content[:MAX_DETAIL].decode(errors="replace").strip()
        message = given if isinstance(given, str) else json.dumps(given)
        read = ErrorResponse(
            status=response.status, code=str(error.get("code") or error.get("type") or ""), message=message
        )
        error_kind = classify_error(read)
        kind = _FAILURE_KINDS.get(error_kind)
        if kind is None and error_kind is ErrorKind.RETRYABLE:
            kind = ExchangeFailure.RATE_LIMIT if response.status == 429 else ExchangeFailure.SERVER
        elif kind is None:
            kind = ExchangeFailure.SERVER if response.status >= 500 else ExchangeFailure.REJECTED
        detail = self.redact(f"the upstream answered {response.status}: {message[:MAX_DETAIL]}")
        after = parse_retry_after({name.lower(): value for name, value in response.headers.items()})
        return GatewayFailure(kind, detail, response.status, retry_after=after)

    def redact(self, text: str) -> str:
        """Return a text without the upstream's key."""
        return text.replace(self.upstream.key, "[key]") if self.upstream.key else text

    async def get_json(self, method: str, path: str, body: bytes | None = None) -> Json:
        """Return the response that another route of the upstream answers.

        Raises:
            GatewayFailure: there is no answer.
        """
        async with self._send(method, path, body, {}, is_streamed=False) as response:
            return _parse_object(await _read_body(response))


class _CountingSink:
    """Parses events, gives them on, and counts them."""

    def __init__(self, on_event: EventSink) -> None:
        self.count = 0
        self._on_event = on_event

    def feed(self, raw: bytes) -> None:
        """Give on a single event; comments and the mark of the end have no data."""
        data = _read_data(raw)
        if not data or data == b"[DONE]":
            return
        event = _parse_object(data)
        self.count += 1
        self._on_event(event, raw)


def _split_events(content: bytes) -> list[bytes]:
    # Splitting bytes is faster than the expression, which only lines with CRLF need.
    return content.split(b"\n\n") if b"\r" not in content else _EVENT_END.split(content)


def _read_data(raw: bytes) -> bytes:
    """Return the data of an event."""
    # A shorter way for the usual event, which is a single line.
    if raw.startswith(b"data:") and b"\n" not in raw:
        return raw[5:].strip()
    lines = [line[5:].strip() for line in raw.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines)


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > MAX_BODY:
            raise GatewayFailure(ExchangeFailure.TOO_LARGE, f"the answer has more than {MAX_BODY >> 20} MB", 502)
    return bytes(content)


def _describe_error(error: aiohttp.ClientError) -> str:
    """Return the reason of a failed connection in plain words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its host is unknown"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "it accepts no connection"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | aiohttp.ClientOSError):
        return "the connection was closed"
    return "the connection failed"


def _parse_object(content: bytes) -> Json:
    try:
        return read_object(content)
    except (ValueError, RecursionError) as error:
        begin = content[:80].decode(errors="replace").strip()
        detail = f"the upstream's answer is not JSON; it begins with {begin!r}"
        raise GatewayFailure(ExchangeFailure.NONSENSE, detail, 502) from error


def _parse_answer(content: bytes, dialect: Dialect) -> Json:
    answer = _parse_object(content)
    if answer.get("error"):
        raise GatewayFailure(
            ExchangeFailure.SERVER, f"the upstream answered {json.dumps(answer['error'])[:MAX_DETAIL]}", 502
        )
    holder = "choices" if dialect is Dialect.CHAT else "content"
    if not isinstance(answer.get(holder), list) or (dialect is Dialect.CHAT and not answer[holder]):
        raise GatewayFailure(ExchangeFailure.NONSENSE, f"the upstream's answer has no `{holder}`", 502)
    return answer


def _parse_error(content: bytes) -> Mapping[str, Any]:
    try:
        error = read_object(content).get("error")
    except (ValueError, RecursionError):
        return {}
    if isinstance(error, Mapping):
        return error
    return {"message": error} if isinstance(error, str) else {}


def _complete_url(upstream: Upstream) -> str:
    base = upstream.url.rstrip("/")
    is_anthropic = upstream.dialect == "anthropic"
    return f"{base}/v1" if is_anthropic and not base.endswith("/v1") else base


def _find_proxy(url: str) -> str | None:
    """Return the proxy of the environment for a URL. aiohttp would look for it in a thread, with every request."""
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _build_headers(upstream: Upstream) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": "mergemill-gateway"}
    if upstream.dialect == "anthropic":
        headers["anthropic-version"] = ANTHROPIC_VERSION
        return headers | ({"x-api-key": upstream.key} if upstream.key else {})
    return headers | ({"Authorization": f"Bearer {upstream.key}"} if upstream.key else {})
