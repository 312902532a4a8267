"""Gates that a program decides from the texts: support, the answer, time, leaks, ranks, duplicates, benchmarks."""

from __future__ import annotations

import re

from core.minhash import Features, compute_jaccard_index, hash_feature
from explorers.answering.checks import is_same_answer
from explorers.answering.matching import find_mention, is_mentioned, is_verbatim
from explorers.answering.values import find_dates
from explorers.gates.judging import find_clue_problem
from explorers.gates.subject import GateFailure, GateFindings, GateSubject
from explorers.reasons import Reason
from explorers.search.tokens import Tokenizer
from taskdb.records.questions import ClueOperation

SHINGLE = 3
"""Neighbouring words of a feature of near-duplicates."""
RANK_SHARE = 0.01
"""Most of the pages that count as the first pages of a search."""
_NOW = re.compile(
    r"\b(?:currently|nowadays|presently|at present|at the moment|to date|so far|as of (?:now|today)|these days|today"
    r"|incumbent|the (?:latest|most recent|current|newest) (?!of\b))"
    r"|目前|现在|現在|当前|當前|如今|最新|迄今|现任|現任",
    re.IGNORECASE,
)


def check_answer_support(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject an answer or alias that is in no quoted page."""
    question, tokenizer = subject.question, subject.corpus.tokenizer
    texts = [f"{page.title}\n{page.text}" for page in subject.quoted_pages]
    for name in (question.answer, *question.aliases):
        if not any(is_mentioned(name, text, tokenizer) for text in texts):
            return GateFailure(reason=Reason.UNSUPPORTED_ANSWER, detail=f"{name} is in no quoted page")
    own = subject.corpus.find_page(question.answer_page)
    if own is None or not is_mentioned(question.answer, f"{own.title}\n{own.text}", tokenizer):
        return GateFailure(
            reason=Reason.UNSUPPORTED_ANSWER, detail=f"{question.answer} is not in its page {question.answer_page}"
        )
    findings.add("support", len(texts), 1, f"{len(subject.active_clues)} clues")
    return None


def check_quotes(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a clue whose quote is not in its page word for word."""
    for clue in subject.active_clues:
        page = subject.find_page_of(clue)
        if page is None or not is_verbatim(clue.quote, page.text):
            detail = f"{clue.text}: the quote is not in {clue.page}"
            return GateFailure(reason=Reason.UNSUPPORTED_CLUE, detail=detail)
    findings.add("quotes", len(subject.active_clues))
    return None


def check_implications(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a clue that its quote does not imply."""
    for clue in subject.active_clues:
        page = subject.find_page_of(clue)
        problem = find_clue_problem(subject, clue, page) if page is not None else "it has no page"
        if problem:
            return GateFailure(reason=Reason.UNSUPPORTED_CLUE, detail=f"{clue.text}: {problem}")
    findings.add("implied", len(subject.active_clues))
    return None


def check_answer_kept(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject an answer that is not the walk's: in no fact of it, or not that of the first question."""
    answer = subject.question.answer
    names = {name for fact in subject.walk.facts for name in (fact.subject, fact.object)}
    if not is_same_answer(answer, subject.answer):
        return GateFailure(reason=Reason.ANSWER_CHANGED, detail=f"{answer} in place of {subject.answer}")
    if not any(is_same_answer(answer, name) for name in names):
        return GateFailure(reason=Reason.ANSWER_CHANGED, detail=f"no fact of the walk is about {answer}")
    findings.add("answer", 1)
    return None


def check_time(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question whose answer depends on the day."""
    text = subject.question.text
    word = _NOW.search(text)
    if word is not None and not find_dates(text):
        return GateFailure(reason=Reason.TIME_DEPENDENT, detail=f"`{word[0].strip()}` without a date")
    findings.add("time", 1)
    return None


def check_leaks(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question that names its answer, an alias, or an entity that was removed or blurred."""
    question = subject.question
    hidden = [clue.entity for clue in question.clues if clue.operation in (ClueOperation.REMOVE, ClueOperation.BLUR)]
    names = (question.answer, *question.aliases, *subject.aliases, *hidden)
    if name := find_mention(names, question.text, subject.corpus.tokenizer):
        return GateFailure(reason=Reason.LEAK, detail=f"the question names {name}")
    findings.add("leaks", 0, 0, f"{len(hidden)} hidden entities")
    return None


def check_ranks(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question that leads straight to the page of its answer, alone or by a clue."""
    question, corpus, options = subject.question, subject.corpus, subject.options
    most = max(int(len(corpus) * RANK_SHARE), 1)
    rank = findings.entry_rank = corpus.find_rank(question.text, question.answer_page)
    limit = min(options.question_rank, most)
    if rank is not None and rank <= limit:
        return GateFailure(reason=Reason.DIRECT_HIT, detail=f"its page is number {rank} for the question")
    clue_limit = min(options.clue_rank, most)
    for clue in subject.active_clues:
        clue_rank = corpus.find_rank(clue.text, question.answer_page)
        if clue_rank is not None and clue_rank <= clue_limit:
            detail = f"its page is number {clue_rank} for the clue: {clue.text}"
            return GateFailure(reason=Reason.DIRECT_HIT, detail=detail)
    findings.add("entry-rank", rank or 0, limit, "" if rank else "no search for the question returns it")
    return None


def check_duplicates(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question whose words are those of a question of another walk."""
    tokenizer = subject.corpus.tokenizer
    own, closest = make_features(subject.question.text, tokenizer), 0.0
    for name, text in subject.others:
        similarity = compute_jaccard_index(own, make_features(text, tokenizer))
        if similarity >= subject.options.similarity:
            return GateFailure(reason=Reason.NEAR_DUPLICATE, detail=f"{similarity:.2f} similar to {name}")
        closest = max(closest, similarity)
    findings.add("similarity", round(closest, 4), subject.options.similarity)
    return None


def make_features(text: str, tokenizer: Tokenizer) -> Features:
    """Return the features of a text: runs of SHINGLE tokens, or all of a shorter text."""
    tokens = tokenizer.tokenize(text)
    runs = [tokens[at : at + SHINGLE] for at in range(max(len(tokens) - SHINGLE + 1, 1))]
    return frozenset(hash_feature(" ".join(run)) for run in runs)


def check_benchmarks(subject: GateSubject, findings: GateFindings) -> GateFailure | None:
    """Reject a question that shares words or a hash with a benchmark that the user names."""
    question = subject.question
    if shared := subject.benchmarks.find_overlap(question.text, question.answer, subject.corpus.tokenizer):
        return GateFailure(reason=Reason.CONTAMINATED, detail=f"it shares {shared} with a benchmark")
    findings.add("benchmarks", len(subject.benchmarks.pairs))
    return None
