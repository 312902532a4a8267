"""Checks of whether an instruction was followed, each a class whose fields are its arguments. `CHECKS` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from core.errors import InputError
from core.validation import describe_invalid
from evaluation.instructions.checks import answers, code, commands, files, order, tools
from evaluation.instructions.checks.base import InstructionCheck
from taskdb.records.instructions import JUDGED

CHECKS: Mapping[str, type[InstructionCheck]] = {
    "absolute-paths": commands.AbsolutePaths,
    "added-lines-at-most": files.AddedLinesAtMost,
    "added-lines-never": files.AddedLinesNever,
    "answer-begins": answers.AnswerBegins,
    "answer-ends": answers.AnswerEnds,
    "answer-items": answers.AnswerItems,
    "answer-json": answers.AnswerJson,
    "answer-mentions": answers.AnswerMentions,
    "answer-names-files": answers.AnswerNamesFiles,
    "answer-words": answers.AnswerWords,
    "calls-at-most": commands.CallsAtMost,
    "calls-explained": answers.CallsExplained,
    "changed-sources-gain": files.ChangedSourcesGain,
    "command-after-last-edit": order.CommandAfterLastEdit,
    "command-before-first-edit": order.CommandBeforeFirstEdit,
    "command-run": commands.CommandRun,
    "commands-in-order": order.CommandsInOrder,
    "file-gains-line": files.FileGainsLine,
    "files-at-most": files.FilesAtMost,
    "files-untouched": files.FilesUntouched,
    "functions-at-most": code.FunctionsAtMost,
    JUDGED: answers.JudgedItem,
    "last-line-ends": files.LastLineEnds,
    "lines-at-most": files.LinesAtMost,
    "never-command": commands.NeverCommand,
    "never-text": answers.NeverText,
    "never-writes": files.NeverWrites,
    "new-files-begin": files.NewFilesBegin,
    "new-files-never": files.NewFilesNever,
    "new-files-only": files.NewFilesOnly,
    "new-functions-documented": code.NewFunctionsDocumented,
    "new-functions-named": code.NewFunctionsNamed,
    "new-functions-typed": code.NewFunctionsTyped,
    "no-background": commands.NoBackground,
    "no-reads-by": commands.NoReadsBy,
    "no-writes-by": commands.NoWritesBy,
    "plan-before-edit": order.PlanBeforeEdit,
    "read-before-edit": order.ReadBeforeEdit,
    "search-before-edit": order.SearchBeforeEdit,
    "single-commands": commands.SingleCommands,
    "skill-read": tools.SkillRead,
    "tool-argument-given": tools.ToolArgumentGiven,
    "tool-called": tools.ToolCalled,
    "tool-calls-at-most": tools.ToolCallsAtMost,
    "tool-never": tools.ToolNever,
    "turn-without-changes": tools.TurnWithoutChanges,
    "wrapped-command": commands.WrappedCommand,
}
"""Name of a check, as constraints have it -> its class."""


def make_check(name: str, arguments: Mapping[str, Any], place: str) -> InstructionCheck:
    """Return a check with its arguments.

    Args:
        name: name of the check.
        arguments: its arguments.
        place: file and key that name it, for the message of an error.

    Raises:
        InputError: there is no such check, or its arguments are others.
    """
    if name not in CHECKS:
        raise InputError(f"{place}: check {name} is unknown", advice=f"one of {', '.join(CHECKS)}")
    try:
        return CHECKS[name](**arguments)
    except ValidationError as error:
        raise InputError(f"{place}: arguments of {name}: {describe_invalid(error.errors(), 'they')}") from error
