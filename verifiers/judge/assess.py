"""One case as the rules and the calibrated model see it: findings, two probabilities, and whether to set it aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskdb.verdicts import Finding
from verifiers.judge.calibration import shipped
from verifiers.judge.case import Case
from verifiers.judge.rules import DECISIVE, findings_of
from verifiers.judge.signals import signals_of

UNDERSPECIFIED = "underspecified"
UNFAIR_TESTS = "unfair_tests"
SAYS_NOTHING = 0.95
"""Probability of being underspecified where the statement says nothing: set by reason, no labelled row is like it."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """What is known of a case without a language model. Probabilities are 0..1."""

    underspecified: float
    unfair_tests: float
    findings: tuple[Finding, ...]

    @property
    def set_aside(self) -> str | None:
        """The first finding that alone is enough to set the task aside."""
        return set_aside(self.findings)


def assess(case: Case) -> Assessment:
    """All that rules and model say of a case."""
    findings = findings_of(case)
    signals = signals_of(case, findings)
    vague = shipped().probability(UNDERSPECIFIED, signals)
    if any(finding.rule in _SAYS_NOTHING for finding in findings):
        vague = max(vague, SAYS_NOTHING)
    unfair = shipped().probability(UNFAIR_TESTS, signals)
    return Assessment(underspecified=vague, unfair_tests=unfair, findings=findings)


def set_aside(findings: Sequence[Finding]) -> str | None:
    """Rule of the first finding that alone is enough, or None."""
    return next((finding.rule for finding in findings if finding.rule in DECISIVE), None)


_SAYS_NOTHING = frozenset(rule for rule in DECISIVE if rule.startswith("statement-"))
