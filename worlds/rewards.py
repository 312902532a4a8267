"""Reward of an episode from the results of its checks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from worlds.server.service import CheckResult


class RewardMode(StrEnum):
    """How passed checks become a reward in 0..1."""

    SHARE = "share"
    """Share of the checks that passed (EnvScaler, section 3.2)."""
    ALL_OR_NOTHING = "all-or-nothing"
    """1 if all passed, else 0."""


def find_kept_checks(at_start: Sequence[CheckResult]) -> frozenset[int]:
    """Return the numbers of the checks that hold in the initial state: conditions that may not break, and earn nothing.

    `at_start`: results of the checks with the initial state as the final one.
    """
    return frozenset(number for number, result in enumerate(at_start) if result.is_passed)


def compute_reward(results: Sequence[CheckResult], kept: Collection[int], mode: RewardMode = RewardMode.SHARE) -> float:
    """Return the reward, 0..1: 0 where a kept check broke or none of the checks can earn anything.

    Args:
        results: results of all checks on the final state.
        kept: numbers of the kept checks, from `find_kept_checks`.
        mode: how the others count.
    """
    earning = [result.is_passed for number, result in enumerate(results) if number not in kept]
    if not earning or not all(results[number].is_passed for number in kept):
        return 0.0
    return sum(earning) / len(earning) if mode is RewardMode.SHARE else float(all(earning))
