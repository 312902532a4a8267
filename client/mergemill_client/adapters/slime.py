"""slime: a reward function, a hook that leaves out unscored rollouts, and rows for its data source.

::

    --custom-rm-path mergemill_client.adapters.slime.compute_reward
    --custom-reward-post-process-path mergemill_client.adapters.slime.normalize_rewards

The submission is `sample.metadata["submission"]` where a rollout function has put one, else the last fenced block of
the response. A rollout without a score has `remove_sample`, by which slime sets its loss mask to 0, and the reward
NaN, which `normalize_rewards` leaves out of its group's mean and deviation.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import Any

from mergemill_client.adapters.connection import build_row_facts, connect, wait_for
from mergemill_client.adapters.scored import find_comparable
from mergemill_client.answers import extract_submission
from mergemill_client.environment import TaskEnvironment

EPSILON = 1e-6


async def compute_reward(args: Any, sample: Any, **_: Any) -> Any:
    """Return the reward of a sample, a number from 0 to 1 or NaN; or those of a list of samples."""
    if isinstance(sample, list):
        return await asyncio.gather(*(compute_reward(args, member) for member in sample))
    environment = connect()
    submission = sample.metadata.get("submission")
    content = extract_submission(sample.response) if submission is None else submission
    score = await wait_for(environment.grade, sample.metadata["task"], sample.metadata["kind"], content)
    reward = environment.compute_reward(score)
    if reward is None:
        sample.remove_sample = True
        return math.nan
    return reward


def normalize_rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Return the rewards as they are shown, and as they are trained on: minus the mean of the group's scored samples.

    An unscored sample, and one that alone in its group has a score, is trained on with 0 and removed from the loss. It
    is shown with the mean of all scored samples, so that it changes no average.
    """
    raw = [float(sample.get_reward_value(args)) for sample in samples]
    scored = [reward for reward in raw if not math.isnan(reward)]
    mean = fmean(scored) if scored else 0.0
    shown = [mean if math.isnan(reward) else reward for reward in raw]
    if not args.rewards_normalization:
        return shown, [0.0 if math.isnan(reward) else reward for reward in raw]
    groups = [sample.group_index for sample in samples]
    members: dict[Any, list[float]] = defaultdict(list)
    comparable = find_comparable(raw, groups)
    for reward, group, chosen in zip(raw, groups, comparable):
        if chosen:
            members[group].append(reward)
    for sample, chosen in zip(samples, comparable):
        sample.remove_sample = sample.remove_sample or not chosen
    return shown, [
        _normalize(args, reward, members[group]) if chosen else 0.0
        for reward, group, chosen in zip(raw, groups, comparable)
    ]


def _normalize(args: Any, reward: float, group: Sequence[float]) -> float:
    difference = reward - fmean(group)
    return difference / (stdev(group) + EPSILON) if args.grpo_std_normalization else difference


def iterate_rows(environment: TaskEnvironment, **filters: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of slime's JSONL files for the tasks that filters select."""
    for prompt in environment.iterate_prompts(**filters):
        yield {"prompt": prompt["messages"], "label": prompt["task"], "metadata": build_row_facts(prompt)}
