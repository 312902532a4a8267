"""The form of a model's verdict. The docstrings are part of the schema it is given."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import BaseModel, ConfigDict

Level = Literal[0, 1, 2, 3]
WORST = 3


class _Form(BaseModel):
    """What endpoints that hold a model to a schema want of it; further keys of others are passed over."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )


class Stated(_Form):
    """Of one listed test: is what it asserts stated?"""

    number: int
    """The number of the test in the list."""
    asserts: str
    """What it asserts, in a short sentence."""
    stated: Literal["yes", "partly", "no"]
    quote: str
    """The words of the statement that say so, copied; empty for `no`."""


class Leak(_Form):
    """A place where the statement gives the solution away."""

    what: str
    """What it gives away, in a short sentence."""
    quote: str
    """The words of the statement, copied."""


class Missing(_Form):
    """Something a test insists on and the statement does not tell."""

    what: str
    """What is not told, in a short sentence."""
    test_line: str
    """The line of the test patch that insists on it, copied without its mark."""


class JudgeAnswer(_Form):
    """Whether the statement tells what the tests demand."""

    tests: list[Stated]
    """One entry for each listed test."""
    leaks: list[Leak]
    missing: list[Missing]
    underspecified: Level
    unfair_tests: Level


def fault(answer: JudgeAnswer, tests: int) -> str:
    """What is wrong with an answer that fits the form, before its quotes are looked up; nothing if nothing is.

    `tests`: how many were listed.
    """
    told = Counter(test.number for test in answer.tests)
    if wrong := [number for number in told if not 1 <= number <= tests]:
        return f"tests: there is no test {wrong[0]}, they are numbered from 1 to {tests}"
    if lacking := [number for number in range(1, tests + 1) if told[number] != 1]:
        return f"tests: each has one entry, but test {lacking[0]} has {told[lacking[0]]}"
    for test in answer.tests:
        if test.stated != "no" and not test.quote.strip():
            return (
                f"tests: {test.number} is said to be stated ({test.stated}), but no words of the statement are quoted"
            )
    if any(not leak.quote.strip() for leak in answer.leaks):
        return "leaks: each needs a quote of the statement"
    if any(not one.test_line.strip() for one in answer.missing):
        return "missing: each needs a test_line"
    return ""
