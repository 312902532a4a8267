"""Requests and responses, between the server's socket and the handlers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tests.github.rate_limits import AccessToken
    from tests.github.world import ServerRepository


@dataclass(slots=True)
class ApiRequest:
    """A request. `root` is this server's address in the client; `prefix` is "/api/v3" for an Enterprise server."""

    number: int  # counted from 1
    method: str
    path: str  # without the prefix
    query: dict[str, str]
    headers: dict[str, str]  # lower-case names
    body: bytes
    root: str
    prefix: str
    kind: str  # rest, graphql, git, free
    token: AccessToken | None = None

    @property
    def api(self) -> str:
        return self.root + self.prefix

    def can_read(self, repository: ServerRepository) -> bool:
        """Return whether this request's token has access to the repository."""
        return not repository.private or bool(self.token and repository.full_name in self.token.private)


class BodyStream(Protocol):
    """A body of unknown length."""

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class ApiResponse:
    """A response; `cut_at` breaks the connection after this many bytes of the body (-1: before any byte)."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stream: BodyStream | None = None
    points: int = 1
    cut_at: int | None = None
    delay: float = 0.0  # delay in real seconds
    fault: str = ""
    retry_at: float | None = None  # the server's clock: earlier requests break the rules


def make_json_response(status: int, content: Any, **headers: str) -> ApiResponse:
    body = json.dumps(content, separators=(",", ":")).encode()
    return ApiResponse(status, body, {"Content-Type": "application/json; charset=utf-8"} | headers)


def make_error_response(status: int, text: str, **more: Any) -> ApiResponse:
    """Return an error in the form of GitHub's REST API."""
    about = {"message": text, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return make_json_response(status, about | more)


@dataclass(slots=True, frozen=True)
class RequestLogEntry:
    """An entry of the server's log."""

    number: int
    method: str
    path: str
    token: str  # its value, "" without one
    kind: str
    status: int  # 0: the connection was broken
    points: int
    cost: int  # GraphQL's formula
    fault: str
    at: float  # the server's clock
