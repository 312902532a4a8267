"""Values: what the tests compare with, exactly, and what neither statement nor old code shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from taskdb.verdicts import Finding, Place
from verifiers.judge.case import Asked, Case

LONG = 12
"""Characters of a string that nobody guesses."""
DIGITS = 5
"""Digits of a number that nobody guesses."""
MOST = 5
"""So many are told of one task."""
_ASSERTS = re.compile(
    r"assert\w*|expect\w*|\w*_eq|\w*_ne|should\w*|to[A-Z]\w*|raises|throws?|warns|match\w*|contain\w*|equal\w*|verify\w*"
    r"|require|check\w*|EXPECT_\w+|ASSERT_\w+|is|same|ok|fnmatch_lines\w*",
    re.IGNORECASE,
)


def value_not_stated(case: Case) -> Iterator[Finding]:
    """The tests compare with a long text or number that is told nowhere."""
    untold = [one for one in asserted(case.asked) if _is_long(one) and not _shown(one, case)]
    values = dict.fromkeys(one.token.text for one in untold)
    for value in case.mentions(list(values)):
        del values[value]
    for value in list(values)[:MOST]:
        detail = "the tests compare with this value; the statement does not hold it"
        yield Finding(rule="value-not-stated", quote=value, detail=detail, place=Place.TESTS)


def asserted(asked: Sequence[Asked]) -> Iterator[Asked]:
    """Literals inside of assertions: in the brackets of a call that asserts, or on the line of an `assert`."""
    open_calls: list[bool] = []
    line, on_line = -1, False
    for at, one in enumerate(asked):
        token = one.token
        before = asked[at - 1].token if at else None
        if token.line != line and not any(open_calls):
            line, on_line = token.line, token.sort == "name" and token.text.startswith("assert")
        if token.sort == "mark" and token.text in "([{":
            calls = before is not None and before.sort == "name" and bool(_ASSERTS.fullmatch(before.text))
            open_calls.append(calls or (bool(open_calls) and open_calls[-1]))
        elif token.sort == "mark" and token.text in ")]}" and open_calls:
            open_calls.pop()
        elif token.sort in {"string", "number"} and (on_line or any(open_calls)):
            yield one


def _is_long(one: Asked) -> bool:
    text = one.token.text.strip()
    if one.token.sort == "number":
        return sum(sign.isdigit() for sign in text) >= DIGITS
    return len(text) >= LONG and any(sign.isalpha() for sign in text)


def _shown(one: Asked, case: Case) -> bool:
    text = one.token.text.strip()
    return text in case.statement or text in case.shown or one.token.value.strip() in case.statement
