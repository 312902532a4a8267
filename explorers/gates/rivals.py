"""The search for another answer that fulfils every clue: by a query, a second agent, wrong answers of solvers."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import BaseModel, Field

from explorers.answering.checks import AnswerChecker, is_listed_answer, normalize_answer
from explorers.answering.matching import is_verbatim
from explorers.gates.attributes import find_other_entities, is_decidable
from explorers.gates.judging import ClueEvidence, judge_clue
from explorers.gates.subject import GateFailure, GateFindings, GateSubject
from explorers.model_requests import PROMPTS, ExplorerRole, RequestKey, write_json, write_schema
from explorers.reasons import Reason
from explorers.walking.loop import LoopLimits, ToolLoop
from explorers.walking.tools import CorpusTools
from taskdb.records.questions import Rival

RIVAL_PROMPT = "rival-1"
SHARED_BY = 2
"""Samples with the same wrong answer that make it a rival."""
Origin = Literal["agent", "shared"]


class RivalClue(BaseModel):
    """Evidence that a clue is true of a rival. `clue`: its number, from 1; `quote`: words of the page, verbatim."""

    clue: int = Field(ge=1)
    page: str
    quote: str


class RivalAnswer(BaseModel):
    """Another answer with evidence for each clue. `answer` is empty where none was found."""

    answer: str
    clues: list[RivalClue] = Field(default_factory=list)


def check_entities(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question of whose clues a program decides each, where another entity fulfils all of them."""
    if not _is_query(subject):
        return None
    others = find_other_entities(subject, subject.active_clues)
    if others:
        page, answer = others[0]
        return GateFailure(reason=Reason.NOT_UNIQUE, detail=f"{answer} ({page.id}) fulfils every clue, too")
    findings.add("entities", 0, 0, f"a query over {len(subject.corpus)} pages")
    return None


def _is_query(subject: GateSubject) -> bool:
    return all(is_decidable(clue, subject) for clue in subject.active_clues)


def check_rivals(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question with another answer that fulfils every clue, unless a query over all entities found none."""
    if _is_query(subject):
        return None
    proposals: list[tuple[str, Origin]] = [("", "agent")]
    proposals += [(answer, "shared") for answer in list_shared_answers(findings)]
    for number, (proposal, origin) in enumerate(proposals, 1):
        rival = _search_rival(subject, findings, proposal, number)
        if not rival.answer.strip() or is_listed_answer(rival.answer, subject.question):
            continue
        fails, detail = find_missing_clue(subject, rival)
        if not fails and _is_another_answer(subject, rival.answer):
            return GateFailure(reason=Reason.NOT_UNIQUE, detail=f"{rival.answer} fulfils every clue, too")
        findings.rivals.append(Rival(answer=rival.answer, origin=origin, fails=fails, detail=detail))
    findings.add("rivals", 0, 0, f"{len(findings.rivals)} refuted")
    return None


def list_shared_answers(findings: GateFindings) -> list[str]:
    """Return the wrong answers that several samples share, the most frequent first."""
    wrong = [sample.answer.answer for sample in findings.samples if sample.is_right is False]
    counts = Counter(normal for answer in wrong if (normal := normalize_answer(answer)))
    spelled = {normalize_answer(answer): answer for answer in reversed(wrong)}
    return [
        spelled[normal] for normal, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n >= SHARED_BY
    ]


def _search_rival(subject: GateSubject, findings: GateFindings, proposal: str, number: int) -> RivalAnswer:
    question = subject.question
    loop = ToolLoop(
        models=subject.models,
        model=subject.models.names[ExplorerRole.RIVAL],
        key=RequestKey(purpose="rival", subject=question.id, prompt=RIVAL_PROMPT, sample=number),
        tools=CorpusTools(pages=subject.corpus),
        answer_type=RivalAnswer,
        limits=LoopLimits(turns=subject.options.turns),
        temperature=subject.models.temperature,
    )
    clues = [{"clue": at, "text": clue.text} for at, clue in enumerate(subject.active_clues, 1)]
    messages = PROMPTS.render_conversation(
        RIVAL_PROMPT,
        question=question.text,
        answer=question.answer,
        clues=write_json(clues),
        proposal=proposal,
        schema=write_schema(RivalAnswer),
    )
    result = loop.run(messages, subject.meter)
    rival = result.value or RivalAnswer(answer="")
    steps = [step.to_json() for step in result.steps]
    findings.log.append({"kind": "rival", "proposal": proposal, "answer": rival.model_dump(), "steps": steps})
    return rival


def find_missing_clue(subject: GateSubject, rival: RivalAnswer) -> tuple[str, str]:
    """Return the text of the first clue that a rival does not fulfil, and why; empty texts where it fulfils all."""
    evidence = {clue.clue: clue for clue in rival.clues}
    for number, clue in enumerate(subject.active_clues, 1):
        given = evidence.get(number)
        if given is None:
            return clue.text, "no evidence"
        page = subject.corpus.find_page(given.page)
        if page is None or not is_verbatim(given.quote, page.text):
            return clue.text, f"the quote is not in {given.page}"
        rival_evidence = ClueEvidence(clue=clue, answer=rival.answer, page=page, quote=given.quote)
        verdict = judge_clue(subject, rival_evidence)
        if not verdict.implied:
            return clue.text, verdict.reason
    return "", ""


def _is_another_answer(subject: GateSubject, answer: str) -> bool:
    """Return whether a judge, too, holds it for another answer: another spelling of the right answer is no rival."""
    return AnswerChecker(models=subject.models).check(answer, subject.question, subject.meter) is not True
