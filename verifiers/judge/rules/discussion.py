"""What people said around the change, in hints that know the solution already."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taskdb.verdicts import Finding, Place
from verifiers.judge.case import Case

_FIXED = r"(?:fixed|solved|resolved|implemented|addressed)\s+(?:in|by|via|with)\s+"
_KNOWS = re.compile(
    _FIXED + r"(?:#\d+|[0-9a-f]{7,40}\b|\S*/pull/\d+|(?:PR|pull request|commit)\b[^.\n]{0,40})"
    r"|(?:opened|submitted|created|made|sent)\s+(?:a|the|my)\s+(?:PR|pull request|patch)\b[^.\n]{0,60}",
    re.IGNORECASE,
)
_OF_THE_CHANGE = r"(?<![\w/])#{number}\b|https?://\S+/(?:pull|merge_requests)/{number}\b"


def hints_after_the_fix(case: Case) -> Iterator[Finding]:
    """The hints speak of a fix that is there, or lead to it."""
    found = _KNOWS.search(case.hints)
    if case.number is not None:
        found = re.search(_OF_THE_CHANGE.format(number=case.number), case.hints) or found
    if found:
        detail = "the hints know of a fix already"
        yield Finding(rule="hints-after-fix", quote=found[0], detail=detail, place=Place.HINTS)
