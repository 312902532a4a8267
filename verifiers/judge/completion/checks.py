"""What an addition must be before it is taken. Reading CHECKS is reading the policy; no model has a say in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from taskdb.verdicts import Finding, Interface, completed
from verifiers.judge.case import Case
from verifiers.statement import leaks, squeezed

Findings = Callable[[str], Sequence[Finding]]
"""What the rules miss in a statement."""
LEAST, MOST = 20, 2000
"""Characters of an addition."""
REPEATED = 30
"""Characters of a line of the statement that are seen when they are said again."""
TEST_LINE = 20
"""The same for lines of the tests."""
TOLD = 5
"""Findings that are told back."""
_STRING = re.compile(r"([\"'`]).*?\1")
_IMPORT = re.compile(r"(from|import|use|using|require|#include|const\s.*\brequire\b|export)\b")
_CODE = re.compile(r"[=(]")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An addition before it is taken."""

    case: Case
    text: str
    findings: Findings
    interfaces: tuple[Interface, ...] = field(default=())
    """What the tests need named."""

    @property
    def whole(self) -> str:
        """The statement as it would be."""
        return completed(self.case.statement, self.text)


def bounded(draft: Draft) -> str:
    """Nothing, or how far its length is off."""
    n = len(draft.text)
    return "" if LEAST <= n <= MOST else f"it has {n} characters; {LEAST} to {MOST} are allowed"


def adds(draft: Draft) -> str:
    """Nothing, or that it says again what the statement says: the original is kept to the letter."""
    said, statement = squeezed(draft.text), squeezed(draft.case.statement)
    lines = [line for line in map(squeezed, draft.case.statement.splitlines()) if len(line) >= REPEATED]
    again = [line for line in lines if line in said]
    if len(again) > 1 or (len(statement) >= REPEATED and statement in said):
        return "it writes the statement anew; the statement stays as it is, write only what is to be added to it"
    return ""


def keeps_the_solution(draft: Draft) -> str:
    """Nothing, or the line of the gold patch that it holds; the signatures that tests need are no solution."""
    signatures = [one.signature for one in draft.interfaces]
    case = draft.case
    for quote, what in leaks(draft.text, case.gold.encode(errors="replace"), case.repo, frozenset()):
        bare = squeezed(quote).rstrip(" :{")
        known = quote in case.shown or case.mentions([quote]) or any(bare in signature for signature in signatures)
        if not known:
            return f"it holds {what}, `{quote}`: tell what is wanted, not how it is done"
    return ""


def keeps_the_tests(draft: Draft) -> str:
    """Nothing, or the line of test code or the name of a test that it holds."""
    said = squeezed(draft.text)
    for line in _test_code(draft.case):
        if line in said:
            return f"it copies a line of the tests, `{line}`: tell what is wanted in words"
    for test in draft.case.fail_to_pass:
        file, _, name = test.partition("::")
        bare = re.split(r"::|\[", name)
        for word in (file, *(part for part in bare if part.lower().startswith("test") and len(part) > len("tests"))):
            if word and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", draft.text):
                return f"it speaks of the hidden tests ({word}): who reads the statement must not know them"
    return ""


def names_the_interface(draft: Draft) -> str:
    """Nothing, or what the tests call and the statement would still not name with its parameters."""
    for one in draft.interfaces:
        if lacking := [name for name in (one.name, *one.parameters) if not _has(draft.whole, name)]:
            return f"it does not name {', '.join(lacking)}: the tests need `{one.signature}` in {one.path}"
    return ""


def mends(draft: Draft) -> str:
    """Nothing, or what the rules still miss."""
    left = draft.findings(draft.whole)
    told = "; ".join(f"{one.detail} (`{one.quote}`)" for one in left[:TOLD])
    return f"it still does not tell what is missing: {told}" if left else ""


CHECKS: tuple[Callable[[Draft], str], ...] = (
    bounded,
    adds,
    keeps_the_solution,
    keeps_the_tests,
    names_the_interface,
    mends,
)
"""In the order in which they are asked; the first that objects is told to the model."""


def objection(draft: Draft) -> str:
    """Why an addition is not taken; empty when it is."""
    return next((why for check in CHECKS if (why := check(draft))), "")


def _test_code(case: Case) -> Iterator[str]:
    """Added lines of the tests that do something; texts alone and imports may be told."""
    for file in case.test_files:
        for line in map(squeezed, file.side("+")):
            if len(line) >= TEST_LINE and not _IMPORT.match(line) and _CODE.search(_STRING.sub("", line)):
                yield line


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
