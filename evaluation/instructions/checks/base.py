"""A check: its arguments, and the function that decides it on evidence."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from evaluation.instructions.actions import AgentAction
from evaluation.instructions.evidence import CheckVerdict, RolloutEvidence, make_failed, make_passed


class InstructionCheck(BaseModel, ABC):
    """Base of all checks. Its fields are the arguments that a constraint gives it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    compares_files: ClassVar[bool] = False
    """Whether it reads the contents of files before and after the patch, for which their tree must be known."""

    @abstractmethod
    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether an instruction was followed."""


class FileCheck(InstructionCheck):
    """Base of checks of the contents of the files that differ at the end."""

    compares_files: ClassVar[bool] = True


CheckT = TypeVar("CheckT", bound=type[InstructionCheck])


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, AfterValidator(_check_pattern)]
"""Regular expression."""
Patterns = tuple[Pattern, ...]


def runs_any(action: AgentAction, patterns: Iterable[str]) -> bool:
    """Return whether a command begins with any of some regexes, by its own words or with those of a wrapper."""
    command = action.command
    if command is None:
        return False
    texts = [command.text, *(f"{wrapper} {command.text}" for wrapper in command.wrappers)]
    return any(_compile_command(pattern).match(text) for pattern in patterns for text in texts)


@cache
def _compile_command(pattern: str) -> re.Pattern[str]:
    """Return the regex of a command; patterns are long, so that looking them up by a new text would take longer."""
    return re.compile(rf"(?:{pattern})(?![\w-])")


def fail_first(actions: Sequence[AgentAction], is_breach: Callable[[AgentAction], bool]) -> CheckVerdict:
    """Return that the first action that is a breach fails; passed where none is."""
    breach = next((action for action in actions if is_breach(action)), None)
    return make_failed(breach) if breach is not None else make_passed()
