"""Reward of an episode from the results of its checks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from worlds.definitions import ScenarioDefinition
from worlds.server.service import CheckResult, Episode, WorldServer


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


@dataclass(frozen=True, kw_only=True)
class EpisodeScore:
    """Reward of an episode, 0..1, and what each check gave, in the order of the scenario's checks."""

    reward: float
    checks: tuple[CheckResult, ...]
    kept: frozenset[int]
    """Numbers of the checks that held from the start."""

    def to_json(self) -> dict[str, Any]:
        """Return `{"reward", "checks": [{"function", "outcome", "kept"}]}`."""
        return {
            "reward": self.reward,
            "checks": [
                {"function": one.function, "outcome": one.outcome.value, "kept": number in self.kept}
                for number, one in enumerate(self.checks)
            ],
        }


class Scorer:
    """Scores episodes. Which checks are kept is found out once for each scenario. Threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], frozenset[int]] = {}

    def score(
        self, server: WorldServer, episode: Episode, scenario: ScenarioDefinition, mode: RewardMode = RewardMode.SHARE
    ) -> EpisodeScore:
        """Return the score of an episode's present state.

        Args:
            server: the server of the episode.
            episode: an episode of the scenario.
            scenario: whose checks are run.
            mode: how passed checks become a reward.

        Raises:
            Transient, CancelledRunError: as `WorldServer.run_checks`.
        """
        results = episode.run_checks(scenario.checks)
        kept = self._find_kept(server, scenario)
        return EpisodeScore(reward=compute_reward(results, kept, mode), checks=tuple(results), kept=kept)

    def _find_kept(self, server: WorldServer, scenario: ScenarioDefinition) -> frozenset[int]:
        key = (scenario.world, scenario.name)
        if key not in self._kept:  # two threads that come first find the same
            self._kept[key] = find_kept_checks(server.run_checks(scenario.checks, scenario.state, scenario.state))
        return self._kept[key]
