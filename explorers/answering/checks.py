"""Whether an answer is right: equal after normalisation, by value, or an alias; else by a judge that quotes it.

An unreadable verdict, after all attempts, is None: neither right nor wrong.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from pydantic import BaseModel, Field

from backends.llm.meter import UsageMeter
from explorers.answering.values import parse_date, parse_number
from explorers.model_requests import (
    PROMPTS,
    ExplorerModels,
    ExplorerRole,
    RequestFailedError,
    RequestKey,
    StructuredRequest,
    write_schema,
)
from explorers.search.tokens import normalize_text
from taskdb.records.questions import Question

COMPARE_PROMPT = "compare-1"
JUDGE_TEMPERATURE = 0.0
_ARTICLES = re.compile(r"\b(?:the|an?)\b")


class AnswerQuote(BaseModel):
    """Words of a page that support an answer."""

    page: str
    quote: str


class FinalAnswer(BaseModel):
    """An answer in the form that is demanded. `answer` is empty where none was found."""

    answer: str
    confidence: float = Field(default=0.0, ge=0, le=1)
    quotes: list[AnswerQuote] = Field(default_factory=list)


class AnswerComparison(BaseModel):
    """Verdict on an answer. `quote`: words of the answer that decide; `same`: whether they name the right answer."""

    quote: str
    same: bool


def normalize_answer(answer: str) -> str:
    """Return an answer without case, width, articles and punctuation, in simplified characters."""
    folded = _ARTICLES.sub(" ", normalize_text(answer))
    kept = "".join(c if c.isalnum() or unicodedata.category(c).startswith("M") else " " for c in folded)
    return " ".join(kept.split())


def is_same_answer(answer: str, other: str) -> bool:
    """Return whether two answers are equal after normalisation, or the same date or number."""
    if not answer.strip() or not other.strip():
        return False
    if (number := parse_number(answer)) is not None and (second := parse_number(other)) is not None:
        return number == second
    if (date := parse_date(answer)) is not None and (second_date := parse_date(other)) is not None:
        return date == second_date
    normal = normalize_answer(answer)
    return normal == normalize_answer(other) if normal else answer.strip() == other.strip()


def is_listed_answer(answer: str, question: Question) -> bool:
    """Return whether an answer is that of a question or an alias, without a judge."""
    return any(is_same_answer(answer, known) for known in (question.answer, *question.aliases))


@dataclass(frozen=True, kw_only=True)
class AnswerChecker:
    """Decides on answers to questions. Threads may share it."""

    models: ExplorerModels

    def check(self, answer: str, question: Question, meter: UsageMeter) -> bool | None:
        """Return whether an answer is right; None without a readable verdict.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        if not answer.strip():
            return False
        if is_listed_answer(answer, question):
            return True
        if _is_decided_by_value(answer, question.answer):
            return False
        values = {"question": question.text, "right": [question.answer, *question.aliases], "answer": answer}
        request = StructuredRequest(
            key=RequestKey(purpose="compare", subject=question.id, prompt=COMPARE_PROMPT),
            model=self.models.names[ExplorerRole.JUDGE],
            messages=PROMPTS.render_conversation(COMPARE_PROMPT, schema=write_schema(AnswerComparison), **values),
            answer_type=AnswerComparison,
            check=lambda verdict: "" if verdict.quote in answer else "`quote` is not in the answer word for word",
            temperature=JUDGE_TEMPERATURE,
        )
        try:
            return self.models.request(request, meter).same
        except RequestFailedError:
            return None


def _is_decided_by_value(answer: str, right: str) -> bool:
    """Return whether both are numbers, or both full dates: then a judge has nothing to add."""
    if parse_number(answer) is not None and parse_number(right) is not None:
        return True
    dates = parse_date(answer), parse_date(right)
    return all(date is not None and date.day > 0 for date in dates)
