"""SkyRL: importing this module registers the environment `mergemill` and the advantage estimator `grpo_scored`.

One step: the response hands in its last fenced block. SkyRL needs a number for every rollout. Without one, the step
raises `UnscoredError` by default; with `unscored: nan` in the environment's configuration the reward is NaN, and
`trainer.algorithm.advantage_estimator=grpo_scored` gives such a rollout the advantage 0 and leaves it out of the
group's baseline. For agents that work in a container, subclass MergemillEnv and pass their submission to `grade`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import skyrl_gym
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from mergemill_client.adapters.connection import build_row_facts, connect
from mergemill_client.adapters.scored import find_comparable
from mergemill_client.answers import Content, extract_submission
from mergemill_client.environment import TaskEnvironment

ENV_CLASS = "mergemill"
ESTIMATOR = "grpo_scored"


class MergemillEnv(BaseTextEnv):  # type: ignore[misc]
    """Environment of one row; `env_config`: `url`, `token`, `shape` and `unscored` (`raise` or `nan`)."""

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        config = env_config or {}
        self.facts = (extras or {})["extra_info"]
        self.unscored = config.get("unscored", "raise")
        self.environment = connect(config.get("url"), config.get("token"), config.get("shape"))

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Grade the submission in the response and end the episode."""
        reward = self.grade(extract_submission(action))
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=True, metadata={})

    def grade(self, submission: Content) -> float:
        """Return the reward of a submission.

        Raises:
            UnscoredError: there is none, and `unscored` is `raise`.
        """
        score = self.environment.grade(self.facts["task"], self.facts["kind"], submission)
        if self.unscored == "nan" and not score.is_scored:
            return math.nan
        return self.environment.require_reward(score)


def iterate_rows(environment: TaskEnvironment, **filters: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of SkyRL's parquet files for the tasks that filters select."""
    for prompt in environment.iterate_prompts(**filters):
        yield {
            "data_source": "mergemill",
            "prompt": prompt["messages"],
            "env_class": ENV_CLASS,
            "reward_spec": {"method": "rule", "ground_truth": prompt["task"]},
            "extra_info": build_row_facts(prompt),
        }


def compute_scored_advantage(
    token_level_rewards: Any, response_mask: Any, index: Any, grpo_norm_by_std: bool = True, **_: Any
) -> tuple[Any, Any]:
    """Return GRPO's advantages of the scored rollouts, as SkyRL computes them, and 0 for the others.

    A rollout that alone in its group has a reward counts as one of the others. Shapes as in
    `compute_grpo_outcome_advantage`.
    """
    import torch  # noqa: PLC0415 - the environment needs none
    from skyrl.backends.skyrl_train.utils.ppo_utils import compute_grpo_outcome_advantage  # noqa: PLC0415

    chosen = torch.tensor(find_comparable(token_level_rewards.sum(dim=-1).tolist(), index))
    advantages = torch.zeros_like(token_level_rewards)
    if chosen.any():
        advantages[chosen], _ = compute_grpo_outcome_advantage(
            token_level_rewards[chosen],
            response_mask[chosen],
            index[chosen.numpy()],
            grpo_norm_by_std=grpo_norm_by_std,
        )
    return advantages, advantages


def register_estimator() -> None:
    """Register the advantage estimator `grpo_scored`; call it before the trainer is made."""
    from skyrl.backends.skyrl_train.utils.ppo_utils import AdvantageEstimatorRegistry  # noqa: PLC0415

    AdvantageEstimatorRegistry.register(ESTIMATOR, compute_scored_advantage)


skyrl_gym.register(id=ENV_CLASS, entry_point=f"{__name__}:{MergemillEnv.__name__}")
