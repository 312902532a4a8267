"""Assess a case without a language model: findings of the rules, and two probabilities from the calibrated model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taskdb.records.verdicts import Finding
from verifiers.judge.calibration import load_shipped_model
from verifiers.judge.case import JudgeCase
from verifiers.judge.rules import DECISIVE, apply_rules
from verifiers.judge.signals import compute_signals

UNDERSPECIFIED = "underspecified"
UNFAIR_TESTS = "unfair_tests"
EMPTY_STATEMENT_PROBABILITY = 0.95
"""Probability of being underspecified for an empty statement. It is set by hand: no labelled row is like it."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Assessment of a case without a language model. Probabilities are 0..1."""

    underspecified: float
    unfair_tests: float
    findings: tuple[Finding, ...]

    @property
    def set_aside(self) -> str | None:
        """Rule of the first finding that is sufficient to set the task aside, or None."""
        return find_decisive_rule(self.findings)


def assess(case: JudgeCase) -> Assessment:
    """Apply the rules and the calibrated model to a case."""
    findings = apply_rules(case)
    signals = compute_signals(case, findings)
    underspecified = load_shipped_model().predict(UNDERSPECIFIED, signals)
    if any(finding.rule in _EMPTY_STATEMENT_RULES for finding in findings):
        underspecified = max(underspecified, EMPTY_STATEMENT_PROBABILITY)
    unfair_tests = load_shipped_model().predict(UNFAIR_TESTS, signals)
    return Assessment(underspecified=underspecified, unfair_tests=unfair_tests, findings=findings)


def find_decisive_rule(findings: Sequence[Finding]) -> str | None:
    """Return the rule of the first finding that is sufficient to set a task aside, or None."""
    return next((finding.rule for finding in findings if finding.rule in DECISIVE), None)


_EMPTY_STATEMENT_RULES = frozenset(rule for rule in DECISIVE if rule.startswith("statement-"))
