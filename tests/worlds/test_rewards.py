"""Rewards from results of checks."""

from __future__ import annotations

import pytest

from worlds.container.reasons import CheckOutcome
from worlds.rewards import RewardMode, compute_reward, find_kept_checks
from worlds.server.service import CheckResult

LETTERS = {"p": CheckOutcome.PASSED, "f": CheckOutcome.FAILED, "n": CheckOutcome.NOT_BOOLEAN, "r": CheckOutcome.RAISES}


def make_results(letters: str) -> list[CheckResult]:
    return [CheckResult(function="check", outcome=LETTERS[letter]) for letter in letters]


@pytest.mark.parametrize(
    ("start", "end", "share", "whole"),
    [
        ("ff", "pp", 1.0, 1.0),
        ("ff", "pf", 0.5, 0.0),
        ("ff", "ff", 0.0, 0.0),
        ("fp", "pp", 1.0, 1.0),
        ("fp", "pf", 0.0, 0.0),
        ("fp", "fp", 0.0, 0.0),
        ("pp", "pp", 0.0, 0.0),
        ("fn", "pn", 0.5, 0.0),
        ("rr", "pr", 0.5, 0.0),
        ("", "", 0.0, 0.0),
    ],
)
def test_kept_checks_are_conditions_and_the_others_earn(start: str, end: str, share: float, whole: float) -> None:
    kept = find_kept_checks(make_results(start))
    assert compute_reward(make_results(end), kept) == share
    assert compute_reward(make_results(end), kept, RewardMode.ALL_OR_NOTHING) == whole
