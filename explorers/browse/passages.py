"""Passages of a page: paragraphs and, where these are long, groups of sentences; those that fit a query best."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explorers.search.tokens import Tokenizer

PASSAGE_CHARS = 600
"""Characters after which a passage is divided at the end of a sentence."""
SNIPPET_CHARS = 240
_PARAGRAPH = re.compile(r"(?:[^\n]|\n(?!\s*\n))+")
_SENTENCE = re.compile(r".+?(?:[.!?]+[\"')\]]*(?=\s)|[\u3002\uff01\uff1f]|$)", re.DOTALL)
CountPages = Callable[[str], int]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """Verbatim text of a page from a character on."""

    start: int
    text: str


def split_passages(text: str, longest: int = PASSAGE_CHARS) -> list[Passage]:
    """Return the passages of a text, in their order; together they have all of it but the blanks between them."""
    passages = []
    for paragraph in _PARAGRAPH.finditer(text):
        start = paragraph.start()
        end = start
        for sentence in _SENTENCE.finditer(paragraph[0]):
            sentence_end = paragraph.start() + sentence.end()
            if end > start and sentence_end - start > longest:
                passages.append(_cut(text, start, end))
                start = end
            end = sentence_end
        passages.append(_cut(text, start, paragraph.end()))
    return [passage for passage in passages if passage.text]


def _cut(text: str, start: int, end: int) -> Passage:
    part = text[start:end]
    return Passage(start=start + len(part) - len(part.lstrip()), text=part.strip())


@dataclass(frozen=True, kw_only=True)
class PassageRanking:
    """Ranks the passages of a page for a query: BM25 with the frequencies of the whole corpus.

    `count_pages` returns how many of the `n_pages` pages have a token.
    """

    tokenizer: Tokenizer
    count_pages: CountPages
    n_pages: int

    def find_best(self, passages: Sequence[Passage], query: str, n: int) -> list[Passage]:
        """Return the passages that fit best, at most `n`, in the order of the page; its first without a match."""
        scores = self._score(passages, set(self.tokenizer.tokenize(query)))
        order = sorted(range(len(passages)), key=lambda at: (-scores[at], at))
        fitting = [at for at in order if scores[at] > 0] or list(range(len(passages)))
        return [passages[at] for at in sorted(fitting[:n])]

    def _score(self, passages: Sequence[Passage], query: set[str]) -> list[float]:
        counts = [Counter(self.tokenizer.iterate_tokens(passage.text)) for passage in passages]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / max(len(lengths), 1) or 1.0
        weights = {token: self._weigh(token) for token in sorted(query)}
        return [
            sum(
                weight * count[token] / (count[token] + 1.2 * (0.25 + 0.75 * length / mean))
                for token, weight in weights.items()
                if token in count
            )
            for count, length in zip(counts, lengths, strict=True)
        ]

    def _weigh(self, token: str) -> float:
        pages = self.count_pages(token)
        return math.log(1 + (self.n_pages - pages + 0.5) / (pages + 0.5))


def make_snippet(title: str, text: str, ranking: PassageRanking, query: str) -> str:
    """Return the short passage of a page that fits a query best, as a line; its title alone is shown apart."""
    passages = split_passages(text, SNIPPET_CHARS)
    best = ranking.find_best([passage for passage in passages if passage.text != title] or passages, query, 1)
    snippet = " ".join(best[0].text.split()) if best else ""
    return snippet if len(snippet) <= SNIPPET_CHARS else snippet[: SNIPPET_CHARS - 1] + "…"
