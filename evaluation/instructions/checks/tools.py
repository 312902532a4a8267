"""Checks of tools, skills and turns."""

from __future__ import annotations

from evaluation.instructions.actions import ActionKind, AgentAction, is_own_tool
from evaluation.instructions.checks.base import InstructionCheck, fail_first
from evaluation.instructions.evidence import INACTIVE, CheckVerdict, RolloutEvidence, make_failed, make_passed


class SkillRead(InstructionCheck):
    """A skill is read before the first edit: by the scaffold's tool, or its file."""

    skill: str

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it was; naming it is not reading it."""
        if not evidence.edits:
            return INACTIVE
        for action in evidence.actions[: evidence.place(evidence.edits[0])]:
            if self._reads(action):
                return make_passed(action)
        return make_failed(evidence.edits[0], f"the skill {self.skill} was not read before")

    def _reads(self, action: AgentAction) -> bool:
        if action.kind is ActionKind.SKILL:
            return self.skill in action.text
        return action.kind is ActionKind.READ and f"{self.skill}/SKILL.md" in action.path


class ToolCalled(InstructionCheck):
    """A tool is called, before the first edit or at any time."""

    tool: str
    before_edit: bool = True

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it was; it does not matter where no file is changed."""
        if not evidence.edits:
            return INACTIVE
        end = evidence.place(evidence.edits[0]) if self.before_edit else len(evidence.actions)
        call = next((action for action in evidence.actions[:end] if is_call_of(action, self.tool)), None)
        return make_passed(call) if call is not None else make_failed(quote=f"{self.tool} is not called in time")


class ToolArgumentGiven(InstructionCheck):
    """Each call of a tool has an argument that its schema does not require."""

    tool: str
    argument: str

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each has; an empty text is none."""
        calls = [action for action in evidence.actions if is_call_of(action, self.tool)]
        if not calls:
            return INACTIVE
        return fail_first(calls, lambda action: not str(action.arguments.get(self.argument) or "").strip())


class ToolCallsAtMost(InstructionCheck):
    """Number of calls of a tool."""

    tool: str
    number: int

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether there are no more."""
        calls = [action for action in evidence.actions if is_call_of(action, self.tool)]
        if not calls:
            return INACTIVE
        return make_failed(calls[self.number]) if len(calls) > self.number else make_passed(calls[-1])


class ToolNever(InstructionCheck):
    """A tool is not called."""

    tool: str

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it is not."""
        if not evidence.actions:
            return INACTIVE
        return fail_first(evidence.actions, lambda action: is_call_of(action, self.tool))


class TurnWithoutChanges(InstructionCheck):
    """No file is changed in a turn."""

    in_turn: int

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none is; it does not matter where the turn was not reached."""
        if not any(action.turn == self.in_turn for action in evidence.actions):
            return INACTIVE
        edit = next((action for action in evidence.edits if action.turn == self.in_turn), None)
        return make_failed(edit) if edit is not None else make_passed()


def is_call_of(action: AgentAction, tool: str) -> bool:
    """Return whether an action is a call of a tool, whatever server it has."""
    return action.kind is ActionKind.GUIDANCE and is_own_tool(action.tool, tool)
