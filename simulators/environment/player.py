"""Player of the environment of episodes: opening, answers and judgement.

`EnvironmentPlayer` is all that `simulators.environment.service` needs. `ConversationPlayer` plays the packs of
conversations; a pack whose tools are more than texts brings a player of its own.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from backends.llm.base import Message
from backends.llm.prompts import PromptTemplates
from backends.llm.structured import build_response_schema
from simulators.conversation import render_blocks
from simulators.domains.pack import DomainPack
from simulators.environment.agent_turn import AgentTurn
from simulators.environment.calls import Answered, PlayerError, SimulatorCalls
from simulators.environment.episode import Answerer, CallNote, EntryRole, SimulatedEpisode
from simulators.environment.judging import EpisodeJudgement, EpisodeVerdict, read_judgement
from simulators.environment.options import EpisodeOptions
from simulators.environment.rows import build_system, find_first_message
from simulators.environment.rules import (
    find_call_error,
    find_contradiction,
    find_known_result,
    find_turn_error,
    note_result,
)
from simulators.options import SIMIA
from simulators.prompting import PROMPT_DIR
from simulators.seeds.seed import Seed

STEP_PROMPT, JUDGE_PROMPT, OPENING_PROMPT = "environment-1", "judge-1", "opening-1"
TERMINATE = "[TERMINATE]"
_RESULT = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
_PREFIX = re.compile(
    r"\A(?:HUMAN|USER|PERSON|OBSERVATION|TOOL|FUNCTION|TOOL RESPONSE|USER/TOOL RESPONSE):[ \t]*", re.IGNORECASE
)
_FACT = re.compile(r"\S*[\d@#]\S*")
_FACT_ENDS = ".,;:!?()\"'"


@dataclass(frozen=True, kw_only=True)
class EpisodeSample:
    """Subjects that an episode can be about."""

    id: str
    name: str
    license: str


@dataclass(frozen=True, kw_only=True)
class EpisodeOpening:
    """Beginning of an episode. `reference`: the text that the simulator is given of the sample, for the record."""

    message: str
    system_prompt: str
    policy: str
    tools: Sequence[Mapping[str, Any]]
    reference: Sequence[Mapping[str, Any]]
    is_rewritten: bool = False
    calls: tuple[CallNote, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EnvironmentAnswer:
    """The environment's answer to a turn of the agent. `is_end`: the task is over, and the text is for nobody."""

    text: str
    role: EntryRole
    by: Answerer
    is_end: bool = False
    calls: tuple[CallNote, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)
    """The player's state of the episode from now on."""


@dataclass(frozen=True, kw_only=True)
class JudgedEpisode:
    """A judgement, and the calls that were made for it."""

    judgement: EpisodeJudgement
    calls: tuple[CallNote, ...] = ()


class EnvironmentPlayer(Protocol):
    """Player of the environment of episodes of a kind. Threads may share it.

    It keeps nothing of an episode but in the episode.
    """

    domain: str
    samples: Sequence[EpisodeSample]
    configuration: Mapping[str, Any]
    """Everything that determines how it plays, for the record."""

    def open(self, sample: int, draw: str) -> EpisodeOpening:
        """Return the beginning of an episode of a sample; the same for the same `draw`.

        Raises:
            PlayerError: simulator or endpoint failed.
        """
        ...

    def answer(self, episode: SimulatedEpisode, turn: AgentTurn) -> EnvironmentAnswer:
        """Return the answer to a turn, which is not in the history yet.

        Raises:
            PlayerError: simulator or endpoint failed.
            OverlongError: the conversation exceeds the simulator's context.
        """
        ...

    def judge(self, episode: SimulatedEpisode) -> JudgedEpisode:
        """Return the reward of an episode as it stands; None where there is no judgement."""
        ...

    def stop(self) -> None:
        """Cancel all current and future calls."""
        ...


