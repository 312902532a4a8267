"""The index of a corpus: BM25 as Lucene has it, by bm25s, in memory-mapped files.

Scores are kept in double precision, and of equal scores the earlier page is first, so that the order depends on the
pages and the query alone, whatever the machine.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import bm25s
import numpy as np

from core.errors import InputError
from explorers.search.tokens import Tokenizer

K1, B = 1.2, 0.75
"""Lucene's defaults."""
METHOD = "lucene"


def build_index(texts: Iterable[str], tokenizer: Tokenizer, folder: Path) -> None:
    """Write the index of texts into an empty folder.

    Args:
        texts: texts in the order of the pages; at least one has a token.
        tokenizer: tokenizer of the pages' language.
        folder: folder of the files.
    """
    vocabulary: dict[str, int] = {}
    numbers = [
        [vocabulary.setdefault(token, len(vocabulary)) for token in tokenizer.iterate_tokens(text)] for text in texts
    ]
    # Its messages are for those who look for faults in it.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    engine = bm25s.BM25(k1=K1, b=B, method=METHOD, dtype="float64", int_dtype="int32")
    engine.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
    engine.save(str(folder), show_progress=False)


def hash_files(folder: Path) -> str:
    """Return the sha256 (hex) of the names and contents of the files of a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        with path.open("rb") as content:
            total.update(f"{path.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


class Bm25Index:
    """An index that is open for reading, memory-mapped. Threads may share it.

    Raises:
        InputError: it is missing or damaged.
    """

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        try:
            self._engine = bm25s.BM25.load(str(folder), mmap=True, load_vocab=True)
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"the index {folder} cannot be read: {error}", advice="index the pages again") from error
        self.tokenizer = tokenizer
        self.n_pages = int(self._engine.scores["num_docs"])
        self._starts = self._engine.scores["indptr"]

    def count_pages_with(self, token: str) -> int:
        """Return the number of pages that have a token."""
        number = self._engine.vocab_dict.get(token)
        return 0 if number is None else int(self._starts[number + 1] - self._starts[number])

    def find_best(self, query: str, n: int) -> list[tuple[int, float]]:
        """Return position and score of the best pages, at most `n`; of equal scores the earlier page first."""
        scores = self._score(query)
        if scores is None or n < 1:
            return []
        positions = np.flatnonzero(scores > 0)
        if len(positions) > n:
            least = np.partition(scores[positions], len(positions) - n)[len(positions) - n]
            positions = positions[scores[positions] >= least]
        order = np.lexsort((positions, -scores[positions]))[:n]
        return [(int(positions[at]), float(scores[positions[at]])) for at in order]

    def find_rank(self, query: str, position: int) -> int | None:
        """Return the rank of a page for a query, from 1; None where it shares no token with it."""
        scores = self._score(query)
        if scores is None or scores[position] <= 0:
            return None
        own = scores[position]
        return int(np.count_nonzero(scores > own) + np.count_nonzero(scores[:position] == own)) + 1

    def _score(self, query: str) -> np.ndarray | None:
        """Return the score of each page; None where no token of the query is in the index."""
        known = self._engine.vocab_dict
        tokens: Sequence[int] = [known[token] for token in self.tokenizer.tokenize(query) if token in known]
        return self._engine.get_scores_from_ids(list(tokens)) if tokens else None
