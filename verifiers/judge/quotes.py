"""Whether a quote stands in a text: white space aside, every character of it."""

from __future__ import annotations

from verifiers.statement import squeezed

LEAST = 8
"""Characters of a quote, unless it is a whole line: fewer stand everywhere."""
MARKS = ("+", "-", " ")


def stands(quote: str, *texts: str) -> bool:
    """Whether the quote stands in one of the texts and says enough to be found there."""
    words = squeezed(quote)
    if not words:
        return False
    for text in texts:
        if words in squeezed(text) and (len(words) >= LEAST or words in map(squeezed, text.splitlines())):
            return True
    return False


def sides(patch: str) -> tuple[str, str]:
    """A patch as it is, and the files' text in it: lines without their marks, those taken away left out."""
    lines = [line[1:] for line in patch.splitlines() if line[:1] in ("+", " ") and not line.startswith("+++ ")]
    return patch, "\n".join(lines)
