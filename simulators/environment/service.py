"""Episodes of a server: reset, step and evaluation, whatever plays them.

Steps of an episode run in sequence, those of different episodes at the same time. An episode is written to the
disk before its step is answered, so a server that was killed continues with the same requests, and answers that were
paid are in the ledger. A failing endpoint ends no episode: the step earns nothing, and can be requested again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from core.episodes.table import EpisodeLimits, EpisodeTable
from simulators.environment.agent_turn import AgentTurn
from simulators.environment.episode import EntryRole
from simulators.environment.episode_player import ResetRequest, SimulatedPlayer, SimulatedTurn
from simulators.environment.folder import EpisodeFolder
from simulators.environment.options import EpisodeOptions
from simulators.environment.player import EnvironmentPlayer
from simulators.trajectory import ENVIRONMENT

LIMITS = EpisodeLimits(waits=True, most_kept=4096)


def read_clock() -> str:
    """Return the time as records have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class EpisodeService:
    """Episodes of one player in one folder.

    Args:
        player: player that plays person and tools, and judges.
        folder: folder that keeps the episodes.
        options: limits of each episode, and how samples are chosen.
        clock: function that returns the time of a beginning or an end.
    """

    def __init__(
        self,
        *,
        player: EnvironmentPlayer,
        folder: EpisodeFolder,
        options: EpisodeOptions,
        clock: Callable[[], str] = read_clock,
    ) -> None:
        self.player = player
        self._folder = folder
        self._options = options
        self._table = EpisodeTable(SimulatedPlayer(player, folder, options, clock), LIMITS, folder)

    def reset(self, request: ResetRequest) -> dict[str, Any]:
        """Begin an episode; return its id, prompts and first message.

        Raises:
            UsageError: both task and seed are given.
            InputError: there is no such task.
            PlayerError: simulator or endpoint failed.
        """
        episode = self._table.reset(request)
        return {
            "episode": episode.id,
            "environment": ENVIRONMENT,
            "turn": 0,
            "observation": episode.history[0].text,
            "role": EntryRole.USER,
            "system": episode.system_prompt,
            "policy": episode.policy,
            "tools": [{"type": "function", "function": dict(tool)} for tool in episode.tools],
            "task": episode.sample,
            "sample_index": episode.sample_index,
            "done": False,
        }

    def step(
        self, episode_id: str, turn: AgentTurn, *, number: int | None = None, context_tokens: int | None = None
    ) -> dict[str, Any]:
        """Return the environment's answer to a turn of the agent.

        Args:
            episode_id: episode id of `reset`.
            turn: the text that the agent wrote.
            number: number of the turn, from 0; a turn that was answered before gets the same answer again.
            context_tokens: tokens of the agent's context with this turn, where its trainer counted them.

        Raises:
            InputError: there is no such episode.
            ConflictError: another turn of this number was answered, or a turn before it was not.
        """
        return self._table.step(episode_id, SimulatedTurn(turn, context_tokens), number)

    def evaluate(self, episode_id: str) -> dict[str, Any]:
        """Return the reward of an episode; one that runs ends by it, and one without a judgement is judged again.

        Raises:
            InputError: there is no such episode.
        """
        return self._table.evaluate(episode_id)

    def get(self, episode_id: str) -> dict[str, Any]:
        """Return the record of an episode.

        Raises:
            InputError: there is no such episode.
        """
        with self._table.hold(episode_id) as episode:
            return episode.to_json()

    def describe(self) -> dict[str, Any]:
        """Return the kinds that this server plays."""
        return {
            "ok": True,
            "environment": ENVIRONMENT,
            "domain": self.player.domain,
            "samples": len(self.player.samples),
            "episodes": self._folder.n_episodes,
            "configuration": {**self.player.configuration, **asdict(self._options)},
        }

    def list_tasks(self) -> list[dict[str, Any]]:
        """Return the samples, by which `task` of a reset chooses."""
        return [{"sample_index": at, **asdict(sample)} for at, sample in enumerate(self.player.samples)]
