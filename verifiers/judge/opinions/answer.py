"""Schema of a model's answer. The docstrings are part of the schema in the prompt."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import BaseModel, ConfigDict

Level = Literal[0, 1, 2, 3]
MAX_LEVEL = 3


class _AnswerModel(BaseModel):
    """Base of the schema: strict for endpoints that enforce it, extra keys are ignored."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )


class PerTestAnswer(_AnswerModel):
    """Whether the statement specifies what one listed test asserts."""

    number: int
    """The number of the test in the list."""
    asserts: str
    """What it asserts, in a short sentence."""
    stated: Literal["yes", "partly", "no"]
    quote: str
    """The words of the statement that specify it, copied; empty for `no`."""


class LeakAnswer(_AnswerModel):
    """A place where the statement gives the solution away."""

    what: str
    """What it gives away, in a short sentence."""
    quote: str
    """The words of the statement, copied."""


class MissingAnswer(_AnswerModel):
    """Something that a test requires and the statement does not specify."""

    what: str
    """What is not specified, in a short sentence."""
    test_line: str
    """The line of the test patch that requires it, copied without its mark."""


class JudgeAnswer(_AnswerModel):
    """Whether the statement specifies what the tests require."""

    tests: list[PerTestAnswer]
    """One entry for each listed test."""
    leaks: list[LeakAnswer]
    missing: list[MissingAnswer]
    underspecified: Level
    unfair_tests: Level


def find_error(answer: JudgeAnswer, tests: int) -> str:
    """Return what is wrong with a valid answer before its quotes are checked; empty if nothing is.

    `tests`: number of listed tests.
    """
    counts = Counter(test.number for test in answer.tests)
    if wrong := [number for number in counts if not 1 <= number <= tests]:
        return f"tests: there is no test {wrong[0]}, they are numbered from 1 to {tests}"
    if lacking := [number for number in range(1, tests + 1) if counts[number] != 1]:
        return f"tests: each has one entry, but test {lacking[0]} has {counts[lacking[0]]}"
    for test in answer.tests:
        if test.stated != "no" and not test.quote.strip():
            return (
                f"tests: {test.number} is said to be stated ({test.stated}), but no words of the statement are quoted"
            )
    if any(not leak.quote.strip() for leak in answer.leaks):
        return "leaks: each needs a quote of the statement"
    if any(not item.test_line.strip() for item in answer.missing):
        return "missing: each needs a test_line"
    return ""
