"""A world as an environment of reinforcement learning, with the methods of Gymnasium's `Env`.

`reset` starts a scenario; an action is a tool call or the end. The reward comes with the end, from the checks of the
final state (EnvScaler, arXiv 2601.05808, section 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.closable import Closable
from core.errors import InputError
from worlds.definitions import ScenarioDefinition, WorldDefinition
from worlds.rewards import RewardMode, compute_reward, find_kept_checks
from worlds.server.service import CheckResult, Episode, WorldServer

STOP = "stop"
"""Key of the action that ends an episode: `{"stop": true}`."""
MAX_STEPS = 40
"""Calls after which an episode is truncated (EnvScaler, section 4.1)."""
Observation = dict[str, Any]
Info = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class EpisodeScore:
    """Reward of an episode, 0..1, and what each check gave, in the order of the scenario's checks."""

    reward: float
    checks: tuple[CheckResult, ...]
    kept: frozenset[int]
    """Numbers of the checks that held from the start."""

    def to_json(self) -> dict[str, Any]:
        """Return `{"reward", "checks": [{"function", "outcome", "kept"}]}`."""
        return {
            "reward": self.reward,
            "checks": [
                {"function": one.function, "outcome": one.outcome.value, "kept": number in self.kept}
                for number, one in enumerate(self.checks)
            ],
        }


class WorldEnvironment(Closable):
    """Scenarios of one world. One episode at a time; many environments share a server.

    Args:
        server: runs the world.
        world: the world; its program is loaded once.
        scenarios: scenarios of this world.
        reward_mode: how passed checks become a reward.
        max_steps: calls after which an episode is truncated.

    Raises:
        InputError: the program breaks a rule, the server has too many worlds, or there are no scenarios.
    """

    def __init__(
        self,
        server: WorldServer,
        world: WorldDefinition,
        scenarios: Sequence[ScenarioDefinition],
        *,
        reward_mode: RewardMode = RewardMode.SHARE,
        max_steps: int = MAX_STEPS,
    ) -> None:
        if not scenarios:
            raise InputError(f"{world.name} has no scenarios")
        self._server = server
        self._world = server.load(world)
        self._scenarios = {scenario.name: scenario for scenario in scenarios}
        self._reward_mode = reward_mode
        self._max_steps = max_steps
        self._kept: dict[str, frozenset[int]] = {}
        self._scenario = scenarios[0]
        self._episode: Episode | None = None
        self._steps = 0

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as models take them: name, description, JSON schema of the parameters."""
        return [tool.to_json() for tool in self._world.analysis.tools]

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode and return (observation, info).

        Args:
            seed: determines the scenario, where none is named, and the episode's clock and random values; default 0.
            options: `scenario` is the name of one.

        Returns:
            `{"task", "documentation", "tools"}` and `{"scenario", "digest"}`.

        Raises:
            InputError: there is no such scenario, or it cannot be loaded.
            Transient: the container has ended, or the engine cannot be reached.
        """
        number = seed or 0
        names = sorted(self._scenarios)
        name = (options or {}).get("scenario", names[number % len(names)])
        if name not in self._scenarios:
            raise InputError(f"there is no scenario {name}")
        self._end_episode()
        self._scenario, self._steps = self._scenarios[name], 0
        self._episode = self._world.open_episode(self._scenario.state, seed=number)
        if (fault := self._episode.fault) is not None:
            raise InputError(f"{name}: {fault.reason.value}: {fault.detail}")
        documentation = self._world.definition.documentation
        observation = {"task": self._scenario.task, "documentation": documentation, "tools": self.tools}
        return observation, {"scenario": name, "digest": self._episode.digest}

    def step(self, action: Mapping[str, Any]) -> tuple[Observation, float, bool, bool, Info]:
        """Take an action and return (observation, reward, terminated, truncated, info).

        Args:
            action: `{"tool": NAME, "arguments": {...}}` or `{"stop": true}`. Another one is answered by an error, as
                a call with wrong arguments is.

        Returns:
            The result of the tool (empty at the end); the reward, 0 before the end; whether the episode was ended by
            the action or by a fault of the world (`info["fault"]`, reward 0); whether it reached the most calls; and
            `{"digest"}`, at the end with `checks` of `EpisodeScore.to_json`.

        Raises:
            InputError: there is no episode: `reset` comes first.
            Transient: as `reset`.
        """
        episode = self._require_episode()
        if action.get(STOP) is True:
            return self._finish({}, terminated=True)
        self._steps += 1
        match action:
            case {"tool": str(tool), "arguments": dict(arguments)}:
                result = episode.call(tool, arguments)
                if result.fault is not None:
                    self._end_episode()
                    return {}, 0.0, True, False, {"digest": result.digest, "fault": result.fault.reason.value}
                observation = dict(result.value)
            case _:
                observation = {"success": False, "error": 'an action is {"tool", "arguments"} or {"stop": true}'}
        if self._steps >= self._max_steps:
            return self._finish(observation, terminated=False)
        return observation, 0.0, False, False, {"digest": episode.digest}

    def get_state(self) -> dict[str, Any]:
        """Return the state of the episode; raise InputError where there is none."""
        return self._require_episode().get_state()

    def evaluate(self) -> EpisodeScore:
        """Return the score of the present state; the episode goes on.

        Raises:
            InputError, Transient: as `step`.
        """
        scenario, results = self._scenario, self._require_episode().run_checks(self._scenario.checks)
        if scenario.name not in self._kept:
            at_start = self._server.run_checks(scenario.checks, scenario.state, scenario.state)
            self._kept[scenario.name] = find_kept_checks(at_start)
        kept = self._kept[scenario.name]
        return EpisodeScore(reward=compute_reward(results, kept, self._reward_mode), checks=tuple(results), kept=kept)

    def close(self) -> None:
        """End the episode and forget the world."""
        self._end_episode()
        self._world.close()

    def _finish(self, observation: Observation, *, terminated: bool) -> tuple[Observation, float, bool, bool, Info]:
        score, digest = self.evaluate(), self._require_episode().digest
        self._end_episode()
        info = {"digest": digest, "checks": score.to_json()["checks"]}
        return observation, score.reward, terminated, not terminated, info

    def _require_episode(self) -> Episode:
        if self._episode is None:
            raise InputError("there is no episode", advice="call reset first")
        return self._episode

    def _end_episode(self) -> None:
        if self._episode is not None:
            self._episode.close()
            self._episode = None
