"""Checks that an addition must pass. `CHECKS` is the complete policy; no model takes part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from core.quotes import normalize_whitespace
from taskdb.records.verdicts import Finding, Interface, append_addition
from verifiers.judge.case import JudgeCase
from verifiers.judge.rules import apply_rules
from verifiers.statement import GOLD_LINE, find_leaks

COMPLETABLE_RULES = frozenset({"message-not-stated", "name-not-stated"})
"""Findings that an addition has to resolve. Values are not included: an expected value may follow from the statement,
so values are added only if models report them as missing, or the gold patch writes them literally. An empty statement
is not completed."""
FindingSource = Callable[[str], Sequence[Finding]]
"""Returns the facts that the rules find missing in a statement."""
MIN_LENGTH, MAX_LENGTH = 20, 2000
"""Allowed length of an addition in characters."""
MIN_REPEATED_LINE = 30
"""Minimum length in characters of a statement's line whose repetition is rejected."""
MIN_TEST_LINE = 20
"""Minimum length in characters of a test line whose repetition is rejected."""
MAX_REPORTED_FINDINGS = 5
"""Maximum number of findings reported to the model."""
_STRING = re.compile(r"([\"'`]).*?\1")
_IMPORT = re.compile(r"(from|import|use|using|require|#include|const\s.*\brequire\b|export)\b")
_CODE = re.compile(r"[=(]")
_QUOTATION = " \t\"'`,;"


@dataclass(frozen=True, kw_only=True)
class CompletionDraft:
    """An addition to be checked."""

    case: JudgeCase
    text: str
    findings: FindingSource
    interfaces: tuple[Interface, ...] = field(default=())
    """Interfaces that the addition must name."""
    demanded: tuple[str, ...] = field(default=())
    """Texts of messages that the tests expect as a whole; a line of theirs may be a line of a patch."""

    @property
    def completed_statement(self) -> str:
        """The statement with the addition."""
        return append_addition(self.case.statement, self.text)

    def is_demanded(self, line: str) -> bool:
        """Return whether a line of a patch is text of a demanded message, as in a string of several lines."""
        text = normalize_whitespace(line).strip(_QUOTATION)
        return any(text in normalize_whitespace(demanded) for demanded in self.demanded)

    def is_gold_text(self, line: str) -> bool:
        """Return whether a line of the gold patch is text of a string, no code."""
        text = normalize_whitespace(line).strip(_QUOTATION)
        strings = (token.value for _, token in self.case.gold_tokens if token.category == "string")
        return any(text in normalize_whitespace(string) for string in strings)


def find_completable(case: JudgeCase, statement: str) -> list[Finding]:
    """Return the findings that an addition to this statement still has to resolve."""
    return [finding for finding in apply_rules(replace(case, statement=statement)) if finding.rule in COMPLETABLE_RULES]


def check_length(draft: CompletionDraft) -> str:
    """Return an objection if the addition is too short or too long."""
    n = len(draft.text)
    return "" if MIN_LENGTH <= n <= MAX_LENGTH else f"it has {n} characters; {MIN_LENGTH} to {MAX_LENGTH} are allowed"


def check_no_repetition(draft: CompletionDraft) -> str:
    """Return an objection if the addition repeats the statement, which is kept verbatim."""
    text, statement = normalize_whitespace(draft.text), normalize_whitespace(draft.case.statement)
    lines = [
        line for line in map(normalize_whitespace, draft.case.statement.splitlines()) if len(line) >= MIN_REPEATED_LINE
    ]
    repeated = [line for line in lines if line in text]
    if len(repeated) > 1 or (len(statement) >= MIN_REPEATED_LINE and statement in text):
        return "it repeats the statement; the statement remains unchanged, write only the addition"
    return ""


def check_no_solution(draft: CompletionDraft) -> str:
    """Return an objection if the addition contains a line of the gold patch; required signatures are allowed."""
    signatures = [interface.signature for interface in draft.interfaces]
    case = draft.case
    for quote, what in find_leaks(draft.text, case.gold_patch.encode(errors="replace"), case.repo, frozenset()):
        bare = normalize_whitespace(quote).rstrip(" :{")
        known = (
            quote in case.old_text
            or case.find_in_base_tree([quote])
            or any(bare in signature for signature in signatures)
            or (what == GOLD_LINE and draft.is_demanded(quote) and draft.is_gold_text(quote))
        )
        if not known:
            return f"it contains {what}, `{quote}`: describe what is wanted, not the implementation"
    return ""


def check_no_tests(draft: CompletionDraft) -> str:
    """Return an objection if the addition contains a line of test code or the name of a test."""
    text = normalize_whitespace(draft.text)
    for line in _find_test_code(draft.case):
        if line in text and not draft.is_demanded(line):
            return f"it copies a line of the tests, `{line}`: describe what is wanted in words"
    for test in draft.case.fail_to_pass:
        file, _, name = test.partition("::")
        bare = re.split(r"::|\[", name)
        for word in (file, *(part for part in bare if part.lower().startswith("test") and len(part) > len("tests"))):
            if word and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", draft.text):
                return f"it mentions the hidden tests ({word}): readers of the statement have no access to them"
    return ""


def check_interface(draft: CompletionDraft) -> str:
    """Return an objection if an interface called by the tests is not named with all its parameters."""
    for interface in draft.interfaces:
        if missing := find_unnamed(interface, draft.completed_statement):
            return f"it does not name {', '.join(missing)}: the tests need `{interface.signature}` in {interface.path}"
    return ""


def check_findings(draft: CompletionDraft) -> str:
    """Return an objection if the rules still find something missing."""
    findings = draft.findings(draft.completed_statement)
    details = "; ".join(f"{finding.detail} (`{finding.quote}`)" for finding in findings[:MAX_REPORTED_FINDINGS])
    return f"it still does not contain what is missing: {details}" if findings else ""


CHECKS: tuple[Callable[[CompletionDraft], str], ...] = (
    check_length,
    check_no_repetition,
    check_no_solution,
    check_no_tests,
    check_interface,
    check_findings,
)
"""Applied in this order; the first objection is reported to the model."""


def find_objection(draft: CompletionDraft) -> str:
    """Return the first objection to an addition; empty if it is accepted."""
    return next((why for check in CHECKS if (why := check(draft))), "")


def _find_test_code(case: JudgeCase) -> Iterator[str]:
    """Yield added lines of the tests that run code; texts and imports may be quoted."""
    for file in case.test_files:
        for line in map(normalize_whitespace, file.get_lines("+")):
            if len(line) >= MIN_TEST_LINE and not _IMPORT.match(line) and _CODE.search(_STRING.sub("", line)):
                yield line


def find_unnamed(interface: Interface, statement: str) -> list[str]:
    """Return which of the names of an interface and its parameters a statement lacks."""
    return [name for name in (interface.name, *interface.parameters) if not _has_word(statement, name)]


def _has_word(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
