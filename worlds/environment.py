"""A world as an environment of reinforcement learning, with the methods of Gymnasium's `Env`.

`reset` starts a scenario; an action is a tool call, a model's text, words for the user or the end. The reward comes
with the end, from the checks of the final state (EnvScaler, arXiv 2601.05808, section 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.closable import Closable
from core.errors import InputError
from worlds.actions import CHAT_SCHEMA
from worlds.definitions import ScenarioDefinition, State, WorldDefinition
from worlds.rewards import EpisodeScore, RewardMode, Scorer
from worlds.scenario_run import MAX_STEPS, Info, Observation, ScenarioRun
from worlds.server.service import WorldServer
from worlds.users import UserFactory


class WorldEnvironment(Closable):
    """Scenarios of a world. An episode at a time; many environments share a server.

    Args:
        server: server that runs the world.
        world: the world; its program is loaded once.
        scenarios: scenarios of this world.
        reward_mode: how passed checks become a reward.
        max_steps: actions after which an episode is truncated.
        make_user: function that makes the user of each episode, for conversations; without a user the agent is given
            the task.

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
        make_user: UserFactory | None = None,
    ) -> None:
        if not scenarios:
            raise InputError(f"{world.name} has no scenarios")
        self._server = server
        self._world = server.load(world)
        self._scenarios = {scenario.name: scenario for scenario in scenarios}
        self._reward_mode = reward_mode
        self._max_steps = max_steps
        self._make_user = make_user
        self._scorer = Scorer()
        self._run: ScenarioRun | None = None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as models take them: name, description, JSON schema of the parameters."""
        chat = [dict(CHAT_SCHEMA)] if self._make_user is not None else []
        return [tool.to_json() for tool in self._world.analysis.tools] + chat

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode and return (observation, info).

        Args:
            seed: seed that determines the scenario, where none is named, and the episode's clock and random values;
                default 0.
            options: `scenario` is the name of a scenario.

        Returns:
            `{"task", "documentation", "tools"}`, with `user` (the greeting) in place of `task` in a conversation; and
            `{"scenario", "digest"}`.

        Raises:
            InputError: there is no such scenario, or it cannot be loaded.
            Transient: the container has ended, the engine or the user's model cannot be reached.
        """
        number = seed or 0
        name = choose_scenario(self._scenarios, (options or {}).get("scenario"), number)
        self._end_run()
        scenario = self._scenarios[name]
        self._run = ScenarioRun(
            self._server,
            self._world,
            scenario,
            self._scorer,
            seed=number,
            user=self._make_user(scenario) if self._make_user is not None else None,
            reward_mode=self._reward_mode,
            max_steps=self._max_steps,
        )
        return self._run.observation, {"scenario": name, "digest": self._run.digest}

    def step(self, action: Mapping[str, Any] | str) -> tuple[Observation, float, bool, bool, Info]:
        """Take an action and return (observation, reward, terminated, truncated, info).

        Args:
            action: `{"tool": NAME, "arguments": {...}}`, `{"stop": true}`, or the text that a model wrote: see
                `worlds.actions.read_action`. Another action is answered by an error, as a call with wrong arguments is.

        Returns:
            The result of the tool or the user's answer (empty at the end); the reward, 0 before the end; whether the
            episode was ended by the action, by the user or by a fault of the world (`info["fault"]`, reward 0); whether
            it reached the most actions; and `{"digest"}`, at the end with `checks` of `EpisodeScore.to_json`.

        Raises:
            InputError: there is no episode: `reset` comes first.
            Transient: as `reset`.
        """
        outcome = self._require_run().step(action)
        return outcome.observation, outcome.reward, outcome.terminated, outcome.truncated, outcome.info

    def get_state(self) -> State:
        """Return the state of the episode; raise InputError where there is none."""
        return self._require_run().get_state()

    def evaluate(self) -> EpisodeScore:
        """Return the score of the present state; the episode goes on.

        Raises:
            InputError, Transient: as `step`.
        """
        return self._require_run().evaluate()

    def close(self) -> None:
        """End the episode and forget the world."""
        self._end_run()
        self._world.close()

    def _require_run(self) -> ScenarioRun:
        if self._run is None or self._run.has_ended:
            raise InputError("there is no episode", advice="call reset first")
        return self._run

    def _end_run(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None


def choose_scenario(names: Mapping[str, object], name: str | None, seed: int) -> str:
    """Return the name of the scenario that a reset starts: the named scenario, or the scenario that the seed chooses.

    Raises:
        InputError: there is no such scenario.
    """
    if name is None:
        ordered = sorted(names)
        return ordered[seed % len(ordered)]
    if name not in names:
        raise InputError(f"there is no scenario {name}", advice=f"one of {', '.join(sorted(names))}")
    return name
