"""Rows of questions for other programs: all of a question with its certificate, or WebExplorer's three fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from taskdb.records.questions import Corpus, Question, QuestionCertificate

QUESTIONS_NAME = "questions.jsonl"
FREE_LICENSES = ("CC0-", "CC-BY-", "MIT", "Apache-2.0", "BSD-", "ISC", "Unlicense", "0BSD", "PDDL-")
"""Beginnings of SPDX expressions of pages that may be handed on."""
NOT_FREE = ("-NC", "-ND")
"""Parts of licences that forbid uses or changes."""


@dataclass(frozen=True, kw_only=True)
class CertifiedQuestion:
    """A question with all that a row of it has. `certificate` is None only where uncertified questions are exported."""

    question: Question
    corpus: Corpus
    certificate: QuestionCertificate | None


def make_full_row(certified: CertifiedQuestion) -> dict[str, Any]:
    """Return `{id, name, question, answer, aliases, answer_type, answer_page, clues, corpus, license, certificate}`."""
    question, corpus, certificate = certified.question, certified.corpus, certified.certificate
    return {
        "id": question.id,
        "name": question.name,
        "environment": question.environment,
        "question": question.text,
        "answer": question.answer,
        "aliases": list(question.aliases),
        "answer_type": question.answer_type.value,
        "answer_page": question.answer_page,
        "round": question.round,
        "clues": [clue.model_dump(mode="json") for clue in question.clues],
        "corpus": {"name": corpus.name, "pages_sha256": corpus.pages_sha256, "index_sha256": corpus.index_sha256},
        "license": question.license,
        "certificate": None if certificate is None else certificate.model_dump(mode="json", exclude={"log", "path"}),
    }


def make_webexplorer_row(certified: CertifiedQuestion) -> dict[str, Any]:
    """Return `{id, question, answer}`, as the published rows of WebExplorer (arXiv 2509.06501)."""
    question = certified.question
    return {"id": question.id, "question": question.text, "answer": question.answer}


QUESTION_FORMATS: Mapping[str, Callable[[CertifiedQuestion], dict[str, Any]]] = {
    "jsonl": make_full_row,
    "webexplorer": make_webexplorer_row,
}
"""Name of a format -> its row."""


def may_be_handed_on(license_id: str) -> bool:
    """Return whether every licence of an SPDX expression lets pages be handed on."""
    names = license_id.replace("(", " ").replace(")", " ").replace(" AND ", " ").replace(" OR ", " ").split()
    return bool(names) and all(
        name.startswith(FREE_LICENSES) and not any(part in name for part in NOT_FREE) for name in names
    )
