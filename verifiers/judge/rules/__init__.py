"""What can be seen without a model. Reading RULES is reading the policy; docs/judge.md tells how often it is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from taskdb.verdicts import Finding
from verifiers.judge.case import Case
from verifiers.judge.rules.discussion import hints_after_the_fix
from verifiers.judge.rules.messages import message_not_stated
from verifiers.judge.rules.names import name_not_stated
from verifiers.judge.rules.solution import brings_a_patch, change_is_named, solution_in_statement
from verifiers.judge.rules.statement import in_another_language, names_no_behaviour, rests_on_a_picture, says_nothing
from verifiers.judge.rules.values import value_not_stated

Rule = Callable[[Case], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    says_nothing,
    rests_on_a_picture,
    in_another_language,
    names_no_behaviour,
    solution_in_statement,
    change_is_named,
    brings_a_patch,
    hints_after_the_fix,
    message_not_stated,
    name_not_stated,
    value_not_stated,
)
"""In the order in which findings are told."""

DECISIVE = frozenset(
    {
        "statement-empty",
        "statement-image-only",
        "statement-template-only",
        "statement-link-only",
        "message-not-stated",
    }
)
"""Findings each of which alone is enough to set a task aside: nobody could solve it but by luck."""


def findings_of(case: Case) -> tuple[Finding, ...]:
    """All that the rules see."""
    return tuple(finding for rule in RULES for finding in rule(case))
