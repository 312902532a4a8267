"""Dialects of model APIs: their routes, and their errors in their own shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

VERSION_SEGMENT = "v1"
SECRET_SEGMENT = "r"  # noqa: S105 - the part of the path before a secret


class Dialect(StrEnum):
    """Dialect of a request or an answer. An upstream has CHAT or MESSAGES."""

    CHAT = "chat"
    """OpenAI's chat completions."""
    RESPONSES = "responses"
    """OpenAI's Responses."""
    MESSAGES = "messages"
    """Anthropic's Messages."""


class Action(StrEnum):
    """Actions that a route does."""

    ANSWER = "answer"
    COUNT_TOKENS = "count_tokens"
    MODELS = "models"
    UNKNOWN = "unknown"


_ROUTES: Mapping[tuple[str, str], tuple[Action, Dialect]] = {
    ("POST", "chat/completions"): (Action.ANSWER, Dialect.CHAT),
    ("POST", "responses"): (Action.ANSWER, Dialect.RESPONSES),
    ("POST", "messages"): (Action.ANSWER, Dialect.MESSAGES),
    ("POST", "messages/count_tokens"): (Action.COUNT_TOKENS, Dialect.MESSAGES),
    ("GET", "models"): (Action.MODELS, Dialect.CHAT),
}

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, kw_only=True)
class ApiRoute:
    """Fields that a request's path and headers name. `secret` is empty where neither has a secret."""

    action: Action
    dialect: Dialect
    secret: str
    rest: str
    """The path below the version, such as `chat/completions`."""


def parse_route(method: str, path: str, headers: Mapping[bytes, bytes]) -> ApiRoute:
    """Return the route of a request. A missing or repeated `/v1` and a slash at the end make no difference.

    Args:
        method: method in capitals.
        path: path without the query string.
        headers: headers by name in lower case.
    """
    segments = [segment for segment in path.split("/") if segment]
    secret = ""
    if len(segments) > 1 and segments[0] == SECRET_SEGMENT:
        secret = unquote(segments[1])
        segments = segments[2:]
    while segments and segments[0] == VERSION_SEGMENT:
        segments = segments[1:]
    rest = "/".join(segments)
    action, dialect = _ROUTES.get((method, rest), (Action.UNKNOWN, _guess_dialect(rest, headers)))
    if method == "GET" and rest.startswith("models/"):
        action = Action.MODELS
    if action is Action.MODELS:
        dialect = _guess_dialect(rest, headers)
    return ApiRoute(action=action, dialect=dialect, secret=secret or read_key(headers), rest=rest)


def read_key(headers: Mapping[bytes, bytes]) -> str:
    """Return the API key of a request, or nothing."""
    key = headers.get(b"x-api-key", b"").decode("latin-1").strip()
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").strip().partition(" ")
    return key or (token.strip() if scheme.lower() == "bearer" else "")


def _guess_dialect(rest: str, headers: Mapping[bytes, bytes]) -> Dialect:
    if rest.startswith("messages") or b"anthropic-version" in headers:
        return Dialect.MESSAGES
    return Dialect.RESPONSES if rest.startswith("responses") else Dialect.CHAT


def build_error(dialect: Dialect, status: int, message: str, code: str) -> dict[str, Any]:
    """Return an error in the shape of a dialect."""
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    if dialect is Dialect.MESSAGES:
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def build_stream_error(dialect: Dialect, message: str, code: str) -> tuple[str, dict[str, Any]]:
    """Return the name, empty for none, and the data of the event that ends a stream with an error."""
    if dialect is Dialect.RESPONSES:
        error = {"code": code, "message": message}
        response = {"object": "response", "status": "failed", "error": error, "output": []}
        return "response.failed", {"type": "response.failed", "response": response}
    return "error" if dialect is Dialect.MESSAGES else "", build_error(dialect, 502, message, code)
