"""Whether a finding means the defect beside which it stands: a model is asked, and believed only with quotes.

Its answer quotes the code and the finding. A quote that stands nowhere is told back once; the second time the verdict
is void, and the lines alone decide, as they do where there is no model. Answers are kept by their question, so the
same review is worth the same again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from backends.llm.base import ContextFullError, Message
from backends.llm.meter import BudgetSpentError
from backends.llm.structured import shape_of
from taskdb.oracles import Defect
from verifiers.judge.asking import Asking
from verifiers.judge.prompting import question
from verifiers.judge.quotes import stands
from verifiers.judge.showing import cut_patch, cut_text, shared
from verifiers.rewards.findings import Finding
from verifiers.statement import squeezed

PROMPT = "review-1"
"""The version that is asked with; see `verifiers.judge.prompting`."""
AROUND = 15
"""Lines before and behind the places in question that the model is shown."""
ASKED = 20
"""Questions of one review; what stands beyond them is matched by lines alone."""


class SameDefect(BaseModel):
    """Whether two claims mean the same defect."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )

    why: str
    """In one sentence, what each of them says is wrong."""
    words: str
    """The words of the finding that say what is wrong, copied; empty when it says nothing of the kind."""
    code: str
    """The line of the code that both are about, copied; empty when there is none."""
    same: Literal["yes", "no"]


@dataclass
class Meanings:
    """Asks about the findings of one review.

    Args:
        asking: model, budget and kept answers.
        files: path -> text under review.
        change: the patch that mended the defects, or the diff under review; empty when neither helps.
    """

    asking: Asking
    files: dict[str, str]
    change: str
    judged: int = 0
    void: int = 0
    asked: int = 0

    def same(self, finding: Finding, defect: Defect) -> bool | None:
        """Whether they mean the same; None where nobody can be believed about it.

        Raises:
            Transient: the endpoint failed; no score may be made as if it had not.
            InputError: the endpoint refuses key, model or request.
        """
        if squeezed(finding.claim) == squeezed(defect.claim):
            return True
        if self.asked >= ASKED:
            return None
        self.asked += 1
        excerpt = self._excerpt(finding, defect)
        try:
            answered = self.asking.ask(
                lambda room: self._question(finding, defect, excerpt, room), SameDefect,
                check=lambda answer: _fault(answer, finding, excerpt),
            )  # fmt: skip
        except (BudgetSpentError, ContextFullError):
            self.void += 1
            return None
        if answered.value is None:
            self.void += 1
            return None
        self.judged += 1
        return answered.value.same == "yes"

    def _question(self, finding: Finding, defect: Defect, excerpt: str, room: int) -> tuple[Message, ...]:
        shares = shared([len(excerpt), len(self.change), len(finding.claim)], room)
        return question(
            PROMPT, schema=json.dumps(shape_of(SameDefect).schema), path=defect.path,
            excerpt=cut_text(excerpt, shares[0]), change=cut_patch(self.change, shares[1]), known=defect.claim,
            claim=cut_text(finding.claim, shares[2]),
            lines=f"{finding.first_line}-{finding.last_line}", place=f"{defect.first_line}-{defect.last_line}",
        )  # fmt: skip

    def _excerpt(self, finding: Finding, defect: Defect) -> str:
        rows = self.files[defect.path].split("\n")
        first = min(finding.first_line, defect.first_line) - AROUND
        last = max(finding.last_line, defect.last_line) + AROUND
        return "\n".join(rows[max(first - 1, 0) : last])


def _fault(answer: SameDefect, finding: Finding, excerpt: str) -> str:
    """What is wrong with an answer: its first quote that stands nowhere, or that is lacking."""
    quotes = (("words", answer.words, finding.claim), ("code", answer.code, excerpt))
    for name, quote, text in quotes:
        if answer.same == "yes" and not quote.strip():
            return f"{name}: who says yes quotes something"
        if quote.strip() and not stands(quote, text):
            where = "finding" if name == "words" else "code"
            return f"{name}: {quote[:80]!r} does not stand in the {where}"
    return ""
