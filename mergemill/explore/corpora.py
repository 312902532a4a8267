"""Corpora of the store: pages of a folder, of rows or of the mined changes are indexed, and opened again by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.llm.ledger import CallLedger
from backends.llm.meter import UsageMeter
from core.errors import InputError
from explorers.browse.extracts import ExtractedPages
from explorers.corpora.changes import ChangeMaterial, make_pages
from explorers.corpora.corpus import CorpusReader, WrittenCorpus, write_corpus
from explorers.corpora.pages import NO_ASSERTION, Page, PageProblem
from explorers.corpora.readers import read_pages
from explorers.search.tokens import Tokenizer, check_language
from mergemill.explore.models import COMMAND, LEDGER_FOLDER, ExplorerPool
from taskdb.artifacts import Artifacts, open_artifacts, require_writable_store
from taskdb.queries.questions import find_corpus
from taskdb.queries.sources import iterate_newest_changes
from taskdb.records import Candidate, PullRequest
from taskdb.records.discussion import Discussion
from taskdb.records.questions import Corpus, LicenseCount
from taskdb.store import Store

if TYPE_CHECKING:
    from core.config import Settings
    from core.settings.storage import StorageSettings

CHANGES = "changes"
"""Word for the mined changes of the database in place of a folder."""


def index_corpus(
    name: str, source: str, storage: StorageSettings, *, language: str, license_id: str = NO_ASSERTION
) -> tuple[Corpus, tuple[PageProblem, ...]]:
    """Index pages as the newest corpus of a name; return its record and the problems of the files and rows left out.

    Args:
        name: name of the corpus.
        source: folder, file of JSON lines, or `changes`.
        storage: database and store.
        language: name of a Snowball stemmer.
        license_id: SPDX expression of pages that name no licence.

    Raises:
        UsageError: there is no stemmer of this name.
        InputError: there is no page, or the source cannot be read.
        Transient: the disk is full.
    """
    tokenizer = Tokenizer(check_language(language))
    require_writable_store(storage)
    with Store.open(storage.db, create=source != CHANGES, writes=True) as store:
        pages: Iterable[Page | PageProblem] = (
            _read_changes(store, open_artifacts(storage)) if source == CHANGES else read_pages(Path(source), license_id)
        )
        written = write_corpus(pages, storage.store_dir, tokenizer)
        corpus = _make_record(name, source, written)
        store.add(corpus)
    return corpus, written.problems


def _make_record(name: str, source: str, written: WrittenCorpus) -> Corpus:
    return Corpus(
        name=name,
        language=written.language,
        n_pages=written.n_pages,
        pages_sha256=written.pages_sha256,
        index_sha256=written.index_sha256,
        licenses=tuple(LicenseCount(license=key, pages=number) for key, number in written.licenses.items()),
        source=source,
        n_left_out=len(written.problems),
    )


def _read_changes(store: Store, artifacts: Artifacts) -> list[Page]:
    pages = make_pages(_iterate_changes(store, artifacts))
    if not pages:
        raise InputError("the database has no changes", advice="mine sources first: mergemill mine SOURCE...")
    return pages


def _iterate_changes(store: Store, artifacts: Artifacts) -> Iterator[ChangeMaterial]:
    for listed in iterate_newest_changes(store):
        pull = store.get(PullRequest, listed.pull_request)
        candidate = store.get(Candidate, listed.candidate) if listed.candidate else None
        discussion = Discussion()
        if pull.discussion is not None:
            discussion = Discussion.model_validate_json(artifacts.get_text(pull.discussion))
        yield ChangeMaterial(pull=pull, candidate=candidate, discussion=discussion)


def open_corpus(corpus: Corpus, storage: StorageSettings) -> CorpusReader:
    """Return a corpus, open for reading.

    Raises:
        InputError: the store does not have it as it was indexed.
    """
    return CorpusReader(
        storage.store_dir,
        language=corpus.language,
        pages_sha256=corpus.pages_sha256,
        index_sha256=corpus.index_sha256,
    )


def open_named_corpus(name: str, storage: StorageSettings) -> CorpusReader:
    """Return the newest corpus of a name, open for reading; errors as of `open_corpus` and `find_corpus`."""
    with Store.open(storage.db, create=False) as store:
        corpus = find_corpus(store, name)
    return open_corpus(corpus, storage)


def extract_passages(name: str, page: str, query: str, settings: Settings) -> list[str]:
    """Return the extract of a model about a query from a page of a corpus, followed by its quotes.

    Raises:
        InputError: there is no such corpus or page, or the endpoint rejects key or model.
        Transient: the endpoint failed.
    """
    storage = settings.storage
    with CallLedger(storage.store_dir / LEDGER_FOLDER, COMMAND) as ledger, ExplorerPool(settings) as pool:
        corpus = open_named_corpus(name, storage)
        pages = ExtractedPages(corpus=corpus, models=pool.make_models(ledger), meter=UsageMeter())
        opened = corpus.find_page(page)
        return pages.find_passages(opened, query, 1) if opened is not None else []


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """Return a corpus as commands print it."""
    return {
        "id": corpus.id,
        "name": corpus.name,
        "source": corpus.source,
        "language": corpus.language,
        "pages": corpus.n_pages,
        "left_out": corpus.n_left_out,
        "pages_sha256": corpus.pages_sha256,
        "index_sha256": corpus.index_sha256,
        "licenses": {count.license: count.pages for count in corpus.licenses},
    }
