"""Judging problem statements: findings of rules, opinions of models, and the verdict from both."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from taskdb.records.base import MEASURED, ArtifactHash, Part, Record, Seconds, TestId


class QuoteSource(StrEnum):
    """The text that a quote is from."""

    STATEMENT = "statement"
    HINTS = "hints"
    TESTS = "tests"
    """The added lines of the test patch."""
    PATCH = "patch"
    """The gold patch."""


class Finding(Part):
    """Fact that a rule found."""

    rule: str
    """Name of the rule, such as `message-not-stated`."""
    quote: str
    """The text it matched, verbatim; empty only where there is nothing to quote (an empty statement)."""
    detail: str
    """A line for people."""
    quote_source: QuoteSource
    """The text the quote is from."""


_UNSTATED = ("message-not-stated", "name-not-stated")
_GAPS = ("empty", "image-only", "link-only", "template-only", "image", "language", "no-behaviour")
EVIDENCE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "underspecified": frozenset({*_UNSTATED, *(f"statement-{gap}" for gap in _GAPS)}),
        "unfair_tests": frozenset({*_UNSTATED, "value-not-stated"}),
    }
)
"""Probability of a verdict -> rules whose findings are evidence of that fault.

A statement that gives the solution away is neither vague nor does it make tests unfair.
"""


class TestOpinion(Part):
    """A model's opinion of a FAIL_TO_PASS test: whether the statement contains the behaviour that it asserts."""

    __test__: ClassVar[bool] = False  # not a test class, whatever pytest thinks of the name

    test: TestId
    asserts: str
    """Behaviour that it asserts, in the model's words."""
    stated: Literal["yes", "partly", "no"]
    quote: str
    """The words of the statement that contain it, verbatim; empty for `no`."""


class QuotedClaim(Part):
    """A claim and the words it rests on."""

    claim: str
    quote: str
    """Verbatim from its source."""
    quote_source: QuoteSource


class ModelCall(Part):
    """A prompt to a model and the amount that it cost."""

    model: str
    prompt: str
    """Name and version of the prompt, such as `judge-1`."""
    tokens: int = 0
    """Prompt and completion tokens; 0 where a stored answer was reused."""
    cost: float = 0.0
    """Cost of these tokens, in the currency of the configured prices."""
    seconds: float = 0.0
    transcript: ArtifactHash | None = None
    """Prompt and answer."""


class Opinion(ModelCall):
    """An answer of a model."""

    sample: int
    """Number of the sample among answers to the same prompt, from 1."""
    tests: tuple[TestOpinion, ...] = ()
    leaks: tuple[QuotedClaim, ...] = ()
    """Where the statement reveals the solution."""
    missing: tuple[QuotedClaim, ...] = ()
    """Facts that the tests require (quoted from them) and the statement does not contain."""
    underspecified: float | None = None
    """0..1: how far the statement leaves open the work to do; null in an invalid opinion."""
    unfair_tests: float | None = None
    """0..1: how far the tests reject correct solutions; null in an invalid opinion."""
    invalid_reason: str = ""
    """Why the opinion is excluded, such as a quote that is in no source; empty for a valid opinion."""


class StatementScores(Part):
    """Probabilities of the rules and the calibrated model for a version of a statement, without opinions."""

    underspecified: float
    unfair_tests: float


class Completion(ModelCall):
    """An addition to a statement, and the attempts before it. Without a model, `model` and `prompt` are empty."""

    addition: str
    """Text appended to the original statement; empty when no proposed addition was accepted."""
    made_by: Literal["model", "rules"] = "model"
    """Who wrote the addition."""
    rejected: tuple[str, ...] = ()
    """Why earlier additions were rejected, then why no further addition was requested."""
    before: StatementScores | None = None
    """Scores of the original statement; null without an addition."""
    after: StatementScores | None = None
    """Scores of the statement with the addition; null where there is none."""


class Interface(Part):
    """A name that the tests use and the gold patch defines."""

    name: str
    signature: str
    """The definition as the patch has it, on a single line and without its body."""
    path: str
    parameters: tuple[str, ...] = ()
    """Names of the parameters."""

    def format_item(self) -> str:
        """Return the list item that states the interface in a statement."""
        return f"- `{self.path}`: `{self.signature}`"


class Verdict(Record):
    """Judgement whether the statement of a verified change is sufficient for its tests."""

    parent: str
    """Id of the Verification."""
    candidate: str
    name: str
    underspecified: float
    """Probability that people would find the statement too vague to decide whether a solution is correct."""
    unfair_tests: float
    """Probability that people would find that the tests reject correct solutions."""
    findings: tuple[Finding, ...]
    """In the order of the rules."""
    set_aside: str | None
    """Name of the first finding that alone excludes the kinds of tasks that depend on the statement, or null."""
    interfaces: tuple[Interface, ...] = ()
    """Names that the tests use and the gold patch defines, as far as the patches show them."""
    opinions: Annotated[tuple[Opinion, ...], MEASURED] = ()
    agreement: Annotated[float | None, MEASURED] = None
    """Share of pairs of opinions that agree, 0..1; null with fewer than two valid opinions."""
    alpha: Annotated[float | None, MEASURED] = None
    """Krippendorff's alpha of the same, nominal: 1 agreement, 0 chance level; null where chance is undefined."""
    completion: Annotated[Completion | None, MEASURED] = None
    """Completion of the statement by a model or by rules; null when nothing that can be added is missing."""
    tokens: Annotated[int, MEASURED] = 0
    cost: Annotated[float, MEASURED] = 0.0
    seconds: Seconds = 0.0

    @property
    def addition(self) -> str:
        """Text appended to the original statement; empty when there is none."""
        return self.completion.addition if self.completion else ""


def has_evidence(verdict: Mapping[str, Any], name: str) -> bool:
    """Return whether a verdict quotes evidence of a fault, and not only gives its probability.

    Evidence is a finding of EVIDENCE, or a valid opinion of a model in which something is missing or not fully stated.
    Without any, the probability is little more than the base rate of the rows on which the model was calibrated.

    Args:
        verdict: a Verdict as JSON data, or a result of `judge instances:FILE`.
        name: `underspecified` or `unfair_tests`.
    """
    if any(finding["rule"] in EVIDENCE[name] for finding in verdict["findings"]):
        return True
    opinions = [opinion for opinion in verdict.get("opinions", ()) if not opinion["invalid_reason"]]
    return any(opinion["missing"] or any(test["stated"] != "yes" for test in opinion["tests"]) for opinion in opinions)


def append_addition(statement: str, addition: str) -> str:
    """Return the statement, unchanged, followed by the addition."""
    return f"{statement}\n\n{addition}" if addition else statement
