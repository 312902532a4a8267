"""Tokens of texts and queries: stems of words by Snowball, pairs of neighbouring characters of Chinese and the like.

Case, width and traditional forms of Chinese characters make no difference. As in Lucene's analyser of CJK, a run of
such characters becomes its bigrams, and a lone character stands for itself; words of two characters are found by it.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache

import Stemmer
from opencc import OpenCC

from core.errors import UsageError

ENGLISH = "english"
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of scripts that are written without spaces: kana, Chinese characters, hangul."""
HAS_CJK = re.compile(f"[{CJK}]")
_RUN = re.compile(f"(?P<cjk>[{CJK}]+)|(?P<word>[^\\W_{CJK}]+)")
MAX_WORD_LENGTH = 64
"""Characters of a word that count: longer ones are data."""
_local = threading.local()


@cache
def _open_converter() -> OpenCC:
    return OpenCC("t2s")


def normalize_text(text: str) -> str:
    """Return a text in a uniform width, case and (simplified) form of Chinese characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _open_converter().convert(folded) if HAS_CJK.search(folded) else folded


def check_language(language: str) -> str:
    """Return the name of a stemmer.

    Raises:
        UsageError: Snowball has none of this name.
    """
    if language not in Stemmer.algorithms():
        raise UsageError(f"--language: {language} is unknown", advice=f"of {', '.join(Stemmer.algorithms())}")
    return language


class Tokenizer:
    """Tokens of texts in a language. Threads may share it."""

    def __init__(self, language: str = ENGLISH) -> None:
        self.language = language
        self._stems: dict[str, str] = {}

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text, in their order."""
        return list(self.iterate_tokens(text))

    def iterate_tokens(self, text: str) -> Iterator[str]:
        """Yield the tokens of a text."""
        for match in _RUN.finditer(normalize_text(text)):
            if run := match["cjk"]:
                yield from (run[at : at + 2] for at in range(max(len(run) - 1, 1)))
            else:
                word = match["word"][:MAX_WORD_LENGTH]
                stem = self._stems.get(word)
                yield self._stem(word) if stem is None else stem

    def _stem(self, word: str) -> str:
        # A stemmer of Snowball has a buffer that two threads may not share.
        stemmers: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
        if self.language not in stemmers:
            stemmers[self.language] = Stemmer.Stemmer(self.language, 0)
        stem = self._stems[word] = str(stemmers[self.language].stemWord(word))
        return stem
