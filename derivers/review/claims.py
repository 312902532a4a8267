"""Claims of defects: a sentence quoted from a problem statement or a comment, shortened but never invented."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_CLAIM_CHARS = 300
"""Characters of a claim."""
MIN_CLAIM_WORDS = 2
"""Words with at least two letters in a claim, without numbers and references."""
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


def extract_claim(text: str, sentences: int = 1) -> str:
    """Return the first sentences of the first line with enough words; empty where no line has enough.

    Args:
        text: Markdown, such as a problem statement whose first line is the title.
        sentences: maximum number of sentences of that line.
    """
    for line in _iterate_prose(text):
        claim = " ".join(_SENTENCE.split(line)[:sentences])
        if len(_WORD.findall(claim)) >= MIN_CLAIM_WORDS:
            return claim if len(claim) <= MAX_CLAIM_CHARS else claim[:MAX_CLAIM_CHARS].rsplit(" ", 1)[0] + " ..."
    return ""


def _iterate_prose(text: str) -> Iterator[str]:
    for pattern in (_FENCE, _COMMENT, _IMAGE):
        text = pattern.sub(" ", text)
    for line in _LINK.sub(r"\1", text).splitlines():
        if claim := " ".join(_REFERENCE.sub(" ", _HEAD.sub("", line)).split()).strip(" -:,"):
            yield claim
