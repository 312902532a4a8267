"""Decide with a model whether a finding describes the defect at its lines; answers need valid quotes.

The answer quotes the code and the finding. An invalid quote is reported to the model once; after a second one the
answer is void, and the lines alone decide, as without a model. Answers are cached by prompt, so the same review gets
the same score.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from backends.llm.base import ContextLengthError, Message
from backends.llm.meter import BudgetExceededError
from backends.llm.structured import build_response_schema
from core.quotes import is_quoted_from, normalize_whitespace
from guest.scoring.findings import ReviewFinding
from taskdb.records.oracles import Defect
from verifiers.judge.client import JudgeClient
from verifiers.judge.prompting import render_conversation
from verifiers.judge.truncation import divide_budget, truncate_patch, truncate_text

PROMPT = "review-2"
"""Name and version of the prompt, see `verifiers.judge.prompting`."""
CONTEXT_LINES = 15
"""Number of lines before and after the finding and the defect in the excerpt."""
MAX_QUESTIONS = 20
"""Maximum number of model requests for one review; further findings are matched by lines alone."""


class SameDefect(BaseModel):
    """Whether two claims describe the same defect."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )

    why: str
    """In one sentence, the fault that each of them reports."""
    words: str
    """The words of the finding that describe what is wrong, copied; empty if there are none."""
    code: str
    """The line of the code that both are about, copied; empty if there is none."""
    same: Literal["yes", "no"]


@dataclass
class DefectMatcher:
    """Compares the findings of one review with defects.

    Args:
        client: model, budget and cached answers.
        files: path -> text under review.
        change: the patch that repaired the defects, or the diff under review; empty when neither helps.
    """

    client: JudgeClient
    files: dict[str, str]
    change: str
    judged: int = 0
    void: int = 0
    questions: int = 0

    def is_same_defect(self, finding: ReviewFinding, defect: Defect) -> bool | None:
        """Return whether finding and defect are the same; None without a valid answer.

        Raises:
            Transient: the endpoint failed; the review cannot be scored now.
            InputError: the endpoint rejects key, model or request.
        """
        if normalize_whitespace(finding.claim) == normalize_whitespace(defect.claim):
            return True
        if self.questions >= MAX_QUESTIONS:
            return None
        self.questions += 1
        excerpt = self._cut_excerpt(finding, defect)
        try:
            answer = self.client.query(
                lambda room: self._build_question(finding, defect, excerpt, room),
                SameDefect,
                check=lambda value: _find_invalid_quote(value, finding, excerpt),
            )
        except (BudgetExceededError, ContextLengthError):
            self.void += 1
            return None
        if answer.value is None:
            self.void += 1
            return None
        self.judged += 1
        return answer.value.same == "yes"

    def _build_question(self, finding: ReviewFinding, defect: Defect, excerpt: str, room: int) -> tuple[Message, ...]:
        shares = divide_budget([len(excerpt), len(self.change), len(finding.claim)], room)
        return render_conversation(
            PROMPT,
            schema=json.dumps(build_response_schema(SameDefect).schema),
            path=defect.path,
            excerpt=truncate_text(excerpt, shares[0]),
            change=truncate_patch(self.change, shares[1]),
            known=defect.claim,
            claim=truncate_text(finding.claim, shares[2]),
            lines=f"{finding.first_line}-{finding.last_line}",
            place=f"{defect.first_line}-{defect.last_line}",
        )

    def _cut_excerpt(self, finding: ReviewFinding, defect: Defect) -> str:
        rows = self.files[defect.path].split("\n")
        first = min(finding.first_line, defect.first_line) - CONTEXT_LINES
        last = max(finding.last_line, defect.last_line) + CONTEXT_LINES
        return "\n".join(rows[max(first - 1, 0) : last])


def _find_invalid_quote(answer: SameDefect, finding: ReviewFinding, excerpt: str) -> str:
    """Describe the first quote of an answer that is invalid or missing; empty if there is none."""
    quotes = (("words", answer.words, finding.claim), ("code", answer.code, excerpt))
    for name, quote, text in quotes:
        if answer.same == "yes" and not quote.strip():
            return f"{name}: a quote is required for `yes`"
        if quote.strip() and not is_quoted_from(quote, text):
            where = "finding" if name == "words" else "code"
            return f"{name}: {quote[:80]!r} does not occur in the {where}"
    return ""
