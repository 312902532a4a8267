"""Checks of commands: which are run, and how."""

from __future__ import annotations

from evaluation.instructions.actions import CHANGES, ActionKind, AgentAction
from evaluation.instructions.checks.base import InstructionCheck, Patterns, fail_first, runs_any
from evaluation.instructions.effects import UNKNOWN_PATH
from evaluation.instructions.evidence import INACTIVE, CheckVerdict, RolloutEvidence, make_failed, make_passed

_FILE_KINDS = CHANGES | {ActionKind.READ}


class NeverCommand(InstructionCheck):
    """Some commands are never run."""

    commands: Patterns

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none was."""
        if not evidence.actions:
            return INACTIVE
        return fail_first(evidence.runs, lambda action: runs_any(action, self.commands))


class CommandRun(InstructionCheck):
    """A command is run at any time."""

    commands: Patterns

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it was; it does not matter where no file is changed."""
        if not evidence.edits:
            return INACTIVE
        run = next((action for action in evidence.runs if runs_any(action, self.commands)), None)
        return make_passed(run) if run is not None else make_failed(quote="it is never run")


class NoReadsBy(InstructionCheck):
    """Files are not read by some programs."""

    programs: tuple[str, ...]

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none was."""
        reads = [action for action in evidence.actions if action.kind is ActionKind.READ]
        if not reads:
            return INACTIVE
        return fail_first(reads, lambda action: action.command is not None and action.command.program in self.programs)


class NoWritesBy(InstructionCheck):
    """Files of the repository are not changed by some programs."""

    programs: tuple[str, ...]

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none was."""
        if not evidence.edits:
            return INACTIVE
        return fail_first(
            evidence.edits, lambda action: action.command is not None and action.command.program in self.programs
        )


class SingleCommands(InstructionCheck):
    """Each call of the shell runs one command or pipeline; `cd` counts, too."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each did."""
        if not evidence.runs:
            return INACTIVE
        return fail_first(evidence.runs, lambda action: action.n_listed > 1)


class WrappedCommand(InstructionCheck):
    """Some commands are run by a program such as `timeout` alone."""

    commands: Patterns
    wrapper: str

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each was."""
        runs = [action for action in evidence.runs if runs_any(action, self.commands)]
        if not runs:
            return INACTIVE
        return fail_first(runs, lambda action: action.command is None or self.wrapper not in action.command.wrappers)


class NoBackground(InstructionCheck):
    """No command is left running."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none was."""
        if not evidence.runs:
            return INACTIVE
        return fail_first(evidence.runs, _is_left_running)


def _is_left_running(action: AgentAction) -> bool:
    command = action.command
    is_detached = command is not None and bool({"nohup", "setsid"} & set(command.wrappers))
    return is_detached or (command is not None and command.is_background)


class AbsolutePaths(InstructionCheck):
    """Files are read and changed by absolute paths."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each path is absolute; those that a program computes are not looked at."""
        files = [
            action
            for action in evidence.actions
            if action.kind in _FILE_KINDS and action.raw_path and action.path != UNKNOWN_PATH
        ]
        if not files:
            return INACTIVE
        return fail_first(files, lambda action: not action.raw_path.startswith(("/", "$", "~")))


class CallsAtMost(InstructionCheck):
    """Number of the calls of tools."""

    number: int

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether there were no more."""
        calls = {(action.exchange, action.call): action for action in evidence.actions if action.call >= 0}
        if not calls:
            return INACTIVE
        later = list(calls.values())[self.number :]
        return make_failed(later[0], f"{len(calls)} calls") if later else make_passed()
