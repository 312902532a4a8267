"""RAGEN (and Simia's fork of it): an environment, and what keeps episodes without a reward out of training.

In the program that starts the training, before its environments are made::

    from mergemill_client.simulated import ragen
    ragen.install()

and in its configuration::

    custom_envs:
      Simulated:
        env_type: mergemill_simulated
        max_actions_per_traj: 60
        env_instruction: ""
        env_config: {url: "http://127.0.0.1:8500"}
    agent_proxy: {max_turn: 40, max_actions_per_turn: 1}

RAGEN resets all environments of a group with one seed, from which the server chooses sample and first message, and has
no place for an environment's system prompt: policy and tools stand before the first message. It hands on what stands
in `<answer>`, so the agent writes its calls there. Simia's fork numbers its environments (`env_id`), reads their
`system_prompt`, and has no seed of its own for a group: give it `group_size` and `groups`, and the server goes through
the samples by group and episode.

A reward that is null is NaN here. RAGEN has no place for a rollout without a reward, so `install` gives such a rollout
the mean reward of the others of its group before advantages are computed: with a group-relative advantage (GRPO)
that is exactly 0 for it, and the baseline of the others stays. In a group without any reward all are equal, so all
advantages are 0. Where `install` was not called, the environment raises `UnscoredError` instead.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragen.env.base import BaseLanguageBasedEnv

from mergemill_client.environment import UnscoredError
from mergemill_client.simulated.environment import connect

ENV_TYPE = "mergemill_simulated"
VALIDATION = "val"
UNSCORED = "mergemill/unscored"
"""Metric of a rollout: 1 where it has no reward."""
_installed: list[bool] = []


@dataclass
class SimulatedEnvConfig:
    """Configuration of an environment.

    Args:
        url: address of the server; default as in `connect`.
        token: its token.
        env_id: of Simia's fork: number of the environment.
        group_size: of Simia's fork: environments of a group; None lets the seed choose.
        groups: number of groups.
        timeout: seconds to wait for one answer.
        patience: seconds for which a server that does not answer is tried again.
    """

    url: str | None = None
    token: str | None = None
    env_id: str = "null"
    group_size: int | None = None
    groups: int | None = None
    timeout: float = 3600.0
    patience: float = 600.0


class SimulatedEnv(BaseLanguageBasedEnv):  # type: ignore[misc]
    """One environment of a rollout manager. It plays one episode after the other."""

    def __init__(self, config: SimulatedEnvConfig | None = None, **_: Any) -> None:
        super().__init__()
        self.config = config or SimulatedEnvConfig()
        self.system_prompt = ""
        """Of the present episode; Simia's fork puts it before the conversation."""
        self.answer: dict[str, Any] = {}
        """The server's last answer."""
        self._server = connect(
            self.config.url, self.config.token, timeout=self.config.timeout, patience=self.config.patience
        )
        self._observation, self._episode, self._turn = "", "", 0

    def reset(self, seed: int | None = None, mode: str = "train", **_: Any) -> str:
        """Begin an episode; return the first message of the person, of RAGEN itself after policy and tools.

        Equal seeds give equal beginnings.
        """
        number = int(self.config.env_id) if str(self.config.env_id).isdigit() else 0
        if mode == VALIDATION and self.config.group_size:
            opened = self._server.reset(seed=number)
        elif self.config.group_size:
            group = number // self.config.group_size
            opened = self._server.reset(group=group, groups=self.config.groups, env_id=str(self.config.env_id))
        else:
            opened = self._server.reset(seed=seed or 0)
        self.system_prompt = str(opened["system"])
        self._episode, self._turn, self.answer = str(opened["episode"]), 0, {}
        self._observation = str(opened["observation"])
        if not self.config.group_size:
            self._observation = f"{self.system_prompt}\n\n{self._observation}"
        return self._observation

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        """Return observation, reward, done and info of the agent's text. The reward is NaN where there is none.

        Raises:
            UnscoredError: there is none, and `install` was not called.
        """
        answer = self._server.step(self._episode, action, turn=self._turn)
        self._turn, self.answer = answer["turn"], answer
        self._observation = str(answer["observation"])
        if not answer["done"]:
            return self._observation, 0.0, False, {"success": False, UNSCORED: 0.0}
        reward = answer["reward"]
        if reward is None and not _installed:
            raise UnscoredError(f"episode {self._episode}: {answer['infrastructure_error']}")
        value = math.nan if reward is None else float(reward)
        return self._observation, value, True, {"success": reward == 1, UNSCORED: float(reward is None)}

    def render(self, mode: str = "text") -> str:
        """Return the last message of the environment."""
        del mode
        return self._observation

    def close(self) -> None:
        """Do nothing: every request has a connection of its own."""


def fill_unscored(rollouts: Sequence[dict[str, Any]]) -> None:
    """Give rollouts without a reward the mean of their group, so that their advantage is 0; see the module.

    Args:
        rollouts: of `EnvStateManager.get_rollout_states`: `history`, a list of turns with `reward`, and `group_id`.
    """
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for rollout in rollouts:
        groups[rollout.get("tag"), rollout["group_id"]].append(rollout)
    for members in groups.values():
        totals = [_sum_rewards(member) for member in members]
        scored = [total for total in totals if not math.isnan(total)]
        mean = sum(scored) / len(scored) if scored else 0.0
        for rollout, total in zip(members, totals):
            if math.isnan(total):
                _replace_reward(rollout, mean)
                rollout.setdefault("metrics", {})[UNSCORED] = 1.0


def _sum_rewards(rollout: dict[str, Any]) -> float:
    return float(sum(turn.get("reward", 0.0) for turn in rollout["history"]))


def _replace_reward(rollout: dict[str, Any], value: float) -> None:
    turns = [turn for turn in rollout["history"] if "reward" in turn]
    for turn in turns:
        turn["reward"] = 0.0
    turns[-1]["reward"] = value


def install() -> None:
    """Register the environment, and keep rollouts without a reward out of all advantages of this process."""
    from ragen.env import REGISTERED_ENV_CONFIGS, REGISTERED_ENVS  # noqa: PLC0415 - imports all environments
    from ragen.llm_agent.es_manager import EnvStateManager  # noqa: PLC0415 - as above

    REGISTERED_ENVS[ENV_TYPE] = SimulatedEnv
    REGISTERED_ENV_CONFIGS[ENV_TYPE] = SimulatedEnvConfig
    if _installed:
        return
    get_states = EnvStateManager.get_rollout_states

    @functools.wraps(get_states)
    def get_filled_states(manager: Any) -> Any:
        rollouts = get_states(manager)
        fill_unscored(rollouts)
        return rollouts

    EnvStateManager.get_rollout_states = get_filled_states
    _installed.append(True)
