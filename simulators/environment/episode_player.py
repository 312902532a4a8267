"""Course of a simulated episode: which sample it begins with, what answers a turn, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from backends.llm.base import CHARS_PER_TOKEN, MESSAGE_TOKENS
from core.episodes.errors import ConflictError
from core.episodes.player import EpisodePlayer
from core.errors import InputError, UsageError
from simulators.environment.agent_turn import AgentTurn
from simulators.environment.calls import OverlongError, PlayerError
from simulators.environment.episode import Answerer, EntryRole, HistoryEntry, SimulatedEpisode, TerminationReason
from simulators.environment.folder import EpisodeFolder
from simulators.environment.options import EpisodeOptions
from simulators.environment.player import EnvironmentAnswer, EnvironmentPlayer
from simulators.trajectory import ENVIRONMENT

StepAnswer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ResetRequest:
    """Which episode begins. One of `task` and `seed` may choose its sample; else group and episode number do.

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


@dataclass(frozen=True)
class SimulatedTurn:
    """A turn of the agent, and the tokens of its context with it, where its trainer counted them."""

    turn: AgentTurn
    context_tokens: int | None = None


@dataclass(frozen=True)
class SimulatedPlayer(EpisodePlayer[SimulatedEpisode, ResetRequest, SimulatedTurn, StepAnswer, StepAnswer]):
    """Plays simulated episodes: their limits and ends, with an environment that answers and judges."""

    environment: EnvironmentPlayer
    folder: EpisodeFolder
    options: EpisodeOptions
    clock: Callable[[], str]

    def open(self, request: ResetRequest, name: str) -> SimulatedEpisode:
        """Begin an episode.

        Raises:
            UsageError: both task and seed are given.
            InputError: there is no such task.
            PlayerError: simulator or endpoint failed.
        """
        if request.task is not None and request.seed is not None:
            raise UsageError("task and seed exclude each other")
        number = request.episode
        # A reset that failed does not count, since its group would go on with another sample.
        if number is None:
            number = self.folder.count_resets(request.env_id) if request.env_id else 0
        index, draw = self._choose_sample(request, number)
        opening, sample = self.environment.open(index, draw), self.environment.samples[index]
        return SimulatedEpisode(
            id=name,
            env_id=request.env_id,
            group=draw,
            episode=number,
            sample_index=index,
            sample=sample.id,
            name=sample.name,
            license=sample.license,
            domain=self.environment.domain,
            system_prompt=opening.system_prompt,
            policy=opening.policy,
            tools=opening.tools,
            reference=opening.reference,
            configuration={**self.environment.configuration, **asdict(self.options)},
            created_at=self.clock(),
            is_rewritten=opening.is_rewritten,
            history=[HistoryEntry(role=EntryRole.USER, text=opening.message)],
            calls=list(opening.calls),
            state=opening.state,
        )

    def step(self, episode: SimulatedEpisode, action: SimulatedTurn) -> StepAnswer:
        """Return the environment's answer to the next turn of the agent."""
        turn = action.turn
        entry = HistoryEntry(
            role=EntryRole.AGENT,
            text=turn.raw,
            reasoning=turn.reasoning,
            calls=tuple({"name": call.name, "arguments": dict(call.arguments)} for call in turn.calls),
        )
        given = action.context_tokens
        tokens = given if given is not None else episode.tokens + _count_tokens(entry.text)
        if tokens > self.options.context_limit:
            return self._finish(episode, turn, entry, None, TerminationReason.TOKEN_LIMIT)
        is_last = (
            episode.num_steps + 1 >= self.options.turns
            or episode.actions + turn.n_actions >= self.options.actions
            or episode.simulated + 1 >= self.options.steps
        )
        if is_last:
            return self._finish(episode, turn, entry, None, TerminationReason.MAX_STEPS)
        try:
            answer = self.environment.answer(episode, turn)
        except OverlongError as error:
            episode.calls += error.notes
            return self._finish(episode, turn, entry, None, TerminationReason.TOKEN_LIMIT)
        except PlayerError as error:
            # The episode stays as it was before the step.
            episode.infrastructure_error = str(error)
            return _describe(episode)
        reason = TerminationReason.GPT_DECISION if answer.is_end else None
        if not answer.is_end and tokens + _count_tokens(answer.text) > self.options.context_limit:
            # The agent could not be given its next turn.
            reason = TerminationReason.TOKEN_LIMIT
        return self._finish(episode, turn, entry, answer, reason)

    def repeat(self, episode: SimulatedEpisode, action: SimulatedTurn, number: int) -> StepAnswer:
        """Return the answer to a turn that was answered before."""
        if number > episode.num_steps or number < 0:
            raise ConflictError(f"turn {number} was sent, and turn {episode.num_steps} is next")
        entry, said = episode.find_answer(number)
        if entry.text != action.turn.raw:
            raise ConflictError(f"turn {number} was answered with another text", advice="reset begins a new episode")
        if number + 1 == episode.num_steps and episode.has_ended:
            return _describe(episode, said)
        return {**_describe(episode, said), **_RUNNING, "turn": number + 1}

    def answer_ended(self, episode: SimulatedEpisode) -> StepAnswer:
        """Return how an episode ended."""
        return _describe(episode)

    def evaluate(self, episode: SimulatedEpisode) -> StepAnswer:
        """Return the reward of an episode; one that runs ends by it, and one without a judgement is judged again."""
        if not episode.has_ended:
            self._end(episode, TerminationReason.FORCED_EVALUATION)
        elif episode.reward is None:
            self._judge(episode)
        return _describe(episode)

    def check(self, episode: SimulatedEpisode) -> None:
        """Do nothing: all of an episode is in its record."""

    def close(self, episode: SimulatedEpisode) -> None:
        """Do nothing, as `check`."""

    def _choose_sample(self, request: ResetRequest, number: int) -> tuple[int, str]:
        """Return the place of a sample, and the word from which everything about its beginning is drawn."""
        samples = self.environment.samples
        if request.task is not None:
            matches = [at for at, sample in enumerate(samples) if request.task in (sample.id, sample.name)]
            if len(matches) != 1:
                problem = "is ambiguous" if matches else "is unknown"
                raise InputError(f"the task {request.task} {problem}", advice="GET /tasks lists the tasks")
            return matches[0], f"task {request.group} {number}"
        if request.seed is not None:
            return request.seed % len(samples), f"seed {request.seed}"
        groups = self.options.groups if request.groups is None else request.groups
        return (request.group + number * groups) % len(samples), f"group {request.group} {number}"

    def _finish(
        self,
        episode: SimulatedEpisode,
        turn: AgentTurn,
        entry: HistoryEntry,
        answer: EnvironmentAnswer | None,
        reason: TerminationReason | None,
    ) -> StepAnswer:
        """Add a turn and what was answered to it, and end the episode where there is a reason."""
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
        return _describe(episode, said)

    def _end(self, episode: SimulatedEpisode, reason: TerminationReason) -> None:
        episode.termination_reason = reason
        episode.ended_at = self.clock()
        if reason is TerminationReason.TOKEN_LIMIT and self.options.overlong == "zero":
            episode.reward, episode.reasoning = 0.0, "the conversation exceeds the agent's context"
            episode.infrastructure_error = None
        else:
            self._judge(episode)

    def _judge(self, episode: SimulatedEpisode) -> None:
        judged = self.environment.judge(episode)
        episode.calls += judged.calls
        episode.judgements += sum(note.purpose == "judge" for note in judged.calls)
        episode.reward, episode.reasoning = judged.judgement.reward, judged.judgement.reasoning
        failed = judged.judgement.reward is None
        episode.infrastructure_error = (judged.judgement.problem or "there is no judgement") if failed else None


_RUNNING: Mapping[str, Any] = {
    "done": False,
    "reward": None,
    "reasoning": "",
    "termination_reason": None,
    "infrastructure_error": None,
}
"""Fields of the answers to all steps but the last."""


def _describe(episode: SimulatedEpisode, said: HistoryEntry | None = None) -> StepAnswer:
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


def _count_tokens(text: str) -> int:
    """Return about how many tokens a turn has in the agent's context."""
    return len(text) // CHARS_PER_TOKEN + MESSAGE_TOKENS
