"""Client of `mergemill simulate env` with the standard library.

A server that is restarted or unreachable is tried again. A step has its number, so one that is sent twice is played
and paid once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from mergemill_client.episode_requests import FULL, EpisodeConnection, RawAnswer, RetryRules
from mergemill_client.errors import ClientError

URL, TOKEN = "MERGEMILL_ENV_URL", "MERGEMILL_ENV_TOKEN"


class SimulatedConnection(EpisodeConnection):
    """Connection to a server of simulated environments: each request opens one of its own, so threads may share it."""

    rules = RetryRules(
        statuses=frozenset((FULL, 500, 502, 503, 504)), first_pause=0.25, longest_pause=30.0, spread=(0.5, 1.0)
    )

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        super().__init__(url, token, patience)
        self.headers["Accept"] = "application/json"
        self._timeout = timeout

    def exchange(self, method: str, path: str, content: bytes | None) -> RawAnswer:
        """Send a request once."""
        request = Request(self.url + path, content, self.headers, method=method)  # noqa: S310 - HTTP by the user's address
        try:
            with urlopen(request, timeout=self._timeout) as answer:  # noqa: S310 - as above
                return RawAnswer(answer.status, answer.headers.get_content_type(), answer.read())
        except HTTPError as error:
            with error:
                return RawAnswer(error.code, error.headers.get_content_type(), error.read())

    def close(self) -> None:
        """Do nothing: every request has a connection of its own."""

    def make_error(self, status: int | None, problem: str) -> ClientError:
        """Return the error of a request that failed."""
        del status
        return ClientError(f"{self.url}: {problem}")


class SimulatedEnvironment:
    """Client of a server of simulated environments. Threads may share it.

    Args:
        url: address of the server.
        token: its token.
        timeout: seconds to wait for one answer.
        patience: seconds for which a server that does not answer is tried again.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 3600.0, patience: float = 600.0) -> None:
        self._connection = SimulatedConnection(url, token, timeout, patience)
        self.url = self._connection.url

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
        return self._connection.request("POST", "/reset", {"group": group, "env_id": env_id, **chosen})

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
        return self._connection.request("POST", "/step", body)

    def evaluate(self, episode: str) -> dict[str, Any]:
        """Return the reward of an episode, which ends by it; one without a judgement is judged again."""
        return self._connection.request("POST", "/evaluate", {"episode": episode})

    def get_record(self, episode: str) -> dict[str, Any]:
        """Return the record of an episode."""
        return self._connection.request("GET", f"/episodes/{episode}")

    def describe(self) -> dict[str, Any]:
        """Return domain, simulator, settings and numbers of the server."""
        return self._connection.request("GET", "/health")


def connect(url: str | None = None, token: str | None = None, **options: Any) -> SimulatedEnvironment:
    """Return the client of a server; what is not given comes from the variables URL and TOKEN.

    Raises:
        ClientError: no server is named.
    """
    address = url or os.environ.get(URL)
    if not address:
        raise ClientError(f"no server of simulated environments is named: set {URL}, or the url of the adapter")
    return SimulatedEnvironment(address, token or os.environ.get(TOKEN), **options)
