"""Requests to servers of episodes: sent again while a server is full, is started again or does not answer.

Actions have numbers, so one that is sent twice is taken once. Each client adds how it is connected, which answers may
be others when a request is sent again, and its errors.
"""

from __future__ import annotations

import http.client
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mergemill_client.errors import ClientError

OK, NOT_FOUND, FULL = 200, 404, 429


@dataclass(frozen=True)
class RetryRules:
    """When a request is sent again.

    Attributes:
        statuses: status of answers that may be others then.
        first_pause: seconds before the second try; each further pause is twice as long.
        longest_pause: seconds.
        spread: each pause is multiplied by a number between these, so that not all clients come back at once.
    """

    statuses: frozenset[int]
    first_pause: float
    longest_pause: float
    spread: tuple[float, float]


@dataclass(frozen=True)
class RawAnswer:
    """An answer as it came."""

    status: int
    content_type: str
    content: bytes

    def read(self) -> dict[str, Any]:
        """Return the JSON; raise ValueError where it is no object."""
        value = json.loads(self.content)
        if not isinstance(value, dict):
            raise ValueError("the answer is no object")  # noqa: TRY004 - as for what is no JSON
        return value

    def read_problem(self) -> str:
        """Return the error that the server reports, else its status."""
        if self.content_type == "text/plain":
            return self.content.decode(errors="replace").strip() or f"status {self.status}"
        try:
            return str(self.read()["error"])
        except (ValueError, KeyError):
            return f"status {self.status}"


class EpisodeConnection(ABC):
    """Connection to a server of episodes.

    Args:
        url: address of the server.
        token: its token.
        patience: seconds for which a server that is full or does not answer is tried again.
    """

    rules: ClassVar[RetryRules]

    def __init__(self, url: str, token: str | None, patience: float) -> None:
        self.url = url.rstrip("/")
        self._patience = patience
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    @abstractmethod
    def exchange(self, method: str, path: str, content: bytes | None) -> RawAnswer:
        """Send a request once; raise OSError, HTTPException or ValueError where no server answers."""

    @abstractmethod
    def make_error(self, status: int | None, problem: str) -> ClientError:
        """Return the error of a request that failed; the status is None where no server answered."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open of the connection; a further request opens it again."""

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON of an answer.

        Args:
            method: of HTTP.
            path: below the address of the server.
            body: JSON of the request.

        Raises:
            ClientError: as `make_error` has it.
        """
        content = None if body is None else json.dumps(body).encode()
        until = time.monotonic() + self._patience
        pause = self.rules.first_pause
        while True:
            status: int | None = None
            try:
                answer = self.exchange(method, path, content)
                if answer.status == OK:
                    return answer.read()
                status, problem = answer.status, answer.read_problem()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.close()
                problem = str(getattr(error, "reason", None) or error or type(error).__name__)
            may_change = status is None or status in self.rules.statuses
            if not may_change or time.monotonic() + pause > until:
                raise self.make_error(status, problem)
            time.sleep(pause * random.uniform(*self.rules.spread))  # noqa: S311 - no secret
            pause = min(2 * pause, self.rules.longest_pause)
