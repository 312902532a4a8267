"""Normalize texts for comparison: lower-case words, word n-grams, parts of names."""

from __future__ import annotations

import re
from collections.abc import Iterable

Ngrams = set[tuple[str, ...]]
NGRAM_LENGTH = 3
"""Number of consecutive words that two texts must share to share a message."""
PLACEHOLDER = "\0"
"""Replaces a formatted value in a message; no n-gram contains it."""

_FORMAT_FIELD = re.compile(
    r"%(?:\(\w*\))?[-+ #0]*\d*(?:\.\d+)?[sdrifxXeEgGcuvqTp]|\$?\{[^{}]*\}|#\{[^{}]*\}|\{\}|<[%=].*?%>"
)
_REGEX = re.compile(r"\\[dwsbSDWAZ][+*?]?|\.[*+]\??|\[[^\]]*\][+*?]?|\(\?[^)]*\)")
_WORD = re.compile(r"\0|\w+")
_PLAIN_GAP = re.compile(r"[\s,.:;'\"()`-]*")
"""Text between words of a sentence; anything else is markup or program text."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


def split_words(text: str) -> list[str]:
    """Return runs of letters, digits and underscores in lower case."""
    return _WORD.findall(text.lower())


def split_message(text: str) -> list[str]:
    """Return the words of a message, or of a pattern that matches a message.

    Formatted values and gaps that do not occur in sentences become PLACEHOLDER.
    """
    normalized = re.sub(
        r"\\(?=[^\w\s])", "", _REGEX.sub(f" {PLACEHOLDER} ", _FORMAT_FIELD.sub(f" {PLACEHOLDER} ", text))
    ).lower()
    parts: list[str] = []
    end = 0
    for word in _WORD.finditer(normalized):
        if parts and not _PLAIN_GAP.fullmatch(normalized, end, word.start()):
            parts.append(PLACEHOLDER)
        parts.append(word[0])
        end = word.end()
    return parts


def has_format_field(text: str) -> bool:
    """Return whether a message has a place for a formatted value."""
    return _FORMAT_FIELD.search(text) is not None


def make_ngrams(words: list[str], length: int = NGRAM_LENGTH) -> Ngrams:
    """Return all runs of `length` words."""
    every = (tuple(words[at : at + length]) for at in range(len(words) - length + 1))
    return {run for run in every if PLACEHOLDER not in run}


def split_name(name: str) -> list[str]:
    """Split `snake_case`, `camelCase` and `--dashed-words` into lower-case words."""
    return [part.lower() for part in _PART.findall(name)]


def has_name(text: str, name: str) -> bool:
    """Return whether a text normalized by `join_name_parts` contains the parts of a name side by side."""
    wanted = " ".join(split_name(name))
    return bool(wanted) and f" {wanted} " in text


def join_name_parts(texts: Iterable[str]) -> str:
    """Return all words of the texts, with names split, separated and enclosed by spaces."""
    return f" {' '.join(part for text in texts for part in split_name(text))} "
