"""Result that the steps hand on: a conversation in the making, or the reason why it is dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from simulators.conversation import DialogueTurn
from simulators.jobs import SimulationJob


class DropReason(StrEnum):
    """Why a conversation is dropped."""

    TOO_LONG = "too-long"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    UNPARSABLE = "unparsable"
    EMPTY_TURN = "empty-turn"
    DUPLICATE = "duplicate"
    SEVERAL_CALLS = "several-calls"
    ARGUMENTS = "arguments"
    CALL = "call"
    THINK_CALLED = "think-called"
    UNKNOWN_TOOL = "unknown-tool"
    ARGUMENT_MISSING = "argument-missing"
    ARGUMENT_UNKNOWN = "argument-unknown"
    ARGUMENT_TYPE = "argument-type"
    ARGUMENT_FORMAT = "argument-format"
    NO_TURNS = "no-turns"
    THINK = "think"
    TURN_ORDER = "turn-order"
    TURN_COUNT = "turn-count"
    LANGUAGE = "language"
    NO_FAILURE = "no-failure"
    UNSEEN_ID = "unseen-id"
    NEAR_DUPLICATE = "near-duplicate"
    BENCHMARK = "benchmark"


class DroppedError(Exception):
    """A step drops a conversation. Raised within steps, and never beyond `steps.process`."""

    def __init__(self, reason: DropReason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, kw_only=True)
class TurnRepair:
    """A turn that a step changed. `turn`: its place then, from 1; `raw`: the text that was written."""

    step: str
    turn: int
    raw: str


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An answer on its way through the steps. `key`: that of the answer in the ledger, empty where there is none."""

    job: SimulationJob
    key: str
    answer: str
    finish_reason: str = "stop"
    is_too_long: bool = False
    """Whether the endpoint refused the prompt because of its length."""
    turns: tuple[DialogueTurn, ...] = ()
    system: str = ""
    n_generated: int = 0
    """Turns that were parsed, before any was removed."""
    repairs: tuple[TurnRepair, ...] = ()

    def add_repairs(self, step: str, raws: dict[int, str], **changes: Any) -> Draft:
        """Return the draft with changes, and with repairs of turns (place from 0 -> raw text) noted."""
        noted = tuple(TurnRepair(step=step, turn=at + 1, raw=raw) for at, raw in sorted(raws.items()))
        return replace(self, repairs=self.repairs + noted, **changes)


@dataclass(frozen=True, kw_only=True)
class DroppedConversation:
    """A conversation that a step dropped."""

    job: SimulationJob
    key: str
    step: str
    reason: DropReason
    detail: str
