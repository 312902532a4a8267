"""Episodes of a server: reset, step and evaluation, whatever plays them.

Steps of an episode run in sequence, those of different episodes at the same time. An episode is written to the
disk before its step is answered, so a server that was killed continues with the same requests, and answers that were
paid are in the ledger. A failing endpoint ends no episode: the step earns nothing, and can be requested again.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from backends.llm.base import CHARS_PER_TOKEN, MESSAGE_TOKENS
from core.errors import InputError, UsageError
from simulators.environment.agent_turn import AgentTurn
from simulators.environment.calls import OverlongError, PlayerError
from simulators.environment.episode import Answerer, EntryRole, HistoryEntry, SimulatedEpisode, TerminationReason
from simulators.environment.folder import EpisodeFolder
from simulators.environment.options import EpisodeOptions
from simulators.environment.player import EnvironmentAnswer, EpisodePlayer
from simulators.trajectory import ENVIRONMENT

MAX_OPEN = 4096
"""Episodes kept in memory; others are read again when they go on."""


class ConflictError(InputError):
    """A step does not follow from the episode as it stands."""


@dataclass(frozen=True, kw_only=True)
class ResetRequest:
    """Which episode begins. Either of `task` and `seed` may choose its sample; else group and episode number do.

    `task`: id or name of a sample. `seed`: a number. `group`: environments of a group get equal beginnings. `groups`:
    their number; None for that of the options. `episode`: number among those of the environment, from 0; None for the
    next, or for 0 without an `env_id`. `env_id`: name of the environment.
    """

    task: str | None = None
    seed: int | None = None
    group: int = 0
    groups: int | None = None
    episode: int | None = None
    env_id: str = ""


@dataclass(kw_only=True)
class EpisodeService:
    """Episodes of a player in a single folder."""

    player: EpisodePlayer
    folder: EpisodeFolder
    options: EpisodeOptions
    clock: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="seconds")
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _open: dict[str, SimulatedEpisode] = field(default_factory=dict)

    def reset(self, request: ResetRequest) -> dict[str, Any]:
        """Begin an episode; return its id, prompts and first message.

        Raises:
            UsageError: both task and seed are given.
            InputError: there is no such task.
            PlayerError: simulator or endpoint failed.
        """
        if request.task is not None and request.seed is not None:
            raise UsageError("task and seed exclude each other")
        number = request.episode
        if number is None:  # one that failed does not count: its group would go on with another sample
            number = self.folder.count_resets(request.env_id) if request.env_id else 0
        index, draw = self._choose_sample(request, number)
        opening, sample = self.player.open(index, draw), self.player.samples[index]
        episode = SimulatedEpisode(
            id=secrets.token_hex(16),
            env_id=request.env_id,
            group=draw,
            episode=number,
            sample_index=index,
            sample=sample.id,
            name=sample.name,
            license=sample.license,
            domain=self.player.domain,
            system_prompt=opening.system_prompt,
            policy=opening.policy,
            tools=opening.tools,
            reference=opening.reference,
            configuration={**self.player.configuration, **asdict(self.options)},
            created_at=self.clock(),
            is_rewritten=opening.is_rewritten,
            history=[HistoryEntry(role=EntryRole.USER, text=opening.message)],
            calls=list(opening.calls),
            state=opening.state,
        )
        # Written before it is answered: after a restart, the episode continues from the folder.
        self.folder.add(episode)
        self._keep(episode)
        return {
            "episode": episode.id,
            "environment": ENVIRONMENT,
            "turn": 0,
            "observation": opening.message,
            "role": EntryRole.USER,
            "system": episode.system_prompt,
            "policy": episode.policy,
            "tools": [{"type": "function", "function": dict(tool)} for tool in episode.tools],
            "task": sample.id,
            "sample_index": index,
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
        with self._hold(episode_id) as episode:
            # A client that lost the answer sends the turn again, and must not be played another one.
            if number is not None and number != episode.num_steps:
                return self._repeat(episode, turn, number)
            if episode.has_ended:
                return self._describe(episode)
            return self._take(episode, turn, context_tokens)

    def evaluate(self, episode_id: str) -> dict[str, Any]:
        """Return the reward of an episode; one that runs ends by it, and one without a judgement is judged again.

        Raises:
            InputError: there is no such episode.
        """
        with self._hold(episode_id) as episode:
            if not episode.has_ended:
                self._end(episode, TerminationReason.FORCED_EVALUATION)
            # The judge failed before, which costs no reward; it may answer now.
            elif episode.reward is None:
                self._judge(episode)
            self.folder.save(episode)
            return self._describe(episode)

    def get(self, episode_id: str) -> dict[str, Any]:
        """Return the record of an episode.

        Raises:
            InputError: there is no such episode.
        """
        with self._hold(episode_id) as episode:
            return episode.to_json()

    def describe(self) -> dict[str, Any]:
        """Return the kinds that this server plays."""
        return {
            "ok": True,
            "environment": ENVIRONMENT,
            "domain": self.player.domain,
            "samples": len(self.player.samples),
            "episodes": self.folder.n_episodes,
            "configuration": {**self.player.configuration, **asdict(self.options)},
        }

    def list_tasks(self) -> list[dict[str, Any]]:
        """Return the samples, by which `task` of a reset chooses."""
        return [{"sample_index": at, **asdict(sample)} for at, sample in enumerate(self.player.samples)]

    # ------------------------------------------------------------------------------------------------ steps

    def _choose_sample(self, request: ResetRequest, number: int) -> tuple[int, str]:
        """Return the place of a sample, and the word from which everything about its beginning is drawn."""
        samples = self.player.samples
        if request.task is not None:
            found = [at for at, one in enumerate(samples) if request.task in (one.id, one.name)]
            if len(found) != 1:
                problem = "is ambiguous" if found else "is unknown"
                raise InputError(f"the task {request.task} {problem}", advice="GET /tasks lists the tasks")
            return found[0], f"task {request.group} {number}"
        if request.seed is not None:
            return request.seed % len(samples), f"seed {request.seed}"
        groups = self.options.groups if request.groups is None else request.groups
        return (request.group + number * groups) % len(samples), f"group {request.group} {number}"

    def _take(self, episode: SimulatedEpisode, turn: AgentTurn, context_tokens: int | None) -> dict[str, Any]:
        entry = HistoryEntry(
            role=EntryRole.AGENT,
            text=turn.raw,
            reasoning=turn.reasoning,
            calls=tuple({"name": call.name, "arguments": dict(call.arguments)} for call in turn.calls),
        )
        tokens = context_tokens if context_tokens is not None else episode.tokens + _count_tokens(entry.text)
        # Checked before the simulator is called, whose answer the agent could not use.
        if tokens > self.options.context_limit:
            return self._finish(episode, turn, entry, None, TerminationReason.TOKEN_LIMIT)
        is_last = (
            episode.num_steps + 1 >= self.options.turns
            or episode.actions + turn.n_actions >= self.options.actions
            or episode.simulated + 1 >= self.options.steps
        )
        # The simulator is not called for a turn after which nothing follows.
        if is_last:
            return self._finish(episode, turn, entry, None, TerminationReason.MAX_STEPS)
        try:
            answer = self.player.answer(episode, turn)
        except OverlongError as error:
            episode.calls += error.notes
            return self._finish(episode, turn, entry, None, TerminationReason.TOKEN_LIMIT)
        except PlayerError as error:
            return self._interrupt(episode, error)
        reason = TerminationReason.GPT_DECISION if answer.is_end else None
        if not answer.is_end and tokens + _count_tokens(answer.text) > self.options.context_limit:
            reason = TerminationReason.TOKEN_LIMIT  # the agent could not be given its next turn
        return self._finish(episode, turn, entry, answer, reason)

    def _finish(
        self,
        episode: SimulatedEpisode,
        turn: AgentTurn,
        entry: HistoryEntry,
        answer: EnvironmentAnswer | None,
        reason: TerminationReason | None,
    ) -> dict[str, Any]:
        """Add a turn and the results that were answered to it, end the episode where there is a reason, and keep it."""
        episode.infrastructure_error = None
        episode.add(entry)
        episode.num_steps += 1
        episode.actions += turn.n_actions
        said = None
        if answer is not None:
            episode.calls += answer.calls
            episode.simulated += answer.by is Answerer.SIMULATOR
            episode.state = answer.state
            if not answer.is_end:
                said = HistoryEntry(role=answer.role, text=answer.text, by=answer.by)
                episode.add(said)
        if reason is not None:
            self._end(episode, reason)
        self.folder.save(episode)
        return self._describe(episode, said)

    def _interrupt(self, episode: SimulatedEpisode, error: PlayerError) -> dict[str, Any]:
        """Note that a step could not be answered; the episode stays before it."""
        episode.infrastructure_error = str(error)
        self.folder.save(episode)
        return self._describe(episode)

    def _repeat(self, episode: SimulatedEpisode, turn: AgentTurn, number: int) -> dict[str, Any]:
        """Return the answer to a turn that was answered before."""
        if number > episode.num_steps or number < 0:
            raise ConflictError(f"turn {number} was sent, and turn {episode.num_steps} is next")
        entry, said = episode.find_answer(number)
        # The number was used for another text: an answer would belong to a conversation that never was.
        if entry.text != turn.raw:
            raise ConflictError(f"turn {number} was answered with another text", advice="reset begins a new episode")
        if number + 1 == episode.num_steps and episode.has_ended:
            return self._describe(episode, said)
        return {**self._describe(episode, said), **_RUNNING, "turn": number + 1}

    def _end(self, episode: SimulatedEpisode, reason: TerminationReason) -> None:
        episode.termination_reason = reason
        episode.ended_at = self.clock()
        if reason is TerminationReason.TOKEN_LIMIT and self.options.overlong == "zero":
            episode.reward, episode.reasoning = 0.0, "the conversation exceeds the agent's context"
            episode.infrastructure_error = None
        else:
            self._judge(episode)

    def _judge(self, episode: SimulatedEpisode) -> None:
        judged = self.player.judge(episode)
        episode.calls += judged.calls
        episode.judgements += sum(note.purpose == "judge" for note in judged.calls)
        episode.reward, episode.reasoning = judged.judgement.reward, judged.judgement.reasoning
        failed = judged.judgement.reward is None
        episode.infrastructure_error = (judged.judgement.problem or "there is no judgement") if failed else None

    def _describe(self, episode: SimulatedEpisode, said: HistoryEntry | None = None) -> dict[str, Any]:
        """Return the answer to a step or an evaluation. `done` without a reward: nothing more can come."""
        return {
            "episode": episode.id,
            "environment": ENVIRONMENT,
            "turn": episode.num_steps,
            "observation": said.text if said else "",
            "role": said.role if said else None,
            "answered_by": said.by if said else None,
            "done": episode.has_ended or episode.infrastructure_error is not None,
            "reward": episode.reward,
            "reasoning": episode.reasoning,
            "termination_reason": episode.termination_reason,
            "infrastructure_error": episode.infrastructure_error,
        }

    # ------------------------------------------------------------------------------------------------ memory

    @contextmanager
    def _hold(self, episode_id: str) -> Iterator[SimulatedEpisode]:
        """Yield an episode while no other thread changes it; the state that a failed step changed is read again."""
        with self._guard:
            lock = self._locks.setdefault(episode_id, threading.Lock())
        with lock:
            episode = self._open.get(episode_id) or self.folder.load(episode_id)
            if episode is None:
                with self._guard:
                    # Unknown names would otherwise fill the memory with locks.
                    self._locks.pop(episode_id, None)
                raise InputError(f"there is no episode {episode_id}", advice="POST /reset begins one")
            try:
                yield episode
            # Nothing was changed, so the episode in memory is still true.
            except ConflictError:
                raise
            except BaseException:
                with self._guard:
                    self._open.pop(episode_id, None)
                raise
            self._keep(episode)

    def _keep(self, episode: SimulatedEpisode) -> None:
        """Keep a running episode in memory, and drop an episode that ended."""
        with self._guard:
            self._open.pop(episode.id, None)
            if not episode.has_ended:
                self._open[episode.id] = episode
                # The oldest is dropped from memory alone; it is read from the folder when it is needed.
                while len(self._open) > MAX_OPEN:
                    self._open.pop(next(iter(self._open)))


_RUNNING: Mapping[str, Any] = {
    "done": False,
    "reward": None,
    "reasoning": "",
    "termination_reason": None,
    "infrastructure_error": None,
}
"""Fields of the answers to all steps but the last."""


def _count_tokens(text: str) -> int:
    """Return about how many tokens a turn has in the agent's context."""
    return len(text) // CHARS_PER_TOKEN + MESSAGE_TOKENS
