"""Solutions in the statement: lines of the gold patch, links and numbers of the change, other patches."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taskdb.records.verdicts import Finding, QuoteSource
from verifiers.judge.case import JudgeCase
from verifiers.statement import GOLD_LINE, find_leaks

_DIFF = re.compile(r"(?m)^(?:diff --git a/.*|```(?:diff|patch)\b.*|--- a/.*|@@ -\d+,\d+ \+\d+,\d+ @@.*)$")
_SHA = re.compile(r"\b[0-9a-f]{7,40}\b")
_INTERFACE_LINE = re.compile(r"(?:from|import|use|using|#include|package|def|class|func|fn|function)\b")
"""Imports and heads of definitions, which are an interface and no solution."""


def find_solution(case: JudgeCase) -> Iterator[Finding]:
    """Find lines of the gold patch and links to a change of the repository."""
    for quote, description in find_leaks(
        case.statement, case.gold_patch.encode(errors="replace"), case.repo, frozenset()
    ):
        if description != GOLD_LINE:
            yield Finding(rule="solution-link", quote=quote, detail=description, quote_source=QuoteSource.STATEMENT)
        elif (
            not _INTERFACE_LINE.match(quote)
            and quote.strip() not in case.old_text
            and not case.find_in_base_tree([quote])
        ):
            verbatim = _find_verbatim(quote, case.statement)
            yield Finding(rule="solution-line", quote=verbatim, detail=description, quote_source=QuoteSource.STATEMENT)


def find_change_reference(case: JudgeCase) -> Iterator[Finding]:
    """Find the number or commit of the change itself."""
    if case.number is not None and (match := re.search(rf"(?<![\w/])#{case.number}\b", case.statement)):
        detail = "the number of the change that holds the solution"
        yield Finding(rule="solution-number", quote=match[0], detail=detail, quote_source=QuoteSource.STATEMENT)
    for sha in dict.fromkeys(_SHA.findall(case.statement)):
        if case.merge_commit and case.merge_commit.startswith(sha):
            detail = "the commit that holds the solution"
            yield Finding(rule="solution-commit", quote=sha, detail=detail, quote_source=QuoteSource.STATEMENT)


def find_patch(case: JudgeCase) -> Iterator[Finding]:
    """Find a diff in the statement."""
    if match := _DIFF.search(case.statement):
        detail = "the statement contains a patch, right or wrong"
        yield Finding(rule="statement-patch", quote=match[0], detail=detail, quote_source=QuoteSource.STATEMENT)


def _find_verbatim(line: str, statement: str) -> str:
    """Return the line with the whitespace used in the statement."""
    match = re.search(r"\s+".join(re.escape(word) for word in line.split()), statement)
    return match[0] if match else line
