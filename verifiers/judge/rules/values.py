"""Values that the tests compare with, in neither the statement nor the old code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taskdb.records.verdicts import Finding, QuoteSource
from verifiers.judge.case import AddedToken, JudgeCase

MIN_STRING_LENGTH = 12
"""Minimum length in characters of a string that cannot be guessed."""
MIN_DIGITS = 5
"""Minimum number of digits of a number that cannot be guessed."""
MAX_FINDINGS = 5
"""Maximum number of findings per task."""
_ASSERTS = re.compile(
    r"assert\w*|expect\w*|\w*_eq|\w*_ne|should\w*|to[A-Z]\w*|raises|throws?|warns|match\w*|contain\w*|equal\w*|verify\w*"
    r"|require|check\w*|EXPECT_\w+|ASSERT_\w+|is|same|ok|fnmatch_lines\w*",
    re.IGNORECASE,
)


def find_unstated_values(case: JudgeCase) -> Iterator[Finding]:
    """Find long texts or numbers that the tests compare with and that are not stated."""
    unstated = [
        added
        for added in find_asserted_literals(case.test_tokens)
        if _is_unguessable(added) and not _is_stated(added, case)
    ]
    values = dict.fromkeys(added.token.text for added in unstated)
    for value in case.find_in_base_tree(list(values)):
        del values[value]
    for value in list(values)[:MAX_FINDINGS]:
        detail = "the tests compare with this value; the statement does not contain it"
        yield Finding(rule="value-not-stated", quote=value, detail=detail, quote_source=QuoteSource.TESTS)


def find_asserted_literals(test_tokens: Sequence[AddedToken]) -> Iterator[AddedToken]:
    """Yield literals inside assertions: arguments of an asserting call, or on the line of an `assert`."""
    open_calls: list[bool] = []
    line, on_line = -1, False
    for at, added in enumerate(test_tokens):
        token = added.token
        before = test_tokens[at - 1].token if at else None
        if token.line != line and not any(open_calls):
            line, on_line = token.line, token.category == "name" and token.text.startswith("assert")
        if token.category == "mark" and token.text in "([{":
            calls = before is not None and before.category == "name" and bool(_ASSERTS.fullmatch(before.text))
            open_calls.append(calls or (bool(open_calls) and open_calls[-1]))
        elif token.category == "mark" and token.text in ")]}" and open_calls:
            open_calls.pop()
        elif token.category in {"string", "number"} and (on_line or any(open_calls)):
            yield added


def _is_unguessable(added: AddedToken) -> bool:
    text = added.token.text.strip()
    if added.token.category == "number":
        return sum(sign.isdigit() for sign in text) >= MIN_DIGITS
    return len(text) >= MIN_STRING_LENGTH and any(sign.isalpha() for sign in text)


def _is_stated(added: AddedToken, case: JudgeCase) -> bool:
    text = added.token.text.strip()
    return text in case.statement or text in case.old_text or added.token.value.strip() in case.statement