class ConversationPlayer:
    """Plays conversations between a person, an agent and tools, after reference conversations.

    Args:
        pack: the domain.
        seeds: the reference conversations.
        options: options of the episodes.
        simulator: simulator that plays person and tools.
        judge: judge that decides the reward.
        target: target whose form of tools the agent's system prompt has.
    """

    def __init__(
        self,
        *,
        pack: DomainPack,
        seeds: Sequence[Seed],
        options: EpisodeOptions,
        simulator: SimulatorCalls,
        judge: SimulatorCalls,
        target: str = "qwen",
    ) -> None:
        self.domain = pack.name
        self.samples: Sequence[EpisodeSample] = [
            EpisodeSample(id=seed.id, name=seed.name, license=seed.license) for seed in seeds
        ]
        self.configuration: Mapping[str, Any] = {
            "pack": pack.name,
            "pack_version": pack.version,
            "simulator": simulator.model.name,
            "judge": judge.model.name,
            "prompts": [STEP_PROMPT, JUDGE_PROMPT, OPENING_PROMPT],
            "target": target,
        }
        self._pack, self._seeds, self._options = pack, seeds, options
        self._simulator, self._judge, self._target = simulator, judge, target
        self._by_id = {seed.id: seed for seed in seeds}
        self._templates = PromptTemplates(PROMPT_DIR)

    def open(self, sample: int, draw: str) -> EpisodeOpening:
        """Return the beginning of an episode; see `EnvironmentPlayer`."""
        seed = self._seeds[sample]
        first = find_first_message(seed)
        own = seed.conversation.system if self._options.profile == SIMIA else ""
        message, notes = first, tuple[CallNote, ...]()
        # Drawn from a text and not from a generator's state, so that a repeated reset begins in the same way.
        if random.Random(f"{self._options.draw} {seed.id} {draw}").random() < self._options.rewrites:  # noqa: S311
            message, notes = self._rewrite(seed, first, draw)
        return EpisodeOpening(
            message=message,
            system_prompt=build_system(seed, self._pack, self._options.profile, self._target),
            policy=own or self._pack.policy,
            tools=list(self._pack.tools.values()),
            reference=[turn.to_json() for turn in seed.conversation.body],
            is_rewritten=message != first,
            calls=notes,
        )

    def answer(self, episode: SimulatedEpisode, turn: AgentTurn) -> EnvironmentAnswer:
        """Return the answer of person or tools; see `EnvironmentPlayer`."""
        role = EntryRole.TOOL if turn.is_call else EntryRole.USER
        if not self._options.rules:
            answered = self._request_step(episode, turn, 0)
            return EnvironmentAnswer(
                text=answered.text,
                role=role,
                by=Answerer.SIMULATOR,
                is_end=TERMINATE in answered.text,
                calls=answered.notes,
                state=episode.state,
            )
        if error := find_turn_error(turn, self._pack):
            return EnvironmentAnswer(text=error, role=role, by=Answerer.RULE, state=episode.state)
        if not turn.calls:
            answered = self._request_step(episode, turn, 0)
            return EnvironmentAnswer(
                text=answered.text,
                role=role,
                by=Answerer.SIMULATOR,
                is_end=TERMINATE in answered.text,
                calls=answered.notes,
                state=episode.state,
            )
        return self._answer_calls(episode, turn)

    def judge(self, episode: SimulatedEpisode) -> JudgedEpisode:
        """Return the reward that the judge gives; see `EnvironmentPlayer`."""
        # Numbers go on from the judgements before, whose answers would come from the ledger again.
        first = episode.judgements + 1
        messages = self._templates.render_conversation(
            JUDGE_PROMPT, system=episode.policy, tools=_list_tools(episode.tools), history=_list_history(episode)
        )
        try:
            answered = self._judge.request(
                messages,
                purpose="judge",
                sample=episode.sample,
                episode=episode.id,
                turn=episode.num_steps,
                attempts=range(first, first + self._options.attempts),
                check=lambda text: "" if read_judgement(text) else "it has no reward of 0 or 1",
                allow_cut=True,
                schema=build_response_schema(EpisodeVerdict),
            )
        except PlayerError as error:
            return JudgedEpisode(judgement=EpisodeJudgement(reward=None, problem=str(error)), calls=error.notes)
        judgement = read_judgement(answered.text)
        return JudgedEpisode(judgement=judgement or EpisodeJudgement(reward=None), calls=answered.notes)

    def stop(self) -> None:
        """Cancel all current and future calls."""
        self._simulator.stop()
        self._judge.stop()

    def _answer_calls(self, episode: SimulatedEpisode, turn: AgentTurn) -> EnvironmentAnswer:
        """Return results of calls: by rule where one decides, else by one request of the simulator for all others."""
        results: list[str | None] = []
        for call in turn.calls:
            error = find_call_error(call, self._pack, episode)
            results.append(error or find_known_result(call, self._pack, episode))
        open_calls = [call for call, result in zip(turn.calls, results, strict=True) if result is None]
        state, notes = dict(episode.state), tuple[CallNote, ...]()
        if open_calls:
            answered = self._request_step(episode, turn, len(open_calls), calls=open_calls)
            notes = answered.notes
            if TERMINATE in answered.text:
                return EnvironmentAnswer(
                    text=answered.text,
                    role=EntryRole.TOOL,
                    by=Answerer.SIMULATOR,
                    is_end=True,
                    calls=notes,
                    state=state,
                )
            fresh = _split_results(answered.text, len(open_calls))
            for call, result in zip(open_calls, fresh, strict=True):
                note_result(call, result, self._pack, state)
            waiting = iter(fresh)
            results = [next(waiting) if result is None else result for result in results]
        return EnvironmentAnswer(
            text="\n".join(result or "" for result in results),
            role=EntryRole.TOOL,
            by=Answerer.SIMULATOR if open_calls else Answerer.RULE,
            calls=notes,
            state=state,
        )

    def _request_step(
        self, episode: SimulatedEpisode, turn: AgentTurn, n_results: int, calls: Sequence[Any] = ()
    ) -> Answered:
        """Return the simulator's answer to a turn; `n_results`: results of tools that it must hold, 0 for any text."""

        def check(text: str) -> str:
            if not text:
                return "it is empty"
            if not n_results or TERMINATE in text:
                return ""
            results = _split_results(text, n_results)
            if len(results) != n_results:
                return f"it has {len(results)} results, and {n_results} calls were made"
            return find_contradiction(calls, results, self._pack)

        answered = self._simulator.request(
            self._render_step(episode, turn, calls),
            purpose="step",
            sample=episode.sample,
            episode=episode.id,
            turn=episode.num_steps,
            attempts=range(1, self._options.attempts + 1),
            check=check,
            allow_cut=not self._options.rules,
        )
        if not self._options.rules:
            return answered
        return Answered(text=_PREFIX.sub("", answered.text).strip(), notes=answered.notes)

    def _render_step(self, episode: SimulatedEpisode, turn: AgentTurn, calls: Sequence[Any]) -> Sequence[Message]:
        seed = self._by_id[episode.sample]
        return self._templates.render_conversation(
            STEP_PROMPT,
            system=episode.policy,
            tools=_list_tools(episode.tools),
            rules=list(self._pack.format.rules),
            reference=render_blocks(seed.conversation.body, self._pack.markers),
            history=_list_history(episode),
            latest=json.dumps(turn.shown, ensure_ascii=False),
            calls=[call.render() for call in calls],
        )

    def _rewrite(self, seed: Seed, first: str, draw: str) -> tuple[str, tuple[CallNote, ...]]:
        """Return the first message in other words, or as it is where the rewrite loses something."""
        messages = self._templates.render_conversation(OPENING_PROMPT, message=first)
        try:
            answered = self._simulator.request(
                messages,
                purpose="opening",
                sample=seed.id,
                episode=draw,
                turn=0,
                attempts=range(1, self._options.attempts + 1),
                check=lambda text: find_lost_fact(first, text),
            )
        except PlayerError as error:
            # Every attempt was answered and none was usable; any other error is that of the endpoint.
            if len(error.notes) == self._options.attempts:
                return first, error.notes
            raise
        return answered.text, answered.notes


def find_lost_fact(original: str, rewritten: str) -> str:
    """Return the items that a rewrite lacks or adds of numbers, addresses and ids, empty where it has them all."""
    if not rewritten:
        return "it is empty"
    before, after = ({word.strip(_FACT_ENDS) for word in _FACT.findall(text)} for text in (original, rewritten))
    different = sorted(before ^ after)
    return f"it lacks or adds {', '.join(different[:3])}" if different else ""


def _split_results(text: str, number: int) -> list[str]:
    """Return the results in an answer: the whole text for a call, blocks in `<tool_response>` for several."""
    blocks = [str(block) for block in _RESULT.findall(text)]
    if number == 1:
        return [blocks[0] if len(blocks) == 1 else _PREFIX.sub("", text).strip()]
    return blocks


def _list_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{**tool, "schema": json.dumps(tool["parameters"])} for tool in tools]


def _list_history(episode: SimulatedEpisode) -> str:
    """Return a JSON object a line for each turn, so that no turn can pretend to be two."""
    turns = [{"role": entry.role.value, "text": entry.shown} for entry in episode.history]
    return "\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns)
