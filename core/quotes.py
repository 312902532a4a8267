"""Check whether a quote occurs in a text verbatim, except for whitespace."""

from __future__ import annotations

MIN_QUOTE_LENGTH = 8
"""Minimum length of a quote in characters, unless it is a whole line: shorter quotes occur everywhere."""


def normalize_whitespace(text: str) -> str:
    """Return the text with each run of whitespace replaced by a single space."""
    return " ".join(text.split())


def is_quoted_from(quote: str, *texts: str) -> bool:
    """Return whether the quote occurs in any of the texts and is long enough, or a whole line."""
    words = normalize_whitespace(quote)
    if not words:
        return False
    for text in texts:
        if words in normalize_whitespace(text) and (
            len(words) >= MIN_QUOTE_LENGTH or words in map(normalize_whitespace, text.splitlines())
        ):
            return True
    return False
