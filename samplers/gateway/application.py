"""ASGI applications: the agents' and, apart from it, the driver's."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote

from core.errors import MergemillError, Transient
from samplers.gateway.access import RolloutAccess
from samplers.gateway.dialects import Action, ApiRoute, Dialect, build_error, parse_route, read_key
from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.gateway import ModelGateway
from samplers.gateway.json_text import Json, read_object, write_json
from samplers.gateway.pending_answers import JSON_TYPE, PendingAnswer
from samplers.gateway.recorder import GATEWAY_FAILED, fill_with_failure
from samplers.gateway.rollout_state import RolloutState

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_REQUEST = 64 << 20
"""Bytes of a request."""
ROLLOUTS_PATH = "/rollouts/"
HEALTH_PATH = "/health"
BETA_HEADER = b"anthropic-beta"
_NO_RETRY = (b"x-should-retry", b"false")
"""Header by which the SDKs of OpenAI and Anthropic don't send a request again that was tried often enough."""


class AgentApplication:
    """Routes that agents reach: the routes of the model APIs."""

    def __init__(self, gateway: ModelGateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = dict(scope["headers"])
        route = parse_route(scope["method"], scope["path"], headers)
        watch: asyncio.Task[None] | None = None
        state: RolloutState | None = None
        try:
            _refuse_upgrade(headers)
            state = await self._gateway.find_rollout(route.secret)
            beta = headers.get(BETA_HEADER, b"").decode("latin-1")
            pending = await self._find_answer(route, state, await read_body(receive), beta)
        except GatewayFailure as failure:
            pending = PendingAnswer()
            fill_with_failure(pending, failure, route.dialect)
            if state is not None:
                state.note_failure(failure)
        except MergemillError as error:
            pending = PendingAnswer()
            fill_with_failure(pending, GatewayFailure(ExchangeFailure.DISK, error.format_line(), 507), route.dialect)
        except Exception:
            # An agent gets an error of its dialect even so, and no text of Python's.
            log.exception("a request of %s", route.rest)
            pending = PendingAnswer()
            fill_with_failure(pending, GatewayFailure(ExchangeFailure.BUG, GATEWAY_FAILED, 500), route.dialect)
        watch = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            is_sent = await _send_answer(pending, send, watch)
        finally:
            watch.cancel()
        if is_sent and pending.is_answer and state is not None and pending.number is not None:
            state.mark_sent(pending.fingerprint, pending.number)

    async def _find_answer(self, route: ApiRoute, state: RolloutState, body: bytes, beta: str) -> PendingAnswer:
        if route.action is Action.ANSWER:
            return self._gateway.answer(state, route.dialect, body, beta)
        if route.action is Action.COUNT_TOKENS:
            return _complete(await self._gateway.count_tokens(state, body))
        if route.action is Action.MODELS:
            models = await self._gateway.list_models(state)
            return _complete(models["data"][0] if "/" in route.rest else models)
        raise GatewayFailure(ExchangeFailure.REFUSED, f"there is no {route.rest or 'page'} here", 404)


def _complete(answer: Json) -> PendingAnswer:
    return PendingAnswer.make_complete(200, JSON_TYPE, write_json(answer))


def _refuse_upgrade(headers: Mapping[bytes, bytes]) -> None:
    """Check that a request is not the beginning of a WebSocket.

    Raises:
        GatewayFailure: it is a WebSocket.
    """
    if headers.get(b"upgrade", b"").lower() == b"websocket":
        raise GatewayFailure(ExchangeFailure.REFUSED, "WebSockets are not available: use HTTP", 426)


async def read_body(receive: Receive) -> bytes:
    """Return the body of a request.

    Raises:
        GatewayFailure: it is too large, or the client is gone.
    """
    content = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise GatewayFailure(ExchangeFailure.REFUSED, "the client is gone", 400)
        content += bytes(message.get("body", b""))
        if len(content) > MAX_REQUEST:
            raise GatewayFailure(ExchangeFailure.REFUSED, f"the request has more than {MAX_REQUEST >> 20} MB", 413)
        if not message.get("more_body"):
            return content


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_answer(pending: PendingAnswer, send: Send, watch: asyncio.Task[None]) -> bool:
    """Send an answer as it comes; return whether the client was there to the end."""
    is_begun = False
    async for piece, is_last in pending.read():
        if watch.done():
            return False
        if not is_begun:
            is_begun = True
            await send(
                {
                    "type": "http.response.start",
                    "status": pending.status,
                    "headers": _build_headers(pending, piece, is_last=is_last),
                }
            )
        await send({"type": "http.response.body", "body": piece, "more_body": not is_last})
    return True


def _build_headers(pending: PendingAnswer, piece: bytes, *, is_last: bool) -> list[tuple[bytes, bytes]]:
    headers = [(b"content-type", pending.content_type)]
    if is_last:
        headers.append((b"content-length", b"%d" % len(piece)))
    return headers if pending.status == 200 else [*headers, _NO_RETRY]


class ControlApplication:
    """Routes that the driver reaches: opening, reading and closing of rollouts. `token` is its key."""

    def __init__(self, gateway: ModelGateway, token: str) -> None:
        self._gateway = gateway
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        status, answer = await self._answer(scope, receive)
        content = write_json(answer)
        headers = [(b"content-type", JSON_TYPE), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Json]:
        """Return status and content of the answer."""
        if not hmac.compare_digest(read_key(dict(scope["headers"])).encode(), self._token.encode()):
            return 401, build_error(Dialect.CHAT, 401, "wrong token", "token")
        try:
            return 200, await self._act(scope["method"], scope["path"], receive)
        except MergemillError as error:
            status = 507 if isinstance(error, Transient) else 409
            return status, build_error(Dialect.CHAT, status, error.format_line(), "input")
        except GatewayFailure as failure:
            return failure.status, build_error(Dialect.CHAT, failure.status, failure.detail, str(failure.kind))
        except ValueError as error:  # pydantic's too
            return 400, build_error(Dialect.CHAT, 400, str(error).splitlines()[0], "input")

    async def _act(self, method: str, path: str, receive: Receive) -> Json:
        """Return the response that a route gives.

        Raises:
            GatewayFailure: there is no such route or rollout, or the disk is full.
            MergemillError: the rollout cannot be opened.
            ValueError: the access is malformed.
        """
        if path == HEALTH_PATH:
            return {"ok": True}
        name = unquote(path.removeprefix(ROLLOUTS_PATH)) if path.startswith(ROLLOUTS_PATH) else ""
        if method == "PUT" and name:
            access = RolloutAccess.model_validate(read_object(await read_body(receive)))
            await self._gateway.open_rollout(name, access)
            return {"name": name}
        if method in ("GET", "DELETE") and not self._gateway.has_rollout(name):
            raise GatewayFailure(ExchangeFailure.REFUSED, f"the rollout {name} is not open", 404)
        if method == "DELETE":
            return (await self._gateway.close_rollout(name)).model_dump()
        if method == "GET":
            return self._gateway.get_usage(name).model_dump()
        raise GatewayFailure(ExchangeFailure.REFUSED, "there is no such route", 404)
