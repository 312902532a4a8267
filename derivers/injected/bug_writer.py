"""Bugs and problem statements written by a model, where one is configured.

The model's bugs are filtered like mutants: tests must fail with them. Its statements are checked like those of the
template: they must contain no line of the patch and no name of a mutation operator. Without a usable answer, mutants
and the template are used alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from backends.llm.answers import AnswerCache
from backends.llm.base import ContextLengthError, LanguageModel
from backends.llm.meter import BudgetExceededError, TokenBudget, UsageMeter
from backends.llm.prompts import PromptTemplates
from backends.llm.structured import request_structured
from backends.services import Services
from derivers.injected.failure_statement import MAX_SHOWN_TESTS, FailingTest, find_leak
from mutation import Mutation, is_program
from mutation.operators import MUTANT_OPERATORS

T = TypeVar("T", bound=BaseModel)
MODEL_OPERATOR = "model-written"
"""Name of the operator of bugs that a model wrote."""
BUGS_PER_FILE = 4
"""Bugs requested for a file."""
MAX_REMOVED_LINES = 12
"""Lines by which a bug may shorten a file."""
MAX_FILE_CHARS = 24_000
"""Characters of a file in the prompt; of a longer file, an excerpt."""
MIN_STATEMENT_CHARS, MAX_STATEMENT_CHARS = 120, 4000
"""Length of a statement."""
_PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")


class BugReplacement(BaseModel):
    """One bug: text of the file, its replacement, and one sentence on the failure."""

    search: str
    replace: str
    behaviour: str


class BugAnswer(BaseModel):
    """Bugs for one file."""

    bugs: list[BugReplacement] = Field(max_length=2 * BUGS_PER_FILE)


class BugReport(BaseModel):
    """Bug report as a user would write it."""

    title: str
    text: str


@dataclass(frozen=True)
class BugWriter:
    """Queries for a change or an environment, within a budget of tokens, cost and time."""

    services: Services
    model: LanguageModel
    meter: UsageMeter
    deadline: float

    @classmethod
    def create(cls, services: Services, shares: int = 1) -> BugWriter | None:
        """Return a writer whose budget starts now; None where no model is configured.

        Args:
            services: the model, and its budget for a change.
            shares: how often the budget is given.
        """
        if services.model is None:
            return None
        limits = services.settings.budget
        budget = TokenBudget(
            tokens=limits.tokens * shares if limits.tokens is not None else None,
            cost=limits.cost * shares if limits.cost is not None else None,
        )
        deadline = time.monotonic() + limits.seconds * shares
        return cls(services, services.model, UsageMeter(budget), deadline)

    def write_bugs(self, path: str, source: bytes, lines: Collection[int], function: str = "") -> list[Mutation]:
        """Return bugs near the first of some lines of a file; empty where the answer is unusable.

        Args:
            path: path of the file.
            source: its content.
            lines: lines of the file (1-based).
            function: name of the function that the bugs are to be in; empty for any.

        Raises:
            Transient: the model cannot be reached.
        """
        text = _excerpt_file(source, lines)
        values = {
            "path": path,
            "function": function,
            "text": text,
            "number": BUGS_PER_FILE,
            "max_removed_lines": MAX_REMOVED_LINES,
        }
        answer = self._query_model("bug-3", BugAnswer, values)
        mutations = (_apply_bug(path, source, bug) for bug in (answer.bugs if answer else []))
        return [mutation for mutation in mutations if mutation is not None]

    def write_statement(self, repo: str, failures: Sequence[FailingTest], *, bugs: int, gold: bytes) -> str | None:
        """Return a problem statement written from failing tests; None where the answer is unusable.

        Raises:
            Transient: the model cannot be reached.
        """

        def find_fault(report: BugReport) -> str:
            text = f"{report.title}\n\n{report.text}"
            if not MIN_STATEMENT_CHARS <= len(report.text) <= MAX_STATEMENT_CHARS:
                return f"the text has {len(report.text)} characters"
            if find_leak(text, gold):
                return "it contains lines of the program, which the checks do not show"
            names = [operator.name for operator in MUTANT_OPERATORS if "-" in operator.name and operator.name in text]
            return f"it mentions {names[0]}" if names else ""

        values = {"repo": repo, "failing": len(failures), "bugs": bugs, "shown": failures[: max(MAX_SHOWN_TESTS, bugs)]}
        sizes = {"min_chars": MIN_STATEMENT_CHARS, "max_chars": MAX_STATEMENT_CHARS}
        report = self._query_model("statement-2", BugReport, values | sizes, find_fault)
        return f"{report.title.strip()}\n\n{report.text.strip()}\n" if report else None

    def _query_model(
        self, prompt: str, schema: type[T], values: dict[str, Any], check: Callable[[T], str] = lambda _: ""
    ) -> T | None:
        conversation = _PROMPTS.render_conversation(prompt, schema=schema.model_json_schema(), **values)
        answers = AnswerCache(self.services.settings.storage.store_dir / "answers")
        try:
            return request_structured(
                self.model, conversation, schema, meter=self.meter, check=check, answers=answers, deadline=self.deadline
            ).value
        except (ContextLengthError, BudgetExceededError):
            return None


def _apply_bug(path: str, source: bytes, bug: BugReplacement) -> Mutation | None:
    """Return the file with the bug; None where the bug does not apply or the result does not parse."""
    search, replacement = bug.search.encode(), bug.replace.encode()
    removed_lines = bug.search.count("\n") - bug.replace.count("\n")
    if not search.strip() or source.count(search) != 1 or removed_lines > MAX_REMOVED_LINES:
        return None
    after = source.replace(search, replacement)
    is_same_code = re.sub(rb"\s", b"", after) == re.sub(rb"\s", b"", source)
    if is_same_code or not is_program(path, source, after):
        return None
    line = source[: source.index(search)].count(b"\n") + 1
    return Mutation(operator=MODEL_OPERATOR, path=path, line=line, detail=bug.behaviour, after=after)


def _excerpt_file(source: bytes, lines: Collection[int]) -> str:
    """Return a short file in full, of a longer one an excerpt that starts shortly before the first of the lines."""
    text = source.decode(errors="replace")
    if len(text) <= MAX_FILE_CHARS:
        return text
    first = max(0, min(lines, default=1) - 20)
    return "\n".join(text.split("\n")[first:])[:MAX_FILE_CHARS].rpartition("\n")[0]
