"""Statement variants written by a model: the same request in other words, checked like those written by rules."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from backends.llm.answers import AnswerCache
from backends.llm.base import ContextLengthError
from backends.llm.meter import BudgetExceededError, TokenBudget, UsageMeter
from backends.llm.prompts import PromptTemplates
from backends.llm.structured import request_structured
from backends.services import Services
from taskdb.records import Kind

MIN_CHARS, MAX_CHARS = 20, 6000
"""Length of a statement."""
FORMS = {
    Kind.TERSE: "one to three sentences, as a busy maintainer would write them",
    Kind.USER_STORY: "a user story ('As a ..., I want ..., so that ...') followed by acceptance criteria as a list",
}
"""Kind of variant -> its form in the prompt."""
_PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")


class RewrittenStatement(BaseModel):
    """A problem statement in other words."""

    text: str


@dataclass(frozen=True)
class VariantWriter:
    """Queries for one change, within one budget of tokens, cost and time."""

    services: Services

    def write(self, kind: Kind, repo: str, statement: str) -> str | None:
        """Return a statement in the form of a kind; None where the answer is unusable or no model is configured.

        Raises:
            Transient: the model cannot be reached.
        """
        settings, model = self.services.settings, self.services.model
        if model is None:
            return None

        def find_fault(answer: RewrittenStatement) -> str:
            n_chars = len(answer.text.strip())
            return "" if MIN_CHARS <= n_chars <= MAX_CHARS else f"the text has {n_chars} characters"

        conversation = _PROMPTS.render_conversation(
            "variant-1",
            schema=RewrittenStatement.model_json_schema(),
            form=FORMS[kind],
            repo=repo,
            statement=statement,
            max_chars=MAX_CHARS,
        )
        try:
            answer: RewrittenStatement | None = request_structured(
                model,
                conversation,
                RewrittenStatement,
                meter=UsageMeter(TokenBudget.from_settings(settings.budget)),
                check=find_fault,
                answers=AnswerCache(settings.storage.store_dir / "answers"),
                deadline=time.monotonic() + settings.budget.seconds,
            ).value
        except (ContextLengthError, BudgetExceededError):
            return None
        return answer.text.strip() if answer else None
