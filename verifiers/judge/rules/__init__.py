"""Rules that need no model. `RULES` is the complete policy; docs/guide/verify/judge.md has their measured precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from taskdb.records.verdicts import Finding
from verifiers.judge.case import JudgeCase
from verifiers.judge.rules.discussion import find_hints_after_fix
from verifiers.judge.rules.messages import find_unstated_messages
from verifiers.judge.rules.names import find_unstated_names
from verifiers.judge.rules.solution import find_change_reference, find_patch, find_solution
from verifiers.judge.rules.statement import (
    find_empty_statement,
    find_essential_picture,
    find_foreign_language,
    find_missing_behaviour,
)
from verifiers.judge.rules.values import find_unstated_values

Rule = Callable[[JudgeCase], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    find_empty_statement,
    find_essential_picture,
    find_foreign_language,
    find_missing_behaviour,
    find_solution,
    find_change_reference,
    find_patch,
    find_hints_after_fix,
    find_unstated_messages,
    find_unstated_names,
    find_unstated_values,
)
"""In the order of the reported findings."""

DECISIVE = frozenset(
    {
        "statement-empty",
        "statement-image-only",
        "statement-template-only",
        "statement-link-only",
        "message-not-stated",
    }
)
"""Findings each of which is sufficient to set a task aside: it could only be solved by luck."""


def apply_rules(case: JudgeCase) -> tuple[Finding, ...]:
    """Return the findings of all rules."""
    return tuple(finding for rule in RULES for finding in rule(case))
