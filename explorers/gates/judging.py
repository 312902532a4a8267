"""Whether a quote implies a clue about an answer: a program decides where it can, a judge on the rest."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from core.errors import Transient
from explorers.answering.checks import JUDGE_TEMPERATURE
from explorers.corpora.pages import Page
from explorers.evolution.blurs import check_blur
from explorers.gates.attributes import is_attribute_true, is_decidable
from explorers.gates.subject import GateSubject
from explorers.model_requests import (
    PROMPTS,
    ExplorerRole,
    RequestFailedError,
    RequestKey,
    StructuredRequest,
    write_schema,
)
from taskdb.records.questions import Clue, ClueOperation

IMPLY_PROMPT = "imply-1"


class ClueVerdict(BaseModel):
    """Verdict on a clue. `reason` in a sentence; `implied`: whether the quote implies the clue for this answer."""

    reason: str
    implied: bool


@dataclass(frozen=True, kw_only=True)
class ClueEvidence:
    """A clue, the answer that it is to be true of, and the words of a page that are to imply it."""

    clue: Clue
    answer: str
    page: Page
    quote: str


def find_clue_problem(subject: GateSubject, clue: Clue, page: Page) -> str:
    """Return why the quote of a clue of the question does not imply it; empty where it does.

    Raises:
        Transient: the judge gave no verdict.
    """
    if clue.operation is ClueOperation.BLUR:
        is_covered = check_blur(clue.entity, clue.value, subject.places)
        if is_covered is False:
            return f"`{clue.value}` does not stand for {clue.entity}"
    if is_decidable(clue, subject):
        is_true = is_attribute_true(clue, page, subject.places)
        return "" if is_true else f"{clue.relation} of the page is not {clue.value or clue.entity}"
    verdict = judge_clue(subject, ClueEvidence(clue=clue, answer=subject.question.answer, page=page, quote=clue.quote))
    return "" if verdict.implied else verdict.reason or "the quote does not imply it"


def judge_clue(subject: GateSubject, evidence: ClueEvidence) -> ClueVerdict:
    """Return the verdict of the judge on a clue.

    Raises:
        Transient: it gave no readable verdict; the question stays waiting.
    """
    clue = evidence.clue
    request = StructuredRequest(
        key=RequestKey(purpose="imply", subject=subject.question.id, prompt=IMPLY_PROMPT),
        model=subject.models.names[ExplorerRole.JUDGE],
        messages=PROMPTS.render_conversation(
            IMPLY_PROMPT,
            question=subject.question.text,
            answer=evidence.answer,
            clue=clue.text,
            title=evidence.page.title,
            quote=evidence.quote,
            wording=f"{clue.entity} -> {clue.value}" if clue.value else "",
            schema=write_schema(ClueVerdict),
        ),
        answer_type=ClueVerdict,
        temperature=JUDGE_TEMPERATURE,
    )
    try:
        return subject.models.request(request, subject.meter)
    except RequestFailedError as error:
        raise Transient(
            f"no verdict on a clue: {error}", advice="another --explore-draw asks the judge again"
        ) from error
