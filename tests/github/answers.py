"""What was asked and what is answered, between the server's socket and the parts that know GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tests.github.budget import Token
    from tests.github.world import Repository


@dataclass(slots=True)
class Ask:
    """A request. `root` is this server as the client names it; `prefix` is "/api/v3" for an Enterprise server."""

    number: int  # counted from 1
    method: str
    path: str  # without the prefix
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes
    root: str
    prefix: str
    kind: str  # rest, graphql, git, free
    token: Token | None = None

    @property
    def api(self) -> str:
        return self.root + self.prefix

    def sees(self, repository: Repository) -> bool:
        """Whether this request's token may know that the repository exists."""
        return not repository.private or bool(self.token and repository.full_name in self.token.private)


class Stream(Protocol):
    """A body of unknown length."""

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Answer:
    """A response; `cut_at` breaks the connection after so many bytes of the body (-1: before the first byte at all)."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    points: int = 1
    cut_at: int | None = None
    delay: float = 0.0  # real seconds before it is sent
    fault: str = ""
    retry_at: float | None = None  # the server's clock: who asks earlier breaks the rules


def as_json(status: int, content: Any, **headers: str) -> Answer:
    body = json.dumps(content, separators=(",", ":")).encode()
    return Answer(status, body, {"Content-Type": "application/json; charset=utf-8"} | headers)


def message(status: int, text: str, **more: Any) -> Answer:
    """GitHub's form of an error in REST."""
    about = {"message": text, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return as_json(status, about | more)


@dataclass(slots=True, frozen=True)
class Asked:
    """A line of the server's log."""

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
