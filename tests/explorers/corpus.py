"""Corpora of tests, open for reading."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from explorers.corpora.corpus import CorpusReader, write_corpus
from explorers.corpora.pages import Page, PageProblem
from explorers.search.tokens import Tokenizer


def open_pages(pages: Iterable[Page | PageProblem], folder: Path) -> CorpusReader:
    """Return a corpus of pages, written below a folder."""
    written = write_corpus(pages, folder, Tokenizer())
    return CorpusReader(
        folder, language=written.language, pages_sha256=written.pages_sha256, index_sha256=written.index_sha256
    )


def make_page(key: str, text: str, **fields: str) -> Page:
    """Return a page with its id as title and address."""
    return Page(**{"id": key, "url": key, "title": key, "text": text, **fields})
