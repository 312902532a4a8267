"""Export of certified questions as rows, and import of rows as questions that wait for the gates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError, UsageError, make_write_error
from explorers.bundles.reading import ImportedQuestion, read_question_rows
from explorers.bundles.rows import QUESTION_FORMATS, QUESTIONS_NAME, CertifiedQuestion, may_be_handed_on
from explorers.corpora.corpus import CorpusReader
from explorers.corpora.pages import PageProblem
from mergemill.explore.corpora import open_corpus
from taskdb.artifacts import require_writable_store
from taskdb.queries.questions import find_corpus, load_best_questions, load_certificate
from taskdb.records.questions import Corpus, Question, Walk, WalkFact
from taskdb.store import Store

if TYPE_CHECKING:
    from core.settings.storage import StorageSettings

PAGES_NAME, MANIFEST_NAME = "pages.jsonl", "manifest.json"
IMPORTED = "import"
"""Prompt of imported questions."""


@dataclass(frozen=True, kw_only=True)
class QuestionExport:
    """Options of an export. `names`: questions or walks, empty for all; `with_pages`: whether pages leave, too."""

    format: str
    out: Path
    names: tuple[str, ...] = ()
    corpus: str | None = None
    with_pages: bool = False


def export_questions(request: QuestionExport, storage: StorageSettings) -> dict[str, Any]:
    """Write the best certified question of each walk; return `format`, `questions`, `pages`, `pages_left_out`, `out`.

    Raises:
        UsageError: the format is unknown.
        InputError: there is no such question, or the folder is in use.
        Transient: the disk is full.
    """
    if request.format not in QUESTION_FORMATS:
        formats = ", ".join(QUESTION_FORMATS)
        raise UsageError(f"--format: {request.format} is unknown", advice=f"of {formats}")
    with Store.open(storage.db, create=False) as store:
        questions = load_best_questions(store, request.names, request.corpus)
        if not questions:
            raise InputError("no certified question matches", advice="mergemill explore list --status certified")
        corpora = store.get_many(Corpus, [question.corpus for question in questions])
        rows = [
            CertifiedQuestion(
                question=question, corpus=corpora[question.corpus], certificate=load_certificate(store, question)
            )
            for question in questions
        ]
    files = {QUESTIONS_NAME: _write_lines(QUESTION_FORMATS[request.format](row) for row in rows)}
    n_pages = n_left_out = 0
    if request.with_pages:
        lines, n_left_out = _write_pages([open_corpus(corpus, storage) for corpus in corpora.values()])
        files[PAGES_NAME], n_pages = b"".join(lines), len(lines)
    _write_folder(request, files, len(rows))
    return {
        "format": request.format,
        "questions": len(rows),
        "pages": n_pages,
        "pages_left_out": n_left_out,
        "out": str(request.out),
    }


def _write_lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n" for row in rows)


def _write_pages(readers: Sequence[CorpusReader]) -> tuple[list[bytes], int]:
    """Return the lines of the pages whose licences let them be handed on, and the number of the others."""
    pages = [page for reader in readers for page in reader]
    free = [page.format_line() for page in pages if may_be_handed_on(page.license)]
    return free, len(pages) - len(free)


def _write_folder(request: QuestionExport, files: dict[str, bytes], n_questions: int) -> None:
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {"format": request.format, "questions": n_questions, "sha256": hashes}
    content = {**files, MANIFEST_NAME: json.dumps(manifest, indent=1).encode() + b"\n"}
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        if any(request.out.iterdir()):
            raise InputError(f"{request.out} is not empty", advice="name a new or empty folder")
        for name, data in content.items():
            (request.out / name).write_bytes(data)
    except OSError as error:
        raise make_write_error(f"cannot write to {request.out}", error, advice="free some space") from error


def import_questions(path: Path, corpus: str, storage: StorageSettings) -> tuple[int, list[PageProblem]]:
    """Store the questions of a file as first questions that wait for the gates; return how many are new, and problems.

    Raises:
        InputError: the file cannot be read, or there is no such corpus.
        Transient: the disk is full.
    """
    artifacts = require_writable_store(storage)
    with Store.open(storage.db, create=False, writes=True) as store:
        record = find_corpus(store, corpus)
        reader = open_corpus(record, storage)
        nothing = artifacts.put(b"")
        n_new, problems = 0, []
        for row in read_question_rows(path):
            problem = row if isinstance(row, PageProblem) else _find_problem(row, reader)
            if isinstance(problem, PageProblem):
                problems.append(problem)
            elif isinstance(row, ImportedQuestion):
                added = store.add(*_make_records(row, record, reader, nothing))
                n_new += any(isinstance(new, Question) for new in added)
    return n_new, problems


def _find_problem(row: ImportedQuestion, reader: CorpusReader) -> PageProblem | None:
    unknown = [page for page in (row.answer_page, *(clue.page for clue in row.clues)) if reader.find_page(page) is None]
    place = row.name or row.question[:40]
    return PageProblem(place=place, detail=f"the corpus has no page {unknown[0]}") if unknown else None


def _make_records(row: ImportedQuestion, corpus: Corpus, reader: CorpusReader, steps: str) -> tuple[Walk, Question]:
    """Return the walk of which a row's clues are the facts, and its question. `steps`: artifact of no steps."""
    key = hashlib.sha256(f"{row.question}\n{row.answer}".encode(errors="replace")).hexdigest()
    facts = tuple(
        WalkFact(
            subject=row.answer,
            relation=clue.relation,
            object=clue.entity or row.answer,
            page=clue.page,
            quote=clue.quote,
        )
        for clue in row.clues
    )
    walk = Walk(
        parent=corpus.id,
        corpus=corpus.name,
        name=f"{corpus.name}-{key[:8]}",
        seed=row.question,
        facts=facts,
        pages=tuple(dict.fromkeys(clue.page for clue in row.clues)),
        steps=steps,
        n_calls=0,
        model="",
        prompt=IMPORTED,
    )
    pages = [reader.find_page(page) for page in walk.pages]
    licenses = sorted({page.license for page in pages if page is not None})
    question = Question(
        parent=walk.id,
        walk=walk.id,
        corpus=corpus.id,
        name=f"{walk.name}.0",
        round=0,
        text=row.question,
        answer=row.answer,
        aliases=tuple(row.aliases),
        answer_type=row.answer_type,
        answer_page=row.answer_page,
        clues=tuple(row.clues),
        license=" AND ".join(licenses),
        model="",
        prompt=IMPORTED,
    )
    return walk, question
