"""Client of `mergemill simulate env` with the standard library.

A server that is restarted or unreachable is tried again. A step has its number, so one that is sent twice is played
and paid once.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from mergemill_client.errors import ClientError
from mergemill_client.server import read_problem

URL, TOKEN = "MERGEMILL_ENV_URL", "MERGEMILL_ENV_TOKEN"
MAX_PAUSE = 30.0
TRY_AGAIN = frozenset((429, 500, 502, 503, 504))
"""Status of answers that may be others when the request is sent again."""


class SimulatedEnvironment:
    """Client of a server of simulated environments. Threads may share it.

    Args:
        url: address of the server.
        token: its token.
        timeout: seconds to wait for one answer.
        patience: seconds for which a server that does not answer is tried again.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 3600.0, patience: float = 600.0) -> None:
        self.url = url.rstrip("/")
        self._token, self._timeout, self._patience = token, timeout, patience

    def reset(
        self,
        *,
        task: str | None = None,
        seed: int | None = None,
        group: int = 0,
        groups: int | None = None,
        episode: int | None = None,
        env_id: str = "",
    ) -> dict[str, Any]:
        """Begin an episode; return `episode` (its id), `observation`, `system`, `policy`, `tools`, `task`.

        Args:
            task: id or name of a task, or
            seed: a number: equal ones give equal beginnings; without both, group and episode number choose the task.
            group: environments of a group get equal beginnings.
            groups: number of groups; None for the server's.
            episode: number among those of the environment; None for the next one.
            env_id: name of the environment.

        Raises:
            ClientError: there is no such task, the token is wrong, or no server answers.
        """
        given = {"task": task, "seed": seed, "groups": groups, "episode": episode}
        chosen = {name: value for name, value in given.items() if value is not None}
        return self._request("/reset", {"group": group, "env_id": env_id, **chosen})

    def step(
        self,
        episode: str,
        text: str = "",
        *,
        turn: int,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        context_tokens: int | None = None,
    ) -> dict[str, Any]:
        """Return the answer to a turn of the agent: `observation`, `role`, `done`, `reward` (None without one), ...

        Args:
            episode: of `reset`.
            text: what the agent wrote, with its calls in `<tool_call>`, or
            tool_calls: the calls, in OpenAI's form or `{name, arguments}`.
            turn: number of the turn in the episode, from 0.
            context_tokens: tokens of the agent's context with this turn; None lets the server estimate.

        Raises:
            ClientError: there is no such episode, or no server answers.
        """
        body: dict[str, Any] = {"episode": episode, "text": text, "turn": turn}
        if tool_calls:
            body["tool_calls"] = [dict(call) for call in tool_calls]
        if context_tokens is not None:
            body["context_tokens"] = context_tokens
        return self._request("/step", body)

    def evaluate(self, episode: str) -> dict[str, Any]:
        """Return the reward of an episode, which ends by it; one without a judgement is judged again."""
        return self._request("/evaluate", {"episode": episode})

    def get_record(self, episode: str) -> dict[str, Any]:
        """Return the record of an episode."""
        return self._request(f"/episodes/{episode}")

    def describe(self) -> dict[str, Any]:
        """Return domain, simulator, settings and numbers of the server."""
        return self._request("/health")

    def _request(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        until, n_failures = time.monotonic() + self._patience, 0
        while True:
            try:
                return self._send(path, body)
            except HTTPError as error:
                with error:
                    problem = read_problem(error)
                if error.code not in TRY_AGAIN or time.monotonic() > until:
                    raise ClientError(f"{self.url}: {problem}") from error
            except (URLError, OSError, http.client.HTTPException, ValueError) as error:
                if time.monotonic() > until:
                    raise ClientError(f"{self.url}: {getattr(error, 'reason', None) or error}") from error
            pause = min(MAX_PAUSE, 0.25 * 2**n_failures) * random.uniform(0.5, 1)  # noqa: S311 - not all at once
            n_failures += 1
            time.sleep(pause)

    def _send(self, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        content = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, content, headers)  # noqa: S310 - HTTP by the user's address
        with urlopen(request, timeout=self._timeout) as answer:  # noqa: S310 - as above
            return dict(json.loads(answer.read()))


def connect(url: str | None = None, token: str | None = None, **options: Any) -> SimulatedEnvironment:
    """Return the client of a server; what is not given comes from the variables URL and TOKEN.

    Raises:
        ClientError: no server is named.
    """
    address = url or os.environ.get(URL)
    if not address:
        raise ClientError(f"no server of simulated environments is named: set {URL}, or the url of the adapter")
    return SimulatedEnvironment(address, token or os.environ.get(TOKEN), **options)
