"""Reward of an episode from the results of its checks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from guest.world.reasons import CheckOutcome
from worlds.definitions import ScenarioDefinition
from worlds.server.service import CheckResult, Episode, WorldServer

MAX_STATES = 10_000
"""Final states whose results are remembered."""
REPEATABLE = frozenset(
    (CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.NOT_BOOLEAN, CheckOutcome.ALTERED, CheckOutcome.RAISES)
)
"""Outcomes that a check gives again for the same states; the others depend on the machine, too."""


class RewardMode(StrEnum):
    """How passed checks become a reward in 0..1."""

    SHARE = "share"
    """Share of the checks that passed (EnvScaler, section 3.2)."""
    ALL_OR_NOTHING = "all-or-nothing"
    """1 if all passed, else 0."""


def find_kept_checks(at_start: Sequence[CheckResult]) -> frozenset[int]:
    """Return the numbers of the checks that hold in the initial state: conditions that may not break, and earn nothing.

    `at_start`: results of the checks with the initial state as the final.
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


@dataclass(frozen=True, kw_only=True)
class EpisodeScore:
    """Reward of an episode, 0..1, and the result that each check gave, in the order of the scenario's checks."""

    reward: float
    checks: tuple[CheckResult, ...]
    kept: frozenset[int]
    """Numbers of the checks that held from the start."""

    def to_json(self) -> dict[str, Any]:
        """Return `{"reward", "checks": [{"function", "outcome", "kept"}]}`."""
        return {
            "reward": self.reward,
            "checks": [
                {"function": check.function, "outcome": check.outcome.value, "kept": number in self.kept}
                for number, check in enumerate(self.checks)
            ],
        }


class Scorer:
    """Scores episodes. Checks run once for each final state of a scenario. Threads may share it."""

    def __init__(self, most_states: int = MAX_STATES) -> None:
        self._most_states = most_states
        self._kept: dict[tuple[str, str], frozenset[int]] = {}
        self._results: dict[tuple[str, str, str], tuple[CheckResult, ...]] = {}

    def score(
        self, server: WorldServer, episode: Episode, scenario: ScenarioDefinition, mode: RewardMode = RewardMode.SHARE
    ) -> EpisodeScore:
        """Return the score of an episode's present state.

        Args:
            server: the server of the episode.
            episode: an episode of the scenario.
            scenario: scenario whose checks are run.
            mode: how passed checks become a reward.

        Raises:
            Transient, CancelledRunError: as `WorldServer.run_checks`.
        """
        results = self._find_results(episode, scenario)
        kept = self._find_kept(server, scenario)
        return EpisodeScore(reward=compute_reward(results, kept, mode), checks=results, kept=kept)

    def _find_results(self, episode: Episode, scenario: ScenarioDefinition) -> tuple[CheckResult, ...]:
        key = (scenario.world, scenario.name, episode.digest)
        known = self._results.get(key)
        if known is not None and episode.fault is None:
            return known
        results = tuple(episode.run_checks(scenario.checks))
        if all(result.outcome in REPEATABLE for result in results):
            if len(self._results) >= self._most_states:
                self._results.clear()
            self._results[key] = results
        return results

    def _find_kept(self, server: WorldServer, scenario: ScenarioDefinition) -> frozenset[int]:
        key = (scenario.world, scenario.name)
        if key not in self._kept:  # two threads that come first find the same
            self._kept[key] = find_kept_checks(server.run_checks(scenario.checks, scenario.state, scenario.state))
        return self._kept[key]
