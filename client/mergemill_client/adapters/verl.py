"""verl: a reward function, rows for its data set, and an advantage estimator that leaves out unscored rollouts.

::

    reward.custom_reward_function.path=.../mergemill_client/adapters/verl.py
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.url=http://127.0.0.1:8400
    +reward.custom_reward_function.reward_kwargs.unscored=nan
    algorithm.adv_estimator=grpo_scored               # with VERL_USE_EXTERNAL_MODULES=mergemill_client.adapters.verl

The submission is the last fenced block of the response, or what an agent loop left under `submission` in its
`extra_fields`. verl needs a number for every rollout. Without one, the reward raises `UnscoredError` by default; with
`unscored=nan` it is NaN, which `grpo_scored` leaves out of the group's baseline and of the loss.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

from mergemill_client.adapters.connection import build_row_facts, connect, wait_for
from mergemill_client.answers import extract_submission
from mergemill_client.environment import TaskEnvironment

DATA_SOURCE = "mergemill"
ESTIMATOR = "grpo_scored"


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    url: str | None = None,
    token: str | None = None,
    shape: str | None = None,
    unscored: str = "raise",
    **_: Any,
) -> dict[str, Any]:
    """Return the reward of a response under `score`, and whether the submission solves the task under `acc`.

    Args:
        data_source: of the row.
        solution_str: the response.
        ground_truth: name of the task.
        extra_info: the row's; its `kind` is that of the task.
        url: address of the grading server; default as in `connection.connect`.
        token: its token.
        shape: of the reward.
        unscored: `raise`, or `nan`.

    Raises:
        UnscoredError: there is no reward, and `unscored` is `raise`.
    """
    del data_source
    info = extra_info or {}
    environment = connect(url, token, shape)
    submission = info.get("submission")
    content = extract_submission(solution_str) if submission is None else submission
    score = await wait_for(environment.grade, ground_truth, info.get("kind", ""), content)
    reward = environment.compute_reward(score) if unscored == "nan" else environment.require_reward(score)
    return {"score": math.nan if reward is None else reward, "acc": float(score.resolved), "unscored": reward is None}


def iterate_rows(
    environment: TaskEnvironment, agent: str = "single_turn_agent", **filters: Any
) -> Iterator[dict[str, Any]]:
    """Yield the rows of verl's parquet files for the tasks that filters select; `agent`: name of the agent loop."""
    for number, prompt in enumerate(environment.iterate_prompts(**filters)):
        yield {
            "data_source": DATA_SOURCE,
            "prompt": prompt["messages"],
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": prompt["task"]},
            "extra_info": {"index": number, **build_row_facts(prompt)},
            "agent_name": agent,
        }


def compute_scored_advantage(
    token_level_rewards: Any, response_mask: Any, index: Any, config: Any = None, **_: Any
) -> tuple[Any, Any]:
    """Return GRPO's advantages of the scored rollouts, as verl computes them, and 0 for the others.

    A rollout whose reward is NaN, and one that alone in its group has a reward, is set aside: its row of
    `response_mask` becomes 0, so that no term of the loss counts it. Shapes as in `compute_grpo_outcome_advantage`.
    """
    import torch  # noqa: PLC0415 - a reward process needs none
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage  # noqa: PLC0415

    from mergemill_client.adapters.scored import find_comparable  # noqa: PLC0415

    chosen = torch.tensor(find_comparable(token_level_rewards.sum(dim=-1).tolist(), index))
    response_mask[~chosen] = 0
    advantages = torch.zeros_like(token_level_rewards)
    if chosen.any():
        by_std = True if config is None else config.get("norm_adv_by_std_in_grpo", True)
        advantages[chosen], _ = compute_grpo_outcome_advantage(
            token_level_rewards[chosen], response_mask[chosen], index[chosen.numpy()], norm_adv_by_std_in_grpo=by_std
        )
    return advantages, advantages


def register_estimator() -> None:
    """Register the advantage estimator `grpo_scored` in this process."""
    from verl.trainer.ppo import core_algos  # noqa: PLC0415 - a reward process needs none

    core_algos.ADV_ESTIMATOR_REGISTRY.setdefault(ESTIMATOR, compute_scored_advantage)


if __name__ in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(","):
    register_estimator()
