"""A corpus in the store: its pages under a hash, its index under another, and the reader of both.

`STORE/corpora/HASH/` has `pages.jsonl` (by id), `offsets.npy` (where each line begins), `index/`, and `corpus.json`
with the hashes of both. Opening compares them with the record's.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from core.errors import InputError, make_write_error
from explorers.browse.passages import PassageRanking, make_snippet, split_passages
from explorers.corpora.pages import Page, PageProblem
from explorers.search.index import Bm25Index, build_index, hash_files
from explorers.search.protocol import Hit
from explorers.search.tokens import Tokenizer

FOLDER = "corpora"
"""Folder of all corpora in the store."""
PAGES_NAME, OFFSETS_NAME, INDEX_NAME, MANIFEST_NAME = "pages.jsonl", "offsets.npy", "index", "corpus.json"
AGAIN = "index its pages again: mergemill explore corpus"


@dataclass(frozen=True, kw_only=True)
class WrittenCorpus:
    """A corpus that was written. `licenses`: licence -> number of pages; `problems`: files and rows without a page."""

    folder: Path
    language: str
    n_pages: int
    pages_sha256: str
    index_sha256: str
    licenses: Mapping[str, int]
    problems: tuple[PageProblem, ...]


def write_corpus(pages: Iterable[Page | PageProblem], store: Path, tokenizer: Tokenizer) -> WrittenCorpus:
    """Write a corpus to the store; the same pages in a language have the same folder.

    Raises:
        InputError: there is no page.
        InputError, Transient: the store cannot be written.
    """
    kept, problems = collect_pages(pages, tokenizer)
    if not kept:
        detail = f": {problems[0].format_line()}" if problems else ""
        raise InputError(f"there is no page{detail}", advice="name a folder or rows of pages with text")
    try:
        return _write(kept, tuple(problems), store / FOLDER, tokenizer)
    except OSError as error:
        raise make_write_error(f"cannot write to {store / FOLDER}", error, advice="free some space") from error


def collect_pages(pages: Iterable[Page | PageProblem], tokenizer: Tokenizer) -> tuple[list[Page], list[PageProblem]]:
    """Return the pages by id, and the problems; of several pages of an id the first is kept."""
    kept: dict[str, Page] = {}
    problems: list[PageProblem] = []
    for page in pages:
        if isinstance(page, PageProblem):
            problems.append(page)
        elif page.id in kept:
            problems.append(PageProblem(place=page.id, detail="a duplicate id: its first page is kept"))
        elif next(tokenizer.iterate_tokens(page.text), None) is None:
            problems.append(PageProblem(place=page.id, detail="a page without words"))
        else:
            kept[page.id] = page
    return [kept[key] for key in sorted(kept)], problems


def _write(pages: list[Page], problems: tuple[PageProblem, ...], root: Path, tokenizer: Tokenizer) -> WrittenCorpus:
    root.mkdir(parents=True, exist_ok=True)
    # Written beside its place and renamed: a kill leaves no half of a corpus under its name.
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
    try:
        lines = [page.format_line() for page in pages]
        (scratch / PAGES_NAME).write_bytes(b"".join(lines))
        np.save(scratch / OFFSETS_NAME, np.cumsum([0, *map(len, lines)], dtype=np.int64))
        (scratch / INDEX_NAME).mkdir()
        build_index((f"{page.title}\n{page.text}" for page in pages), tokenizer, scratch / INDEX_NAME)
        pages_sha256 = hashlib.sha256(b"".join(lines)).hexdigest()
        written = WrittenCorpus(
            folder=root / name_folder(pages_sha256, tokenizer.language),
            language=tokenizer.language,
            n_pages=len(pages),
            pages_sha256=pages_sha256,
            index_sha256=hash_files(scratch / INDEX_NAME),
            licenses=dict(sorted(Counter(page.license for page in pages).items())),
            problems=problems,
        )
        manifest = {"language": tokenizer.language, "pages": pages_sha256, "index": written.index_sha256}
        (scratch / MANIFEST_NAME).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(written.folder, ignore_errors=True)
        scratch.replace(written.folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return written


def name_folder(pages_sha256: str, language: str) -> str:
    """Return the name of the folder of a corpus."""
    return f"{pages_sha256[:24]}-{language}"


class CorpusReader:
    """A corpus that is open for reading: search, pages, passages. Threads may share it.

    Args:
        store: folder of the store.
        language: language of the corpus.
        pages_sha256: hash of its pages.
        index_sha256: hash of its index.

    Raises:
        InputError: it is not in the store, its pages have changed, or the index is that of other pages.
    """

    def __init__(self, store: Path, *, language: str, pages_sha256: str, index_sha256: str) -> None:
        folder = store / FOLDER / name_folder(pages_sha256, language)
        try:
            with (folder / PAGES_NAME).open("rb") as lines:
                self._lines = mmap.mmap(lines.fileno(), 0, access=mmap.ACCESS_READ)
            self._offsets = np.load(folder / OFFSETS_NAME, mmap_mode="r")
            is_indexed = hash_files(folder / INDEX_NAME) == index_sha256
        except (OSError, ValueError) as error:
            raise InputError(f"the corpus in {folder} cannot be read: {error}", advice=AGAIN) from error
        if hashlib.sha256(self._lines).hexdigest() != pages_sha256:
            raise InputError(f"the pages in {folder} have changed since they were indexed", advice=AGAIN)
        if not is_indexed:
            raise InputError(f"the index in {folder} is not that of the corpus", advice=AGAIN)
        self.tokenizer = Tokenizer(language)
        self.index = Bm25Index(folder / INDEX_NAME, self.tokenizer)
        if self.index.n_pages != len(self):
            raise InputError(f"the index in {folder} is that of other pages", advice=AGAIN)
        self.ranking = PassageRanking(
            tokenizer=self.tokenizer, count_pages=self.index.count_pages_with, n_pages=len(self)
        )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Iterator[Page]:
        return (self.get_at(position) for position in range(len(self)))

    @cached_property
    def _positions(self) -> dict[str, int]:
        """Id or address of a page -> its position; an id is stronger than an address."""
        by_url = {page.url: position for position, page in enumerate(self)}
        return by_url | {page.id: position for position, page in enumerate(self)}

    def get_at(self, position: int) -> Page:
        """Return the page at a position."""
        return Page.from_json(json.loads(self._lines[self._offsets[position] : self._offsets[position + 1]]))

    def find_position(self, page: str) -> int | None:
        """Return the position of a page by id or address; None where there is none."""
        return self._positions.get(page)

    def find_page(self, page: str) -> Page | None:
        """Return a page by id or address; None where there is none."""
        position = self.find_position(page)
        return None if position is None else self.get_at(position)

    def search(self, query: str, n: int) -> list[Hit]:
        """Return the best pages for a query; see `explorers.search.protocol.PageSearch`."""
        hits = []
        for position, score in self.index.find_best(query, n):
            page = self.get_at(position)
            snippet = make_snippet(page.title, page.text, self.ranking, query)
            hits.append(Hit(id=page.id, url=page.url, title=page.title, snippet=snippet, score=round(score, 6)))
        return hits

    def find_rank(self, query: str, page: str) -> int | None:
        """Return the rank of a page for a query, from 1; None where it shares no token with it, or there is no page."""
        position = self.find_position(page)
        return None if position is None else self.index.find_rank(query, position)

    def find_passages(self, page: Page, query: str, n: int) -> list[str]:
        """Return the passages of a page that fit a query best, verbatim, in its order."""
        return [passage.text for passage in self.ranking.find_best(split_passages(page.text), query, n)]
