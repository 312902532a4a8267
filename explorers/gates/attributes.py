"""Clues on pages with attributes, such as those of changes: a program decides on them, and uniqueness is a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorers.answering.checks import is_same_answer
from explorers.corpora.pages import Page
from explorers.evolution.blurs import check_blur
from explorers.gates.subject import GateSubject
from taskdb.records.questions import Clue, ClueOperation

TYPE = "type"


def is_decidable(clue: Clue, subject: GateSubject) -> bool:
    """Return whether a program decides on a clue: it states an attribute of the answer's own page."""
    page = subject.find_page_of(clue)
    return page is not None and page.id == subject.question.answer_page and clue.relation in page.attributes


def is_attribute_true(clue: Clue, page: Page, places: Mapping[str, str]) -> bool:
    """Return whether an attribute of a page is as a clue states it."""
    values = page.attributes.get(clue.relation, ())
    if clue.operation is ClueOperation.BLUR:
        return any(check_blur(value, clue.value, places) is True for value in values)
    return any(is_same_answer(value, clue.entity) for value in values)


def find_answer_attribute(page: Page, answer: str) -> str:
    """Return the attribute of the answer's page whose value the answer is; empty where the title is the answer."""
    return next(
        (name for name, values in page.attributes.items() if any(is_same_answer(value, answer) for value in values)), ""
    )


def find_other_entities(subject: GateSubject, clues: Sequence[Clue]) -> list[tuple[Page, str]]:
    """Return the pages of the answer's type that fulfil all clues and have another answer, with that answer.

    Args:
        subject: the question; its answer's page has attributes.
        clues: clues on which a program decides, at least a clue.
    """
    own = subject.corpus.find_page(subject.question.answer_page)
    if own is None:
        return []
    name = find_answer_attribute(own, subject.question.answer)
    others = []
    for page in subject.corpus:
        if page.id == own.id or page.attributes.get(TYPE) != own.attributes.get(TYPE):
            continue
        if all(is_attribute_true(clue, page, subject.places) for clue in clues):
            answers = page.attributes.get(name, ()) if name else (page.title,)
            others += [(page, answer) for answer in answers if not is_same_answer(answer, subject.question.answer)]
    return others
