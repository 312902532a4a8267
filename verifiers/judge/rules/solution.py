"""The solution in the statement: lines of the patch, links and numbers that lead to it, a patch of somebody's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taskdb.verdicts import Finding, Place
from verifiers.judge.case import Case
from verifiers.statement import GOLD_LINE, leaks

_DIFF = re.compile(r"(?m)^(?:diff --git a/.*|```(?:diff|patch)\b.*|--- a/.*|@@ -\d+,\d+ \+\d+,\d+ @@.*)$")
_SHA = re.compile(r"\b[0-9a-f]{7,40}\b")
_SAYS_LITTLE = re.compile(r"(?:from|import|use|using|#include|package|def|class|func|fn|function)\b")
"""Imports and heads of definitions: an interface, no solution."""


def solution_in_statement(case: Case) -> Iterator[Finding]:
    """Lines that the gold patch adds, or a link to a change of the repository."""
    for quote, what in leaks(case.statement, case.gold.encode(errors="replace"), case.repo, frozenset()):
        if what != GOLD_LINE:
            yield Finding(rule="solution-link", quote=quote, detail=what, place=Place.STATEMENT)
        elif not _SAYS_LITTLE.match(quote) and quote.strip() not in case.shown and not case.mentions([quote]):
            said = _verbatim(quote, case.statement)
            yield Finding(rule="solution-line", quote=said, detail=what, place=Place.STATEMENT)


def change_is_named(case: Case) -> Iterator[Finding]:
    """The number or the commit of the very change."""
    if case.number is not None and (found := re.search(rf"(?<![\w/])#{case.number}\b", case.statement)):
        detail = "the number of the change that holds the solution"
        yield Finding(rule="solution-number", quote=found[0], detail=detail, place=Place.STATEMENT)
    for sha in dict.fromkeys(_SHA.findall(case.statement)):
        if case.merge_commit and case.merge_commit.startswith(sha):
            detail = "the commit that holds the solution"
            yield Finding(rule="solution-commit", quote=sha, detail=detail, place=Place.STATEMENT)


def brings_a_patch(case: Case) -> Iterator[Finding]:
    """Somebody's own attempt stands in the statement, as a diff."""
    if found := _DIFF.search(case.statement):
        detail = "the statement brings a patch, right or wrong"
        yield Finding(rule="statement-patch", quote=found[0], detail=detail, place=Place.STATEMENT)


def _verbatim(line: str, statement: str) -> str:
    """The line as the statement spells its blanks."""
    found = re.search(r"\s+".join(re.escape(word) for word in line.split()), statement)
    return found[0] if found else line
