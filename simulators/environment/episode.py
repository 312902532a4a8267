"""An episode: a conversation of an agent with a simulated environment, and everything that it comes from.

Its JSON is the record of the episode, written to `episodes/ID.json` after each step, from which a server that was
started again continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from backends.llm.base import CHARS_PER_TOKEN, MESSAGE_TOKENS
from simulators.trajectory import ENVIRONMENT

KIND = "mergemill-episode"


class TerminationReason(StrEnum):
    """Why an episode ended; the names are those of the released code."""

    MAX_STEPS = "max_steps"
    GPT_DECISION = "gpt_decision"
    """The simulator wrote `[TERMINATE]`."""
    TOKEN_LIMIT = "token_limit_exceeded_before_generation"  # noqa: S105 - no password
    FORCED_EVALUATION = "forced_evaluation"
    """The trainer requested its evaluation before its end."""


class EntryRole(StrEnum):
    """Who an entry of the history is from."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"


class Answerer(StrEnum):
    """Source that answered a step."""

    SIMULATOR = "simulator"
    RULE = "rule"


@dataclass(frozen=True, kw_only=True)
class HistoryEntry:
    """A turn. `calls`: of the agent, `{name, arguments}`. `by`: the source that wrote an answer of the environment."""

    role: EntryRole
    text: str
    reasoning: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    by: str = ""

    @property
    def shown(self) -> str:
        """The text without reasoning, which neither people nor tools see."""
        return self.text.partition("</think>")[2].strip() if self.reasoning else self.text


@dataclass(frozen=True, kw_only=True)
class CallNote:
    """A call of the simulator or judge. `key`: of the answer in the ledger. `used`: whether it could be used."""

    purpose: str
    turn: int
    attempt: int
    key: str
    answer: str
    used: bool


@dataclass(kw_only=True)
class SimulatedEpisode:
    """An episode, as it stands. `reward` is None while it runs, and where there is no judgement: that is never 0.

    `sample_index`: place of its sample; `episode`: its number among those of its environment `env_id`, from 0.
    `num_steps`: turns of the agent; `actions`: its calls and messages; `simulated`: answers of the simulator.
    """

    id: str
    env_id: str
    group: str
    episode: int
    sample_index: int
    sample: str
    """Id of the sample."""
    name: str
    """Name that its source calls the sample."""
    license: str
    domain: str
    system_prompt: str
    policy: str
    tools: Sequence[Mapping[str, Any]]
    reference: Sequence[Mapping[str, Any]]
    configuration: Mapping[str, Any]
    created_at: str
    is_rewritten: bool = False
    """Whether the first message is a rewrite of the reference's."""
    history: list[HistoryEntry] = field(default_factory=list)
    calls: list[CallNote] = field(default_factory=list)
    num_steps: int = 0
    actions: int = 0
    simulated: int = 0
    judgements: int = 0
    """Requests of the judge so far."""
    reward: float | None = None
    reasoning: str = ""
    termination_reason: TerminationReason | None = None
    infrastructure_error: str | None = None
    ended_at: str | None = None
    state: dict[str, Any] = field(default_factory=dict)
    """Of the player."""

    @property
    def has_ended(self) -> bool:
        """Whether no further step is possible."""
        return self.termination_reason is not None

    @property
    def is_open(self) -> bool:
        """Whether it runs."""
        return not self.has_ended

    @property
    def next_number(self) -> int:
        """Number of the agent's next turn, from 0."""
        return self.num_steps

    @property
    def tokens(self) -> int:
        """About how many tokens system prompt and history have in the agent's context."""
        texts = [self.system_prompt, *(entry.text for entry in self.history)]
        return sum(len(text) // CHARS_PER_TOKEN + MESSAGE_TOKENS for text in texts)

    def add(self, entry: HistoryEntry) -> None:
        """Append a turn."""
        self.history.append(entry)

    def find_answer(self, turn: int) -> tuple[HistoryEntry, HistoryEntry | None]:
        """Return the agent's turn of a number, from 0, and the results that the environment answered to it."""
        places = [at for at, entry in enumerate(self.history) if entry.role is EntryRole.AGENT]
        at = places[turn]
        after = self.history[at + 1] if at + 1 < len(self.history) else None
        return self.history[at], after

    def to_json(self) -> dict[str, Any]:
        """Return the record."""
        return {"kind": KIND, "environment": ENVIRONMENT, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SimulatedEpisode:
        """Return the episode that `to_json` wrote."""
        known = {attribute.name for attribute in fields(cls)}
        content = {name: inner for name, inner in value.items() if name in known}
        content["history"] = [_read_entry(entry) for entry in value["history"]]
        content["calls"] = [CallNote(**call) for call in value["calls"]]
        if value["termination_reason"] is not None:
            content["termination_reason"] = TerminationReason(value["termination_reason"])
        return cls(**content)


def _read_entry(value: Mapping[str, Any]) -> HistoryEntry:
    return HistoryEntry(**{**value, "role": EntryRole(value["role"]), "calls": tuple(value["calls"])})
