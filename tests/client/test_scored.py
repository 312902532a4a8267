"""Which rollouts of a batch are compared with one another."""

from __future__ import annotations

import math

from mergemill_client.adapters.scored import find_comparable


def test_a_rollout_is_compared_with_scored_ones_of_its_group_alone() -> None:
    rewards = [1.0, 0.0, math.nan, math.nan, 1.0, 0.5, 0.5]
    assert find_comparable(rewards, "aaabbcc") == [True, True, False, False, False, True, True]
    assert find_comparable([], []) == []
