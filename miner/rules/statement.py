"""Rule on the problem statement."""

from __future__ import annotations

import re

from core.settings.mining import MiningSettings
from miner.changes import Change
from taskdb.records import Shape

_BOILERPLATE: tuple[re.Pattern[str], ...] = (
    re.compile(r"<!--.*?(-->|\Z)", re.DOTALL),
    re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>", re.IGNORECASE),
    re.compile(r"^\s*[-*+] \[[ xX]\].*$", re.MULTILINE),  # check lists of a template
    re.compile(r"^\s*#{1,6}\s.*$|^\s*\*\*[^*\n]+\*\*:?\s*$", re.MULTILINE),
    re.compile(r"https?://\S+"),
    re.compile(r"</?[a-zA-Z][^>]*>"),
    re.compile(r"\b(fix|close|resolve)(s|d|es|ed)?:?\s+\S*#\d+", re.IGNORECASE),
)
"""Comments, headings and check lists of templates, images, addresses, tags, references: they carry no information."""
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,}")
"""Two letters or more; a character in scripts without spaces between words (Chinese, Japanese)."""


def has_statement(change: Change, mining: MiningSettings) -> str | None:
    """Pass when the problem statement has `min_statement_words` words, markup and template text not counted."""
    statement = change.problem_statement
    if change.pull_request.shape is Shape.RELEASE and not statement:
        return "the changelog has no entry for this version"
    n = count_statement_words(statement)
    if n >= mining.min_statement_words:
        return None
    return f"the problem statement has {n} words, {mining.min_statement_words} required: {statement[:60]!r}"


def count_statement_words(statement: str) -> int:
    """Count the words of a statement (Markdown) that are written for this change."""
    for pattern in _BOILERPLATE:
        statement = pattern.sub(" ", statement)
    return len(_WORD.findall(statement))
