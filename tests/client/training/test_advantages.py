"""Advantages in groups."""

from __future__ import annotations

import math

import pytest
import torch
from mergemill_client.training import group_advantages

REWARDS = torch.tensor([1.0, 0.0, 0.5, 7.0, 3.0, 3.0, math.nan, 1.0, math.nan])
GROUPS = torch.tensor([4, 4, 4, 9, 2, 2, 4, 9, 1])


def test_a_reward_is_compared_with_those_of_its_group() -> None:
    advantages = group_advantages(REWARDS, GROUPS)
    deviation = torch.tensor([1.0, 0.0, 0.5]).std().item()
    assert advantages[:3].tolist() == pytest.approx([0.5 / deviation, -0.5 / deviation, 0], abs=1e-5)
    assert advantages[[3, 7]].tolist() == pytest.approx([0.70710, -0.70710], abs=1e-4)
    assert group_advantages(REWARDS, GROUPS, scale=False)[:3].tolist() == [0.5, -0.5, 0]


def test_equal_rewards_have_no_advantage() -> None:
    assert group_advantages(REWARDS, GROUPS)[[4, 5]].tolist() == [0, 0]


def test_a_rollout_without_a_reward_is_no_part_of_its_group() -> None:
    advantages = group_advantages(REWARDS, GROUPS)
    known = torch.isfinite(REWARDS)
    torch.testing.assert_close(advantages[known], group_advantages(REWARDS[known], GROUPS[known]))
    assert advantages[~known].tolist() == [0, 0]


def test_no_rollouts_have_no_advantages() -> None:
    assert group_advantages(torch.tensor([]), torch.tensor([], dtype=torch.long)).shape == (0,)
