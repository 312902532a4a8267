"""RolloutEvidence that checks decide on: actions, changes of files, and facts about the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from evaluation.instructions.actions import CHANGES, ActionKind, AgentAction
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.effects import UNKNOWN_PATH


class CheckState(StrEnum):
    """Outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    INACTIVE = "inactive"
    """The occasion that the instruction is for did not come up."""


@dataclass(frozen=True, kw_only=True)
class CheckVerdict:
    """Outcome of a check with the place that shows it."""

    state: CheckState
    exchange: int | None = None
    """Number of the recorded exchange; None where files show it, or something is missing."""
    quote: str = ""
    """A line that shows it, at most 200 characters."""


@dataclass(frozen=True, kw_only=True)
class RolloutEvidence:
    """RolloutEvidence of a rollout."""

    actions: Sequence[AgentAction]
    changes: Sequence[ChangedFile]
    suffixes: tuple[str, ...] = ()
    """Suffixes of program files of the task's language."""
    comment: str = "#"
    """Start of a comment line of the language."""
    skills: Mapping[str, str] = field(default_factory=dict)
    """Name of a skill -> path part by which reading its file is seen."""

    def since(self, turn: int, until: int | None = None) -> RolloutEvidence:
        """Return the evidence with the actions of some turns alone, the last included; None for no last."""
        kept = [action for action in self.actions if turn <= action.turn and (until is None or action.turn <= until)]
        return replace(self, actions=kept)

    @cached_property
    def runs(self) -> Sequence[AgentAction]:
        """Commands of shells."""
        return [action for action in self.actions if action.kind is ActionKind.RUN and action.command is not None]

    @cached_property
    def edits(self) -> Sequence[AgentAction]:
        """Actions that change files of the repository."""
        return [
            action
            for action in self.actions
            if action.kind in CHANGES and not action.path.startswith("/") and not action.path.startswith("~")
        ]

    @cached_property
    def source_edits(self) -> Sequence[AgentAction]:
        """Actions that change program files, those of unknown name included."""
        return [action for action in self.edits if self.is_source(action.path) or action.path == UNKNOWN_PATH]

    @cached_property
    def answers(self) -> Sequence[AgentAction]:
        """Last text of each turn, in their order."""
        last: dict[int, AgentAction] = {}
        for action in self.actions:
            if action.kind is ActionKind.SAY or (action.kind is ActionKind.END and action.text.strip()):
                last[action.turn] = action
        return [last[turn] for turn in sorted(last)]

    def place(self, action: AgentAction) -> int:
        """Return the place of an action among all."""
        return next(place for place, other in enumerate(self.actions) if other is action)

    def is_source(self, path: str) -> bool:
        """Return whether a path is that of a program file."""
        return path.endswith(self.suffixes) if self.suffixes else True


def make_passed(action: AgentAction | None = None) -> CheckVerdict:
    """Return that a check passed, with the action that shows it."""
    return _make(CheckState.PASSED, action)


def make_failed(action: AgentAction | None = None, quote: str = "") -> CheckVerdict:
    """Return that a check failed, with the action or the line that shows it."""
    result = _make(CheckState.FAILED, action)
    return replace(result, quote=quote[:200]) if quote else result


INACTIVE = CheckVerdict(state=CheckState.INACTIVE)


def _make(state: CheckState, action: AgentAction | None) -> CheckVerdict:
    if action is None:
        return CheckVerdict(state=state)
    return CheckVerdict(state=state, exchange=action.exchange, quote=action.quote)
