"""What a model may do for injected bugs, where one takes part: write bugs, and write statements.

Its bugs go the way of all others: tests must notice them. Its statements are checked like ours: nothing of the patch,
no name of a rule. Without a usable answer there are the rules and the template.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from backends.llm.base import ContextFullError, Model
from backends.llm.meter import Budget, BudgetSpentError, Meter
from backends.llm.prompts import Prompts
from backends.llm.structured import structured
from backends.services import Services
from derivers.injected.telling import SHOWN, Failure, leaks
from derivers.mutation import Change, is_program
from derivers.mutation.python import MUTANTS
from taskdb.answers import Answers

T = TypeVar("T", bound=BaseModel)
WRITTEN = "written"
"""The operator of a model's bugs."""
BUGS = 4
"""Bugs asked for, of one file."""
MOST_LINES = 12
MOST_CHARS = 24_000
"""Of a file that is shown; a longer one is shown in part."""
LEAST_STATEMENT, MOST_STATEMENT = 120, 4000
"""Characters of a statement."""
_PROMPTS = Prompts(Path(__file__).parent / "prompts")


class Bug(BaseModel):
    """One bug: a replacement in the file."""

    search: str
    replace: str
    behaviour: str


class Bugs(BaseModel):
    """Bugs for one file."""

    bugs: list[Bug] = Field(max_length=2 * BUGS)


class Report(BaseModel):
    """The report of a bug, as a user would write it."""

    title: str
    text: str


@dataclass(frozen=True)
class Asking:
    """All questions about one change, under one budget of tokens, money and time."""

    services: Services
    model: Model
    meter: Meter
    deadline: float

    @classmethod
    def begin(cls, services: Services) -> Asking | None:
        """The budgets of the settings, from now on; None where no model takes part."""
        if services.model is None:
            return None
        settings = services.settings
        deadline = time.monotonic() + settings.budget_seconds
        return cls(services, services.model, Meter(Budget.of(settings)), deadline)

    def bugs(self, path: str, source: bytes, lines: Collection[int]) -> list[Change]:
        """Bugs for the first of a file's lines and what is around them; none when no answer can be used.

        Raises:
            Transient: the model cannot be reached.
        """
        text = _part(source, lines)
        values = {"path": path, "text": text, "number": BUGS, "most_lines": MOST_LINES}
        answer = self._ask("bug-1", Bugs, values)
        changes = (_change(path, source, bug) for bug in (answer.bugs if answer else []))
        return [change for change in changes if change is not None]

    def statement(self, repo: str, told: Sequence[Failure], *, bugs: int, gold: bytes) -> str | None:
        """A statement of what fails; None when none can be used.

        Raises:
            Transient: the model cannot be reached.
        """

        def wrong(report: Report) -> str:
            text = f"{report.title}\n\n{report.text}"
            if not LEAST_STATEMENT <= len(report.text) <= MOST_STATEMENT:
                return f"the text has {len(report.text)} characters"
            if leaks(text, gold):
                return "it tells more than the checks show: lines of the program"
            named = [rule.name for rule in MUTANTS if "-" in rule.name and rule.name in text]
            return f"it speaks of {named[0]}" if named else ""

        values = {"repo": repo, "failing": len(told), "bugs": bugs, "shown": told[: max(SHOWN, bugs)]}
        sizes = {"least": LEAST_STATEMENT, "most": MOST_STATEMENT}
        report = self._ask("statement-1", Report, values | sizes, wrong)
        return f"{report.title.strip()}\n\n{report.text.strip()}\n" if report else None

    def _ask(
        self, prompt: str, wanted: type[T], values: dict[str, Any], check: Callable[[T], str] = lambda _: ""
    ) -> T | None:
        question = _PROMPTS.question(prompt, schema=wanted.model_json_schema(), **values)
        answers = Answers(self.services.settings.store_dir / "answers")
        try:
            return structured(
                self.model, question, wanted, meter=self.meter, check=check, answers=answers, deadline=self.deadline
            ).value
        except (ContextFullError, BudgetSpentError):
            return None


def _change(path: str, source: bytes, bug: Bug) -> Change | None:
    """The bug in the file; None where it cannot be put there, or the file is no program then."""
    search, new = bug.search.encode(), bug.replace.encode()
    lost = bug.search.count("\n") - bug.replace.count("\n")
    if not search.strip() or source.count(search) != 1 or lost > MOST_LINES:
        return None
    after = source.replace(search, new)
    squeezed = re.sub(rb"\s", b"", after) == re.sub(rb"\s", b"", source)
    if squeezed or not is_program(path, source, after):
        return None
    line = source[: source.index(search)].count(b"\n") + 1
    return Change(operator=WRITTEN, path=path, line=line, detail=bug.behaviour, after=after)


def _part(source: bytes, lines: Collection[int]) -> str:
    """The file where it is short, else so much of it from about the first of the lines on."""
    text = source.decode(errors="replace")
    if len(text) <= MOST_CHARS:
        return text
    first = max(0, min(lines, default=1) - 20)
    return "\n".join(text.split("\n")[first:])[:MOST_CHARS].rpartition("\n")[0]
