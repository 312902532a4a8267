"""What a model may do for injected bugs, where one takes part: write bugs, and write statements.

Its bugs go the way of all others: tests must notice them. Its statements are checked like ours: nothing of the patch,
no name of a rule. Without a usable answer there are the rules and the template.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from pydantic import BaseModel, Field

from backends.llm.base import ContextFullError, Message, Model
from backends.llm.meter import Budget, BudgetSpentError, Meter
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
        question = _question(prompt, schema=wanted.model_json_schema(), **values)
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


def _question(prompt: str, **values: Any) -> tuple[Message, ...]:
    """The files of `prompts/NAME-VERSION/`, filled in; a version that has been asked with is never changed."""
    mark = hashlib.sha256(repr(sorted(values.items())).encode(errors="replace")).hexdigest()[:16]
    system, user = (
        _prompts().get_template(f"{prompt}/{part}.md.j2").render(**values, mark=mark) for part in ("system", "user")
    )
    return Message(role="system", text=_sendable(system)), Message(role="user", text=_sendable(user))


def _sendable(text: str) -> str:
    return (text.strip() + "\n").encode(errors="replace").decode()


@cache
def _prompts() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "prompts"), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - text for a model, not HTML
    )  # fmt: skip
