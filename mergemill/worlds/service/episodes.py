"""Episodes of a service: opened, found by name, limited in number, closed when nobody touches them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from core.closable import Closable
from core.errors import InputError, MergemillError, Transient
from mergemill.worlds.service.catalog import OfferedWorld
from mergemill.worlds.service.responses import (
    EvaluateResponse,
    HealthResponse,
    ResetResponse,
    StateResponse,
    StepResponse,
)
from worlds.environment import choose_scenario
from worlds.rewards import RewardMode, Scorer
from worlds.scenario_run import MAX_STEPS, InteractionMode, ScenarioRun, StepOutcome
from worlds.server.host import WorldHost
from worlds.server.service import WorldServer
from worlds.users import UserFactory

NAME_BYTES = 8
"""Random bytes of an episode's name, which is all that an agent needs to act in it."""


class RefusedRequestError(InputError):
    """Request that is not served. `status`: of the HTTP response."""

    def __init__(self, message: str, *, status: int, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class EpisodeRequest:
    """Options that an episode is opened with. See `POST /reset` in docs/guide/worlds/worlds.md."""

    world: str
    scenario: str | None = None
    seed: int = 0
    mode: InteractionMode = InteractionMode.NON_CONVERSATIONAL
    reward: RewardMode = RewardMode.SHARE
    max_steps: int = MAX_STEPS
    episode: str | None = None
    """Its name; an episode of that name ends."""


@dataclass
class ServiceEpisode:
    """An episode of the service. Its lock is held while a request works on it."""

    name: str
    world: str
    seed: int
    run: ScenarioRun
    server: WorldServer
    lock: threading.Lock = field(default_factory=threading.Lock)
    touched: float = field(default_factory=time.monotonic)
    n_taken: int = 0
    """Actions so far, the action that ended it included."""
    last: StepOutcome | None = None
    """Outcome of the last action, for a client that did not receive it."""

    @property
    def is_open(self) -> bool:
        """Whether it has a process."""
        return self.server.is_running and not self.run.has_ended

    def require_server(self) -> None:
        """Check that the episode did not end with its container.

        Raises:
            Transient: it did.
        """
        if not self.server.is_running and not self.run.has_ended:
            raise Transient(f"the container of the episode {self.name} has ended", advice="start another episode")


class EpisodeTable(Closable):
    """All episodes of a service. Threads may share it.

    Args:
        catalog: name -> world.
        host: host that runs the worlds.
        limit: open episodes at a time; as many that have ended are remembered.
        idle_seconds: seconds without a request after which an episode is closed.
        make_user: function that makes the users of conversations; None where none are offered.
    """

    def __init__(
        self,
        catalog: Mapping[str, OfferedWorld],
        host: WorldHost,
        *,
        limit: int,
        idle_seconds: float,
        make_user: UserFactory | None,
    ) -> None:
        self.catalog = catalog
        self.limit = limit
        self._host = host
        self._idle_seconds = idle_seconds
        self._make_user = make_user
        self._scorer = Scorer()
        self._episodes: dict[str, ServiceEpisode] = {}
        self._n_opening = 0
        self._lock = threading.Lock()

    def count(self) -> HealthResponse:
        """Return the numbers of the service."""
        with self._lock:
            n_open = sum(one.is_open for one in self._episodes.values())
        return HealthResponse(
            worlds=len(self.catalog),
            episodes=n_open,
            limit=self.limit,
            container="running" if self._host.is_running else "not running",
            containers_started=self._host.n_started,
        )

    def find_world(self, name: str) -> OfferedWorld:
        """Return a world.

        Raises:
            RefusedRequestError: there is none of that name.
        """
        if name not in self.catalog:
            raise RefusedRequestError(
                f"there is no world {name}", status=404, advice=f"one of {', '.join(sorted(self.catalog))}"
            )
        return self.catalog[name]

    def reset(self, request: EpisodeRequest) -> ResetResponse:
        """Open an episode and return the text that its agent is given.

        Raises:
            RefusedRequestError: there is no such world or scenario, there are too many episodes, or no users.
            Transient: there is no container, or the user's model does not answer.
        """
        offered = self.find_world(request.world)
        try:
            scenario = offered.scenarios[choose_scenario(offered.scenarios, request.scenario, request.seed)]
        except InputError as error:
            raise RefusedRequestError(str(error), status=404, advice=error.advice) from None
        user = None
        if request.mode is InteractionMode.CONVERSATIONAL:
            if self._make_user is None:
                raise RefusedRequestError("this server has no users", status=400, advice="start it with --user")
            user = self._make_user(scenario)
        name = request.episode or secrets.token_hex(NAME_BYTES)
        # Before a place is reserved, so that an episode can be restarted while the table is full.
        self.close_episode(name, missing_ok=True)
        with self._reserve():
            # Outside of the lock: starting a container takes seconds.
            server, world = self._host.find(offered.definition)
            run = ScenarioRun(
                server,
                world,
                scenario,
                self._scorer,
                seed=request.seed,
                user=user,
                reward_mode=request.reward,
                max_steps=request.max_steps,
            )
            opened = ServiceEpisode(name=name, world=offered.name, seed=request.seed, run=run, server=server)
            with self._lock:
                replaced = self._episodes.pop(name, None)
                self._episodes[name] = opened
        if replaced is not None:  # two requests named one episode
            replaced.run.close()
        return ResetResponse(
            episode=name,
            world=offered.name,
            scenario=scenario.name,
            seed=request.seed,
            mode=run.mode.value,
            mcp=f"/mcp/{name}",  # the path of `mergemill.worlds.service.protocol`
            observation=run.observation,
            info={"scenario": scenario.name, "digest": run.digest},
        )

    def call(self, name: str, tool: str, arguments: Mapping[str, Any], number: int | None = None) -> StepResponse:
        """Call a tool for a program, which is to know the tools, and return the outcome.

        Raises:
            RefusedRequestError: there is no such episode or tool, or the episode has ended or is busy.
            Transient: the infrastructure failed.
        """
        with self._use(name) as episode:
            if not episode.run.has_tool(tool):
                names = ", ".join(one["name"] for one in episode.run.tools)
                raise RefusedRequestError(f"{episode.world} has no tool {tool}", status=404, advice=f"one of {names}")
            return self._step(episode, {"tool": tool, "arguments": dict(arguments)}, number)

    def act(self, name: str, action: object, number: int | None = None) -> StepResponse:
        """Take an agent's action, in any form of `worlds.actions.read_action`, and return the outcome.

        Args:
            name: name of the episode.
            action: the problem with it is part of the outcome.
            number: number of the action in the episode, from 1; the last sent again is answered as before.

        Raises:
            RefusedRequestError, Transient: as `call`.
        """
        with self._use(name) as episode:
            return self._step(episode, action, number)

    def get_state(self, name: str) -> StateResponse:
        """Return state, digest and number of actions of an episode; errors as in `call`."""
        with self._use(name) as episode:
            return StateResponse(
                episode=name,
                state=episode.run.get_state(),
                digest=episode.run.digest,
                steps=episode.run.n_steps,
                ended=episode.run.has_ended,
            )

    def evaluate(self, name: str) -> EvaluateResponse:
        """Return reward and checks of an episode's present state; errors as in `call`."""
        with self._use(name) as episode:
            score = episode.run.evaluate().to_json()
            return EvaluateResponse(episode=name, **score, ended=episode.run.has_ended)

    def touch(self, name: str) -> ServiceEpisode:
        """Return an episode, which counts as a use of it.

        Raises:
            RefusedRequestError: there is none of that name.
            Transient: its container has ended.
        """
        with self._lock:
            episode = self._episodes.get(name)
        if episode is None:
            raise self._make_unknown(name)
        episode.require_server()
        episode.touched = time.monotonic()
        return episode

    def close_episode(self, name: str, *, missing_ok: bool = False) -> None:
        """End an episode and forget it.

        Raises:
            RefusedRequestError: there is none of that name.
        """
        with self._lock:
            episode = self._episodes.pop(name, None)
        if episode is not None:
            episode.run.close()
        elif not missing_ok:
            raise self._make_unknown(name)

    def close_idle(self) -> int:
        """Close the episodes that nobody has touched for long, forget ended ones above the limit; return how many."""
        latest = time.monotonic() - self._idle_seconds
        with self._lock:
            ended = sorted((one.touched, one.name) for one in self._episodes.values() if not one.is_open)
            dropped = {name for _, name in ended[: max(0, len(ended) - self.limit)]}
            idle = [one for one in self._episodes.values() if one.touched < latest or one.name in dropped]
            # A request is at work on it, which touches it.
            idle = [one for one in idle if not one.lock.locked()]
            for one in idle:
                del self._episodes[one.name]
        for one in idle:
            one.run.close()
        return len(idle)

    def close(self) -> None:
        """Close all episodes and the container."""
        with self._lock:
            self._episodes.clear()
        self._host.close()

    @contextmanager
    def _reserve(self) -> Iterator[None]:
        """Keep a place for an episode while it is opened."""
        with self._lock:
            if self._n_opening + sum(one.is_open for one in self._episodes.values()) >= self.limit:
                raise RefusedRequestError(
                    f"{self.limit} episodes are open", status=429, advice="close some, or start with more --episodes"
                )
            self._n_opening += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_opening -= 1

    @contextmanager
    def _use(self, name: str) -> Iterator[ServiceEpisode]:
        """Hold an episode for a request."""
        episode = self.touch(name)
        if not episode.lock.acquire(blocking=False):
            raise RefusedRequestError(f"the episode {name} is busy with another request", status=409)
        try:
            yield episode
        except MergemillError:
            episode.require_server()
            raise
        finally:
            episode.touched = time.monotonic()
            episode.lock.release()

    def _step(self, episode: ServiceEpisode, action: object, number: int | None) -> StepResponse:
        if number is None or number != episode.n_taken or episode.last is None:
            if number is not None and number != episode.n_taken + 1:
                raise RefusedRequestError(f"action {number} cannot follow action {episode.n_taken}", status=409)
            if episode.run.has_ended:
                raise RefusedRequestError(
                    f"the episode {episode.name} has ended", status=409, advice="POST /evaluate has its reward"
                )
            episode.last = episode.run.step(action)
            episode.n_taken += 1
        outcome = episode.last
        assert outcome is not None  # noqa: S101 - for the type checker
        return StepResponse(
            episode=episode.name,
            observation=outcome.observation,
            reward=outcome.reward,
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            info=outcome.info,
        )

    def _make_unknown(self, name: str) -> RefusedRequestError:
        return RefusedRequestError(
            f"there is no episode {name}",
            status=404,
            advice=f"POST /reset opens one; those that nobody touches are closed after {self._idle_seconds:g} s",
        )
