"""Texts made comparable: words in small letters, runs of words, names taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable

Runs = set[tuple[str, ...]]
RUN = 3
"""Words in a row that two texts must share to share a message."""
HOLE = "\0"
"""Stands for what a message is filled with; no run goes over it."""

_FILLED = re.compile(r"%(?:\(\w*\))?[-+ #0]*\d*(?:\.\d+)?[sdrifxXeEgGcuvqTp]|\$?\{[^{}]*\}|#\{[^{}]*\}|\{\}|<[%=].*?%>")
_REGEX = re.compile(r"\\[dwsbSDWAZ][+*?]?|\.[*+]\??|\[[^\]]*\][+*?]?|\(\?[^)]*\)")
_WORD = re.compile(r"\0|\w+")
_PLAIN_GAP = re.compile(r"[\s,.:;'\"()`-]*")
"""What stands between words of a sentence; anything else is markup or program text."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


def words_of(text: str) -> list[str]:
    """Letters, digits and underscores in a row, in small letters."""
    return _WORD.findall(text.lower())


def message_words(text: str) -> list[str]:
    """The same of a message or of a pattern that one must match.

    What it is filled with is a HOLE, and so is what stands between words that are no sentence.
    """
    bare = re.sub(r"\\(?=[^\w\s])", "", _REGEX.sub(f" {HOLE} ", _FILLED.sub(f" {HOLE} ", text))).lower()
    found: list[str] = []
    end = 0
    for word in _WORD.finditer(bare):
        if found and not _PLAIN_GAP.fullmatch(bare, end, word.start()):
            found.append(HOLE)
        found.append(word[0])
        end = word.end()
    return found


def runs(words: list[str], length: int = RUN) -> Runs:
    """All runs of so many words."""
    every = (tuple(words[at : at + length]) for at in range(len(words) - length + 1))
    return {run for run in every if HOLE not in run}


def parts(name: str) -> list[str]:
    """`snake_case`, `camelCase` and `--dashed-words` as words in small letters."""
    return [part.lower() for part in _PART.findall(name)]


def says(told: str, name: str) -> bool:
    """Whether a text that was joined by `joined` has the parts of a name side by side."""
    wanted = " ".join(parts(name))
    return bool(wanted) and f" {wanted} " in told


def joined(texts: Iterable[str]) -> str:
    """All words of texts, names taken apart, with blanks between and around them."""
    return f" {' '.join(part for text in texts for part in parts(text))} "
