"""Episodes of worlds: opened in a container that all of them share, and played there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.closable import Closable
from core.episodes.errors import ConflictError, RefusedRequestError
from core.episodes.player import EpisodePlayer
from core.episodes.table import EpisodeLimits, EpisodeTable
from core.errors import InputError, Transient
from mergemill.worlds.service.catalog import OfferedWorld
from mergemill.worlds.service.responses import (
    EvaluateResponse,
    HealthResponse,
    ResetResponse,
    StateResponse,
    StepResponse,
)
from worlds.definitions import ScenarioDefinition
from worlds.environment import choose_scenario
from worlds.rewards import RewardMode, Scorer
from worlds.scenario_run import MAX_STEPS, InteractionMode, ScenarioRun, StepOutcome
from worlds.server.host import WorldHost
from worlds.server.service import WorldServer
from worlds.users import SimulatedUser, UserFactory

NAME_BYTES = 8


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


@dataclass(frozen=True, kw_only=True)
class ScenarioRequest:
    """A request with what it names: a world, one of its scenarios, and the user of a conversation."""

    request: EpisodeRequest
    offered: OfferedWorld
    scenario: ScenarioDefinition
    user: SimulatedUser | None


@dataclass
class WorldEpisode:
    """One episode of the service."""

    id: str
    world: str
    seed: int
    run: ScenarioRun
    server: WorldServer
    n_taken: int = 0
    """Actions so far, the action that ended it included."""
    last: StepOutcome | None = None
    """Outcome of the last action, for a client that did not receive it."""

    @property
    def is_open(self) -> bool:
        """Whether it has a process."""
        return self.server.is_running and not self.run.has_ended

    @property
    def has_ended(self) -> bool:
        """Whether no action may follow."""
        return self.run.has_ended

    @property
    def next_number(self) -> int:
        """Number of the next action, from 1."""
        return self.n_taken + 1


class WorldPlayer(EpisodePlayer[WorldEpisode, ScenarioRequest, object, StepResponse, EvaluateResponse]):
    """Plays scenarios in the container of a host."""

    def __init__(self, host: WorldHost) -> None:
        self._host = host
        self._scorer = Scorer()

    def open(self, request: ScenarioRequest, name: str) -> WorldEpisode:
        """Start a scenario.

        Raises:
            Transient: there is no container, or the user's model does not answer.
        """
        given = request.request
        server, world = self._host.find(request.offered.definition)
        run = ScenarioRun(
            server,
            world,
            request.scenario,
            self._scorer,
            seed=given.seed,
            user=request.user,
            reward_mode=given.reward,
            max_steps=given.max_steps,
        )
        return WorldEpisode(id=name, world=request.offered.name, seed=given.seed, run=run, server=server)

    def step(self, episode: WorldEpisode, action: object) -> StepResponse:
        """Take an agent's action, in any form of `worlds.actions.read_action`."""
        episode.last = episode.run.step(action)
        episode.n_taken += 1
        return _make_step_response(episode, episode.last)

    def repeat(self, episode: WorldEpisode, action: object, number: int) -> StepResponse:
        """Return the outcome of the last action; those before it are not kept."""
        # A client that sends a number again sends the same action.
        del action
        if number != episode.n_taken or episode.last is None:
            raise ConflictError(f"action {number} cannot follow action {episode.n_taken}")
        return _make_step_response(episode, episode.last)

    def answer_ended(self, episode: WorldEpisode) -> StepResponse:
        """Refuse an action after the end."""
        raise ConflictError(f"the episode {episode.id} has ended", advice="POST /evaluate has its reward")

    def evaluate(self, episode: WorldEpisode) -> EvaluateResponse:
        """Return reward and checks of the present state; the episode goes on."""
        score = episode.run.evaluate().to_json()
        return EvaluateResponse(episode=episode.id, **score, ended=episode.run.has_ended)

    def check(self, episode: WorldEpisode) -> None:
        """Raise Transient where an episode ended with its container."""
        if not episode.server.is_running and not episode.run.has_ended:
            raise Transient(f"the container of the episode {episode.id} has ended", advice="start another episode")

    def close(self, episode: WorldEpisode) -> None:
        """End the episode's process."""
        episode.run.close()


class WorldEpisodes(Closable):
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
        self._make_user = make_user
        limits = EpisodeLimits(
            most_open=limit,
            idle_seconds=idle_seconds,
            name_bytes=NAME_BYTES,
            advice=f"POST /reset opens one; those that nobody touches are closed after {idle_seconds:g} s",
        )
        self.table = EpisodeTable(WorldPlayer(host), limits)

    def count(self) -> HealthResponse:
        """Return the numbers of the service."""
        return HealthResponse(
            worlds=len(self.catalog),
            episodes=self.table.count_open(),
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
        episode = self.table.reset(self._resolve(request), request.episode)
        scenario, run = episode.run.scenario.name, episode.run
        return ResetResponse(
            episode=episode.id,
            world=episode.world,
            scenario=scenario,
            seed=episode.seed,
            mode=run.mode.value,
            # The path of `mergemill.worlds.service.protocol`.
            mcp=f"/mcp/{episode.id}",
            observation=run.observation,
            info={"scenario": scenario, "digest": run.digest},
        )

    def call(self, name: str, tool: str, arguments: Mapping[str, Any], number: int | None = None) -> StepResponse:
        """Call a tool for a program, which is to know the tools, and return the outcome.

        Raises:
            RefusedRequestError: there is no such episode or tool, or the episode has ended or is busy.
            Transient: the infrastructure failed.
        """
        with self.table.hold(name) as episode:
            if not episode.run.has_tool(tool):
                names = ", ".join(offered["name"] for offered in episode.run.tools)
                raise RefusedRequestError(f"{episode.world} has no tool {tool}", status=404, advice=f"one of {names}")
            return self.table.take(episode, {"tool": tool, "arguments": dict(arguments)}, number)

    def act(self, name: str, action: object, number: int | None = None) -> StepResponse:
        """Take an agent's action, in any form of `worlds.actions.read_action`, and return the outcome.

        Args:
            name: name of the episode.
            action: the problem with it is part of the outcome.
            number: number of the action in the episode, from 1; the last sent again is answered as before.

        Raises:
            RefusedRequestError, Transient: as `call`.
        """
        return self.table.step(name, action, number)

    def get_state(self, name: str) -> StateResponse:
        """Return state, digest and number of actions of an episode; errors as in `call`."""
        with self.table.hold(name) as episode:
            return StateResponse(
                episode=name,
                state=episode.run.get_state(),
                digest=episode.run.digest,
                steps=episode.run.n_steps,
                ended=episode.run.has_ended,
            )

    def evaluate(self, name: str) -> EvaluateResponse:
        """Return reward and checks of an episode's present state; errors as in `call`."""
        return self.table.evaluate(name)

    def close_episode(self, name: str) -> None:
        """End an episode and forget it.

        Raises:
            RefusedRequestError: there is none of that name.
        """
        self.table.close_episode(name)

    def close(self) -> None:
        """Close all episodes and the container."""
        self.table.close()
        self._host.close()

    def _resolve(self, request: EpisodeRequest) -> ScenarioRequest:
        """Return a request with what it names, before an episode of its name ends."""
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
        return ScenarioRequest(request=request, offered=offered, scenario=scenario, user=user)


def _make_step_response(episode: WorldEpisode, outcome: StepOutcome) -> StepResponse:
    return StepResponse(
        episode=episode.id,
        observation=outcome.observation,
        reward=outcome.reward,
        terminated=outcome.terminated,
        truncated=outcome.truncated,
        info=outcome.info,
    )
