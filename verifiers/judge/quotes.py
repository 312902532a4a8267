"""Check whether a quote occurs in a text verbatim, except for whitespace."""

from __future__ import annotations

from verifiers.statement import normalize_whitespace

MIN_QUOTE_LENGTH = 8
"""Minimum length of a quote in characters, unless it is a whole line: shorter ones occur everywhere."""
MARKS = ("+", "-", " ")


def is_quoted_from(quote: str, *texts: str) -> bool:
    """Return whether the quote occurs in one of the texts and is long enough, or a whole line."""
    words = normalize_whitespace(quote)
    if not words:
        return False
    for text in texts:
        if words in normalize_whitespace(text) and (
            len(words) >= MIN_QUOTE_LENGTH or words in map(normalize_whitespace, text.splitlines())
        ):
            return True
    return False


def extract_patch_texts(patch: str) -> tuple[str, str]:
    """Return a patch as written, and the text of its new side without marks."""
    lines = [line[1:] for line in patch.splitlines() if line[:1] in ("+", " ") and not line.startswith("+++ ")]
    return patch, "\n".join(lines)
