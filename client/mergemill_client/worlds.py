"""Worlds of `mergemill worlds serve` as environments, with the methods of Gymnasium's `Env` and the standard library.

::

    with RemoteWorldEnvironment("http://127.0.0.1:8600", "library_loans") as environment:
        observation, info = environment.reset(seed=0)
        observation, reward, terminated, truncated, info = environment.step(text_of_the_model)

A reward of None is an episode that the infrastructure failed: it is to be dropped, and is no 0.
"""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Mapping
from typing import Any, Optional, Union
from urllib.parse import quote, urlsplit

from mergemill_client.episode_requests import FULL, NOT_FOUND, EpisodeConnection, RawAnswer, RetryRules
from mergemill_client.errors import ClientError

Observation = dict[str, Any]
Info = dict[str, Any]
Action = Union[Mapping[str, Any], str]
StepResult = tuple[Observation, Optional[float], bool, bool, Info]


class WorldNotFoundError(ClientError, LookupError):
    """The server has no such world, scenario, episode or tool."""


class WorldUnavailableError(ClientError):
    """No server answers, or the infrastructure behind it failed."""


class WorldConnection(EpisodeConnection):
    """Connection to a server of worlds, kept open; each thread needs one of its own.

    Args:
        url: address of `mergemill worlds serve`.
        token: its token.
        timeout: seconds to wait for one answer.
        patience: seconds for which a server that is full or does not answer is tried again.
    """

    rules = RetryRules(statuses=frozenset((FULL,)), first_pause=0.1, longest_pause=5.0, spread=(0.5, 1.5))

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 600.0, patience: float = 120.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ClientError(f"{url} is no address of a server: http://HOST:PORT")
        super().__init__(url, token, patience)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._path = parts.path.rstrip("/")

    def __enter__(self) -> WorldConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def list_worlds(self) -> list[dict[str, Any]]:
        """Return name, environment, number of tools and scenarios of each world; errors as in `make_error`."""
        return list(self.request("GET", "/worlds")["worlds"])

    def describe_world(self, name: str) -> dict[str, Any]:
        """Return documentation, tools and scenarios of a world; errors as in `make_error`."""
        return self.request("GET", f"/worlds/{quote(name, safe='')}")

    def exchange(self, method: str, path: str, content: bytes | None) -> RawAnswer:
        """Send a request once, over the open connection."""
        self._connection.request(method, self._path + path, content, self.headers)
        answer = self._connection.getresponse()
        return RawAnswer(answer.status, answer.headers.get_content_type(), answer.read())

    def make_error(self, status: int | None, problem: str) -> ClientError:
        """Return the error of a request that failed.

        WorldNotFoundError: there is no such world, scenario, episode or tool. WorldUnavailableError: no server answers,
        or the infrastructure failed. ClientError: the request or the token is wrong.
        """
        if status is None:
            return WorldUnavailableError(f"{self.url}: no server answers: {problem}")
        text = f"{self.url}: {problem}"
        if status == NOT_FOUND:
            return WorldNotFoundError(text)
        return (WorldUnavailableError if status == FULL or status >= 500 else ClientError)(text)

    def close(self) -> None:
        """Close the connection; a further request opens it again."""
        self._connection.close()


class RemoteWorldEnvironment:
    """Scenarios of one world of a server: one episode at a time, for one thread.

    Args:
        url: address of `mergemill worlds serve`.
        world: name of the world.
        scenario: name of the scenario of all episodes; without one, the seed chooses.
        mode: `non-conversational`, or `conversational` with a user whom the server plays.
        reward: `share` of the checks that passed, or `all-or-nothing`.
        max_steps: actions after which an episode is truncated.
        token: the server's token.
        options: those of `WorldConnection`.
    """

    def __init__(
        self,
        url: str,
        world: str,
        *,
        scenario: str | None = None,
        mode: str = "non-conversational",
        reward: str = "share",
        max_steps: int = 40,
        token: str | None = None,
        **options: Any,
    ) -> None:
        self.connection = WorldConnection(url, token, **options)
        self._opening = {"world": world, "mode": mode, "reward": reward, "max_steps": max_steps}
        self._scenario = scenario
        self._episode: str | None = None
        self._n_actions = 0

    def __enter__(self) -> RemoteWorldEnvironment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def mcp_url(self) -> str:
        """Address at which an MCP client acts in the present episode."""
        return f"{self.connection.url}/mcp/{self._require_episode()}"

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode and return (observation, info).

        Args:
            seed: determines the scenario, where none is named, and the world's clock and random values; default 0.
            options: `scenario` is the name of one.

        Returns:
            `task` (or `user`, a greeting), `documentation` and `tools`; and `scenario`, `digest`, `episode`.

        Raises:
            WorldNotFoundError, WorldUnavailableError, ClientError: as `WorldConnection.make_error`.
        """
        self._end_episode()
        scenario = (options or {}).get("scenario", self._scenario)
        body = {**self._opening, "seed": seed or 0, **({"scenario": scenario} if scenario else {})}
        answer = self.connection.request("POST", "/reset", body)
        self._episode, self._n_actions = answer["episode"], 0
        return answer["observation"], {**answer["info"], "episode": self._episode}

    def step(self, action: Action) -> StepResult:
        """Take an action and return (observation, reward, terminated, truncated, info).

        An action that cannot be read is answered by an error in the observation.

        Args:
            action: what a model wrote, an assistant's message with `tool_calls`, `{"tool", "arguments"}` or
                `{"stop": True}`.

        Returns:
            As Gymnasium has it. Where the infrastructure failed, the reward is None, the episode is truncated, and
            `info["infrastructure_error"]` has the cause.

        Raises:
            ClientError: there is no episode, or it was closed.
        """
        number = self._n_actions + 1
        body = {"episode": self._require_episode(), "action": action, "number": number}
        try:
            answer = self.connection.request("POST", "/step", body)
        except WorldUnavailableError as error:
            return {}, None, False, True, {"infrastructure_error": str(error)}
        self._n_actions = number
        keys = ("observation", "reward", "terminated", "truncated", "info")
        observation, reward, terminated, truncated, info = (answer[key] for key in keys)
        return observation, reward, terminated, truncated, info

    def evaluate(self) -> dict[str, Any]:
        """Return `reward` and `checks` of the present state; the reward is None where the infrastructure failed.

        Raises:
            ClientError: as `step`.
        """
        try:
            return self.connection.request("POST", "/evaluate", {"episode": self._require_episode()})
        except WorldUnavailableError as error:
            return {"reward": None, "checks": [], "infrastructure_error": str(error)}

    def get_state(self) -> dict[str, Any]:
        """Return the state of the world; errors as in `WorldConnection.make_error`."""
        answer = self.connection.request("POST", "/state", {"episode": self._require_episode()})
        return dict(answer["state"])

    def close(self) -> None:
        """End the episode and close the connection."""
        self._end_episode()
        self.connection.close()

    def _require_episode(self) -> str:
        if self._episode is None:
            raise ClientError("there is no episode: call reset first")
        return self._episode

    def _end_episode(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None:
            with contextlib.suppress(ClientError):  # the server closes it by itself after some time
                self.connection.request("POST", "/close", {"episode": episode})
