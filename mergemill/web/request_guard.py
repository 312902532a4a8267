"""Checks of every request before a page sees it, and the security headers of every response."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mergemill.web.inline_assets import STYLE, THEME_SCRIPT, build_source

MAX_BODY_BYTES = 8 * 1024 * 1024
"""The largest submission that may be sent to be graded."""
SECURITY_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src 'self' {build_source(THEME_SCRIPT)}; style-src 'self' {build_source(STYLE)}; "
        "img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class AccessRules:
    """Who may do the actions.

    Attributes:
        hosts: names by which the server may be addressed; IP addresses and localhost always may.
        token: secret that permits grading; None permits none.
        protects_reading: whether pages and data need the token, too.
    """

    hosts: frozenset[str]
    token: str | None
    protects_reading: bool

    def accepts_host(self, header: str) -> bool:
        """Whether a request's Host names this server: a foreign name that resolves to it is an attack (rebinding)."""
        name = _split_host(header)
        return name is not None and (_is_local_name(name) or _is_address(name) or name in self.hosts)

    def accepts_token(self, authorization: str) -> bool:
        """Whether the header `Authorization` holds the token, as Bearer."""
        scheme, _, given = authorization.partition(" ")
        return self.token is not None and scheme.lower() == "bearer" and _equals(given.strip(), self.token)

    def accepts_reader(self, authorization: str) -> bool:
        """Whether a request may read; browsers send the token as the password of any user name."""
        if not self.protects_reading or self.accepts_token(authorization):
            return True
        scheme, _, given = authorization.partition(" ")
        try:
            password = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
        return self.token is not None and scheme.lower() == "basic" and _equals(password, self.token)


def make_access_rules(host: str, token: str | None) -> AccessRules:
    """Return the rules of a server that listens at `host`."""
    names: Iterable[str] = (host, socket.gethostname())
    return AccessRules(
        hosts=frozenset(name.lower().rstrip(".") for name in names),
        token=token,
        protects_reading=token is not None and not is_loopback(host),
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return _is_local_name(host.lower())


@dataclass(frozen=True)
class RequestGuard:
    """ASGI middleware that rejects requests for foreign hosts, without the token, or with a large body."""

    app: ASGIApp
    rules: AccessRules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._reject(Headers(scope=scope), str(scope["method"])) or self.app
        await answer(scope, receive, send_with_headers)

    def _reject(self, headers: Headers, method: str) -> PlainTextResponse | None:
        """Return the answer to a request that is not served, or None."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.rules.accepts_host(hosts[0]):
            return PlainTextResponse("this server does not answer for that host\n", 421)
        if not self.rules.accepts_reader(headers.get("authorization", "")):
            challenge = {"www-authenticate": 'Basic realm="mergemill: the token is the password"'}
            return PlainTextResponse("this server needs its token\n", 401, challenge)
        length = headers.get("content-length")
        if length is None and (method not in ("GET", "HEAD") or "transfer-encoding" in headers):
            return PlainTextResponse("the length of the body is missing\n", 411)
        if length is not None and (not length.isdecimal() or int(length) > MAX_BODY_BYTES):
            return PlainTextResponse(f"the body is larger than {MAX_BODY_BYTES >> 20} MB\n", 413)
        return None


def _split_host(header: str) -> str | None:
    """Return the name of a Host header without its port, or None for a malformed header."""
    name, colon, port = header.rpartition(":")
    if not colon or header.endswith("]"):
        name, port = header, ""
    if port and not port.isdecimal():
        return None
    return name.strip("[]").lower().rstrip(".") or None


def _is_local_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _equals(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), secret.encode(errors="replace"))
