"""Hints that reveal the solution."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taskdb.records.verdicts import Finding, QuoteSource
from verifiers.judge.case import JudgeCase

_FIXED = r"(?:fixed|solved|resolved|implemented|addressed)\s+(?:in|by|via|with)\s+"
_MENTIONS_FIX = re.compile(
    _FIXED + r"(?:#\d+|[0-9a-f]{7,40}\b|\S*/pull/\d+|(?:PR|pull request|commit)\b[^.\n]{0,40})"
    r"|(?:opened|submitted|created|made|sent)\s+(?:a|the|my)\s+(?:PR|pull request|patch)\b[^.\n]{0,60}",
    re.IGNORECASE,
)
_CHANGE_REFERENCE = r"(?<![\w/])#{number}\b|https?://\S+/(?:pull|merge_requests)/{number}\b"


def find_hints_after_fix(case: JudgeCase) -> Iterator[Finding]:
    """Find hints that mention an existing fix or link to it."""
    match = _MENTIONS_FIX.search(case.hints)
    if case.number is not None:
        match = re.search(_CHANGE_REFERENCE.format(number=case.number), case.hints) or match
    if match:
        detail = "the hints mention an existing fix"
        yield Finding(rule="hints-after-fix", quote=match[0], detail=detail, quote_source=QuoteSource.HINTS)
