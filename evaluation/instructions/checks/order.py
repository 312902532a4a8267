"""Checks of order: reads, plans and commands before the first edit and after the last."""

from __future__ import annotations

import re

from evaluation.instructions.actions import ActionKind, AgentAction
from evaluation.instructions.checks.base import InstructionCheck, Patterns, runs_any
from evaluation.instructions.effects import UNKNOWN_PATH
from evaluation.instructions.evidence import INACTIVE, CheckVerdict, RolloutEvidence, make_failed, make_passed

_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+\S", re.MULTILINE)
_SEEN = frozenset((ActionKind.READ, ActionKind.SEARCH))


class ReadBeforeEdit(InstructionCheck):
    """Every file that is edited was read before, or searched by name."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each was; files that the agent or the change made are not looked at."""
        new = {change.path for change in evidence.changes if change.is_new}
        edits = {id(edit) for edit in evidence.edits}  # by identity: comparing each action to all takes long
        known, last = set[str](), None
        for action in evidence.actions:
            if action.kind in _SEEN:
                known.add(action.path)
            elif id(action) in edits and action.path not in new | {UNKNOWN_PATH, ""}:
                is_old = action.kind is ActionKind.EDIT or any(
                    change.path == action.path and not change.is_new for change in evidence.changes
                )
                if is_old and action.path not in known:
                    return make_failed(action)
                known.add(action.path)
                last = action if is_old else last
        return make_passed(last) if last is not None else INACTIVE


class PlanBeforeEdit(InstructionCheck):
    """A plan stands before the first edit: by the scaffold's tool, or as a list of steps in a text."""

    steps: int = 2
    """Least number of its steps."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it does."""
        if not evidence.edits:
            return INACTIVE
        for action in evidence.actions[: evidence.place(evidence.edits[0])]:
            if self._is_plan(action):
                return make_passed(action)
        return make_failed(evidence.edits[0])

    def _is_plan(self, action: AgentAction) -> bool:
        if action.kind is ActionKind.PLAN:
            return True
        return action.kind is ActionKind.SAY and len(_ITEM.findall(action.text)) >= self.steps


class SearchBeforeEdit(InstructionCheck):
    """The tree is searched or listed before the first edit."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it was."""
        if not evidence.edits:
            return INACTIVE
        before = evidence.actions[: evidence.place(evidence.edits[0])]
        search = next((action for action in before if action.kind is ActionKind.SEARCH), None)
        return make_passed(search) if search is not None else make_failed(evidence.edits[0])


class CommandBeforeFirstEdit(InstructionCheck):
    """A command is run before the first edit."""

    commands: Patterns

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it was."""
        if not evidence.edits:
            return INACTIVE
        for action in evidence.actions[: evidence.place(evidence.edits[0])]:
            if runs_any(action, self.commands):
                return make_passed(action)
        return make_failed(evidence.edits[0])


class CommandAfterLastEdit(InstructionCheck):
    """A command is run after the last edit of a program file, in each turn with such an edit."""

    commands: Patterns
    every_turn: bool = False

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it was."""
        if not evidence.source_edits:
            return INACTIVE
        turns = {edit.turn for edit in evidence.source_edits} if self.every_turn else {None}
        found = None
        for turn in sorted(turns, key=lambda number: number or 0):
            last = [edit for edit in evidence.source_edits if turn in {None, edit.turn}][-1]
            later = [action for action in evidence.actions[evidence.place(last) + 1 :] if turn in {None, action.turn}]
            found = next((action for action in later if runs_any(action, self.commands)), None)
            if found is None:
                return make_failed(last)
        return make_passed(found)


class CommandsInOrder(InstructionCheck):
    """Commands are run one after the other; others may come between."""

    commands: Patterns
    after_last_edit: bool = False
    """Whether only commands after the last edit count."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether they were; it does not matter where no file is changed."""
        if not evidence.edits:
            return INACTIVE
        open_commands = list(self.commands)
        last = None
        start = evidence.place(evidence.edits[-1]) + 1 if self.after_last_edit else 0
        for action in evidence.actions[start:]:
            if open_commands and runs_any(action, open_commands[:1]):
                open_commands.pop(0)
                last = action
        if open_commands:
            return make_failed(last, f"not run in its order: {open_commands[0]}")
        return make_passed(last)
