"""Tasks of `mergemill serve`, read over HTTP with the standard library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from mergemill_client.errors import ClientError, TaskNotFoundError

PAGE_SIZE = 1000
"""Tasks of one answer; the server gives at most so many."""


class ServerSource:
    """Tasks of a server, read page by page."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self._base = url.rstrip("/").removesuffix("/api/v1") + "/api/v1"
        self._token = token
        self._timeout = timeout

    def iterate_rows(self, filters: dict[str, str], limit: int | None, after: str | None) -> Iterator[dict[str, Any]]:
        """Yield the selected tasks, newest change first."""
        left = limit
        while left is None or left > 0:
            size = PAGE_SIZE if left is None else min(PAGE_SIZE, left)
            page = self._request("/tasks", {**filters, "limit": str(size), **({"after": after} if after else {})})
            yield from page["tasks"]
            after = page["next"]
            left = None if left is None else left - len(page["tasks"])
            if after is None:
                return

    def count_rows(self, filters: dict[str, str]) -> int:
        """Return the number of the selected tasks."""
        return sum(1 for _ in self.iterate_rows(filters, None, None))

    def load_details(self, name: str) -> dict[str, Any]:
        """Return statement, patches and lists of tests of a task."""
        return dict(self._request(f"/tasks/{quote(name, safe='')}", {}))

    def close(self) -> None:
        """Do nothing: every request has a connection of its own."""

    def _request(self, path: str, parameters: dict[str, str]) -> Any:
        url = self._base + path + (f"?{urlencode(parameters)}" if parameters else "")
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            with urlopen(Request(url, headers=headers), timeout=self._timeout) as answer:  # noqa: S310 - HTTP by `open`
                return json.loads(answer.read())
        except HTTPError as error:
            with error:
                problem = read_problem(error)
            kind = TaskNotFoundError if error.code == 404 else ClientError
            raise kind(f"{self._base}: {problem}") from error
        except (URLError, OSError, ValueError) as error:
            raise ClientError(f"{self._base}: {getattr(error, 'reason', None) or error}") from error


def read_problem(error: HTTPError) -> str:
    """Return what the server says, else its status."""
    try:
        return str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"status {error.code}"
