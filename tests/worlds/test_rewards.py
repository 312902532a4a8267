"""Rewards from results of checks."""

from __future__ import annotations

import pytest

from guest.world.reasons import CheckOutcome, FaultReason
from tests.worlds.programs import make_scenario
from worlds.rewards import RewardMode, Scorer, compute_reward, find_kept_checks
from worlds.server.service import CheckResult, Fault

LETTERS = {
    "p": CheckOutcome.PASSED,
    "f": CheckOutcome.FAILED,
    "n": CheckOutcome.NOT_BOOLEAN,
    "r": CheckOutcome.RAISES,
    "l": CheckOutcome.ENDLESS_LOOP,
    "c": CheckOutcome.CRASHED,
}


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


class CountingEpisode:
    """Episode whose checks give the same outcomes each time, and are counted."""

    def __init__(self, digest: str, letters: str, fault: Fault | None = None) -> None:
        self.digest, self.fault, self.n_runs = digest, fault, 0
        self._letters = letters

    def run_checks(self, *_: object) -> list[CheckResult]:
        self.n_runs += 1
        return make_results(self._letters)


@pytest.mark.parametrize(("letters", "runs"), [("pf", [1, 0, 1]), ("pl", [1, 1, 1])])
def test_checks_run_once_for_each_final_state(letters: str, runs: list[int]) -> None:
    scorer, start = Scorer(), CountingEpisode("start", "ff")
    episodes = [CountingEpisode("one", letters), CountingEpisode("one", letters), CountingEpisode("two", letters)]
    for episode in episodes:
        score = scorer.score(start, episode, make_scenario())  # type: ignore[arg-type]
        assert (score.reward, score.checks[0].outcome) == (0.5, CheckOutcome.PASSED)
    assert [episode.n_runs for episode in episodes] == runs, "what the machine decides is not remembered"
    assert start.n_runs == 1


def test_an_episode_with_a_fault_is_not_scored_as_another_one_with_its_state() -> None:
    scorer, start = Scorer(), CountingEpisode("start", "ff")
    scorer.score(start, CountingEpisode("one", "pp"), make_scenario())  # type: ignore[arg-type]
    faulty = CountingEpisode("one", "cc", Fault(reason=FaultReason.RAISES, detail=""))
    assert scorer.score(start, faulty, make_scenario()).reward == 0.0  # type: ignore[arg-type]
