"""What is wrong, in the words of those who said so: a sentence of theirs, cut, never one of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 300
"""Characters of a claim."""
FEWEST = 2
"""Words of two letters or more that a claim has, numbers and references aside."""
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(-->|\Z)", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_HEAD = re.compile(r"^\s*(#{1,6}|[-*+]|\d+[.)]|>)\s+")
_REFERENCE = re.compile(
    r"\s*\(?(\b(fix(es|ed)?|close[sd]?|resolve[sd]?|refs?|see|gh|issue)\b:?\s*)?(?<![\w&])(#|GH-)\d+\)?", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])")
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W\d_]{2,}")


def claim_of(text: str, sentences: int = 1) -> str:
    """The first line of a text that says something, or its first sentences; empty when none does.

    Args:
        text: markdown, such as a problem statement whose first line is the title.
        sentences: at most so many of that line.
    """
    for line in _prose(text):
        told = " ".join(_SENTENCE.split(line)[:sentences])
        if len(_WORD.findall(told)) >= FEWEST:
            return told if len(told) <= LONGEST else told[:LONGEST].rsplit(" ", 1)[0] + " ..."
    return ""


def _prose(text: str) -> Iterator[str]:
    for pattern in (_FENCE, _COMMENT, _IMAGE):
        text = pattern.sub(" ", text)
    for line in _LINK.sub(r"\1", text).splitlines():
        if told := " ".join(_REFERENCE.sub(" ", _HEAD.sub("", line)).split()).strip(" -:,"):
            yield told
