"""The problem statement of a change, and the rule on it."""

from __future__ import annotations

import re

from mergemill.config import Settings
from miner.changes import Change
from miner.git import messages
from taskdb.records import Shape

_NOTHING_SAID: tuple[re.Pattern[str], ...] = (
    re.compile(r"<!--.*?(-->|\Z)", re.DOTALL),
    re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>", re.IGNORECASE),
    re.compile(r"^\s*[-*+] \[[ xX]\].*$", re.MULTILINE),  # check lists are the template's words
    re.compile(r"^\s*#{1,6}\s.*$|^\s*\*\*[^*\n]+\*\*:?\s*$", re.MULTILINE),
    re.compile(r"https?://\S+"),
    re.compile(r"</?[a-zA-Z][^>]*>"),
    re.compile(r"\b(fix|close|resolve)(s|d|es|ed)?:?\s+\S*#\d+", re.IGNORECASE),
)
"""Templates' comments, headings and check lists, images, addresses, tags, references: none of them says a thing."""
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,}")
"""Two letters and more; where words are not parted by spaces (Chinese, Japanese), a sign."""


def statement_of(change: Change) -> str:
    """The problem statement: the source's own, else title and text of the change."""
    request = change.pull_request
    if request.problem_statement or request.shape is Shape.RELEASE:
        return request.problem_statement.strip()
    title = "" if messages.merges_a_branch(request.title) else request.title
    return f"{title}\n\n{request.body}".strip()


def has_a_statement(change: Change, settings: Settings) -> str | None:
    """At least `min_statement_words` words say what it is about, markup and templates aside."""
    statement = statement_of(change)
    if change.pull_request.shape is Shape.RELEASE and not statement:
        return "the changelog has no entry for this version"
    n = words_said(statement)
    if n >= settings.min_statement_words:
        return None
    return f"{n} words say what it is about, {settings.min_statement_words} are asked for: {statement[:60]!r}"


def words_said(statement: str) -> int:
    """How many words of a statement (markdown) somebody wrote for this change."""
    for nothing in _NOTHING_SAID:
        statement = nothing.sub(" ", statement)
    return len(_WORD.findall(statement))
