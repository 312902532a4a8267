"""Whether a statement is enough for the tests: findings of rules, opinions of models, and the verdict on both."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from taskdb.base import MEASURED, ArtifactHash, Part, Record, Seconds, TestId


class Place(StrEnum):
    """Where a quote is from."""

    STATEMENT = "statement"
    HINTS = "hints"
    TESTS = "tests"
    """The added lines of the test patch."""
    PATCH = "patch"
    """The gold patch."""


class Finding(Part):
    """What one rule saw."""

    rule: str
    """Name of the rule, such as `message-not-stated`."""
    quote: str
    """What it saw, verbatim; empty only where there is nothing to quote (an empty statement)."""
    detail: str
    """One line for people."""
    place: Place
    """Where the quote stands."""


class StatedTest(Part):
    """What a model says of one FAIL_TO_PASS test: is what it asserts stated?"""

    test: TestId
    asserts: str
    """What it asserts, in the model's words."""
    stated: Literal["yes", "partly", "no"]
    quote: str
    """The words of the statement that say so, verbatim; empty for `no`."""


class Quoted(Part):
    """A claim and the words it rests on."""

    claim: str
    quote: str
    """Verbatim from the place."""
    place: Place


class Asked(Part):
    """What a model was asked for, and what that cost."""

    model: str
    prompt: str
    """Name and version of the prompt, such as `judge-1`."""
    tokens: int = 0
    """Read and written by the model for it; 0 where the answer was kept from an earlier time."""
    cost: float = 0.0
    """What these tokens cost."""
    seconds: float = 0.0
    transcript: ArtifactHash | None = None
    """What was asked and answered."""


class Opinion(Asked):
    """One answer of one model."""

    sample: int
    """1 for the first of several asked the same."""
    tests: tuple[StatedTest, ...] = ()
    leaks: tuple[Quoted, ...] = ()
    """Where the statement gives the solution away."""
    missing: tuple[Quoted, ...] = ()
    """What the tests ask for (quoted from them) and the statement does not say."""
    underspecified: float | None = None
    """0..1: how far the statement leaves open what is to be done; null in a void opinion."""
    unfair_tests: float | None = None
    """0..1: how far the tests turn correct solutions down; null in a void opinion."""
    void: str = ""
    """Why it does not count, such as a quote that stands nowhere; empty when it counts."""


class Completion(Asked):
    """What a model wrote to complete a statement, and how it came about."""

    addition: str
    """What is told after the original text; empty when nothing that was written could be taken."""
    refused: tuple[str, ...] = ()
    """Why earlier additions were turned down, or why no more were asked for, in that order."""


class Interface(Part):
    """Something that tests use by name and the gold patch brings."""

    name: str
    signature: str
    """A text of the patch, on one line and without its body."""
    path: str
    parameters: tuple[str, ...] = ()
    """Names a caller may have to know."""


class Verdict(Record):
    """Whether the statement of a verified change is enough for what its tests demand."""

    parent: str
    """Id of the Verification."""
    candidate: str
    name: str
    underspecified: float
    """Probability that people would find the statement too vague for a solution to be told right from wrong."""
    unfair_tests: float
    """Probability that people would find the tests to turn correct solutions down."""
    findings: tuple[Finding, ...]
    """In the order of the rules."""
    set_aside: str | None
    """Name of the first finding that alone is enough to set aside the kinds that live by their statement, or null."""
    interfaces: tuple[Interface, ...] = ()
    """What the tests use and the gold patch defines, as far as it can be read off the patches."""
    opinions: Annotated[tuple[Opinion, ...], MEASURED] = ()
    agreement: Annotated[float | None, MEASURED] = None
    """Share of pairs of opinions that agree, 0..1; null with fewer than two that count."""
    alpha: Annotated[float | None, MEASURED] = None
    """Krippendorff's alpha of the same, nominal: 1 agreement, 0 as by chance; null where chance cannot be told."""
    completion: Annotated[Completion | None, MEASURED] = None
    """What a model wrote to complete the statement; null when nobody was asked or nothing is missing."""
    tokens: Annotated[int, MEASURED] = 0
    cost: Annotated[float, MEASURED] = 0.0
    seconds: Seconds = 0.0

    @property
    def addition(self) -> str:
        """What is told after the original statement; empty when there is nothing."""
        return self.completion.addition if self.completion else ""


def completed(statement: str, addition: str) -> str:
    """The statement with an addition; the original stands before it, to the letter."""
    return f"{statement}\n\n{addition}" if addition else statement
