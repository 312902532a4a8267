"""An episode of a scenario: actions in, observations out, the reward at the end.

Two modes (EnvScaler, arXiv 2601.05808, section 3.3): without a user the agent is given the whole task and ends the
episode itself; in a conversation a user gives the task away piece by piece and ends it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.closable import Closable
from core.errors import InputError, MergemillError
from worlds.actions import CHAT_SCHEMA, CHAT_TOOL, Action, ChatAction, StopAction, ToolAction, read_action
from worlds.definitions import ScenarioDefinition, State
from worlds.rewards import EpisodeScore, RewardMode, Scorer
from worlds.server.service import Episode, ServedWorld, WorldServer
from worlds.users import STOP_MARK, SimulatedUser

MAX_STEPS = 40
"""Actions after which an episode is truncated (EnvScaler, section 4.1)."""
Observation = dict[str, Any]
Info = dict[str, Any]


class InteractionMode(StrEnum):
    """How an agent learns of its task."""

    NON_CONVERSATIONAL = "non-conversational"
    """It is given all of it at the start."""
    CONVERSATIONAL = "conversational"
    """A user gives it away in a conversation."""


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """Result that an action led to.

    The observation, the reward (0 before the end), how it ended, and the metrics that trainers log.
    """

    observation: Observation
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: Info = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether no action may follow."""
        return self.terminated or self.truncated


class ScenarioRun(Closable):
    """An episode. To be used by a single thread at a time.

    Args:
        server: server that runs the world.
        world: the world, loaded by this server.
        scenario: a scenario of the world.
        scorer: scorer that computes the reward.
        seed: seed that determines the clock and random values of the world.
        user: the user of a conversation; None where the agent is given the task.
        reward_mode: how passed checks become a reward.
        max_steps: actions after which the episode is truncated.

    Raises:
        InputError: the state cannot be loaded, or a tool has the name of the conversation's.
        Transient: the container has ended, the engine or the user's model cannot be reached.
    """

    def __init__(
        self,
        server: WorldServer,
        world: ServedWorld,
        scenario: ScenarioDefinition,
        scorer: Scorer,
        *,
        seed: int = 0,
        user: SimulatedUser | None = None,
        reward_mode: RewardMode = RewardMode.SHARE,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.scenario = scenario
        self.score: EpisodeScore | None = None
        """The final score, once the episode has ended."""
        self.n_steps = 0
        self._server = server
        self._scorer = scorer
        self._user = user
        self._reward_mode = reward_mode
        self._max_steps = max_steps
        self._tool_names = frozenset(tool.name for tool in world.analysis.tools)
        if user is not None and CHAT_TOOL in self._tool_names:
            raise InputError(f"a tool of {world.definition.name} is named {CHAT_TOOL}", advice="rename it")
        self._final_state: State = {}
        self.tools = [tool.to_json() for tool in world.analysis.tools] + ([dict(CHAT_SCHEMA)] if user else [])
        """The tools as models take them: name, description, JSON schema of the parameters."""
        opening = {"task": scenario.task} if user is None else {"user": user.greet()}
        self._episode: Episode | None = world.open_episode(scenario.state, seed=seed)
        if (fault := self._episode.fault) is not None:
            self.close()
            raise InputError(f"{scenario.name}: {fault.reason.value}: {fault.detail}")
        self.observation: Observation = {
            **opening,
            "documentation": world.definition.documentation,
            "tools": self.tools,
        }
        """Text that the agent is given at the start: `task` or the `user`'s greeting, documentation and tools."""
        self.digests = [self._episode.digest]
        """Hashes of the state: at the start, and after each action but the end."""

    @property
    def digest(self) -> str:
        """Hash of the present state, or of the final."""
        return self.digests[-1]

    @property
    def mode(self) -> InteractionMode:
        """Whether there is a user."""
        return InteractionMode.NON_CONVERSATIONAL if self._user is None else InteractionMode.CONVERSATIONAL

    @property
    def has_ended(self) -> bool:
        """Whether no action may follow."""
        return self._episode is None

    def has_tool(self, name: str) -> bool:
        """Return whether an agent may call a tool of that name."""
        return name in self._tool_names or (self._user is not None and name == CHAT_TOOL)

    def step(self, given: object) -> StepOutcome:
        """Take an action, in any form of `worlds.actions.read_action`.

        An action that cannot be read is answered by an error, as a call with wrong arguments is. An action that raises
        was not taken.

        Raises:
            InputError: the episode has ended.
            Transient: the container has ended, the engine or the user's model cannot be reached.
        """
        episode = self._require_episode()
        action = read_action(given, self._tool_names, is_conversation=self._user is not None)
        if isinstance(action, StopAction):
            return self._finish({}, terminated=True)
        observation, terminated = self._act(episode, action)
        self.n_steps += 1
        self.digests.append(episode.digest)
        if episode.fault is not None:
            fault = episode.fault.reason.value
            outcome = self._finish({}, terminated=True)
            return StepOutcome(observation={}, terminated=True, info={**outcome.info, "fault": fault})
        if terminated or self.n_steps >= self._max_steps:
            return self._finish(observation, terminated=terminated)
        return StepOutcome(observation=observation, info={"digest": self.digest})

    def get_state(self) -> State:
        """Return the present state, or the final.

        Raises:
            Transient: as `step`.
        """
        return self._final_state if self._episode is None else self._episode.get_state()

    def evaluate(self) -> EpisodeScore:
        """Return the score of the present state, or the final; an episode goes on.

        Raises:
            Transient: as `step`.
        """
        if self.score is not None:
            return self.score
        return self._scorer.score(self._server, self._require_episode(), self.scenario, self._reward_mode)

    def close(self) -> None:
        """End the episode's process; it may have ended with its container."""
        episode, self._episode = self._episode, None
        if episode is not None:
            with contextlib.suppress(MergemillError):
                episode.close()

    def _act(self, episode: Episode, action: Action) -> tuple[Observation, bool]:
        """Return the result that the agent gets for an action, and whether the user ended the conversation."""
        if isinstance(action, ToolAction):
            return dict(episode.call(action.tool, action.arguments).value), False
        if isinstance(action, ChatAction) and self._user is not None:
            answer = self._user.answer(action.text)
            if STOP_MARK in answer:
                return {}, True
            return {"success": True, "data": answer}, False
        return {"success": False, "error": getattr(action, "problem", "")}, False

    def _finish(self, observation: Observation, *, terminated: bool) -> StepOutcome:
        score = self.evaluate()
        # Read before the process ends, since the state ends with it.
        self._final_state = self.get_state()
        self.score = score
        self.close()
        info = {"digest": self.digest, "checks": score.to_json()["checks"]}
        return StepOutcome(
            observation=observation,
            reward=score.reward,
            terminated=terminated,
            truncated=not terminated,
            info=info,
        )

    def _require_episode(self) -> Episode:
        if self._episode is None:
            raise InputError("the episode has ended", advice="start another one")
        return self._episode
