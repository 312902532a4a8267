"""Which changes can become tasks. Reading RULES is reading the policy: the first rule that speaks decides.

The rules stand in the order of their cost: first those that look at the record and at paths, then those that read
files of the base, then those for which patches are made, at the end the licence and the round trip. Each is a function
of the modules beside this one; docs/rules.md tells what each of them does to real histories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mergemill.config import Settings
from miner.changes import Change, Reason
from miner.rules.allowed import is_in_no_benchmark, is_no_copy_of_a_benchmark, license_is_allowed
from miner.rules.files import (
    few_files,
    is_in_a_known_language,
    is_written_by_hand,
    leaves_submodules_alone,
    touches_source,
    touches_tests,
)
from miner.rules.origin import by_a_person, changes_something, has_a_base, is_a_change_of_its_own
from miner.rules.patches import (
    can_be_taken_apart,
    changes_code,
    changes_more_than_a_version,
    changes_more_than_docstrings,
    does_more_than_move,
    has_no_conflict_markers,
    is_mostly_in_its_language,
    keeps_tests,
    patches_make_the_merge,
    small_enough,
    tests_change,
)
from miner.rules.statement import has_a_statement
from miner.rules.statement import statement_of as statement_of
from taskdb.records import Shape


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason and the question behind it: None, or in a few words why the change is not suitable."""

    reason: Reason
    check: Callable[[Change, Settings], str | None]
    of_published: bool = False
    """Whether published tasks are asked too; somebody has chosen those already."""


RULES: tuple[Rule, ...] = (
    Rule(Reason.NO_BASE, has_a_base),
    Rule(Reason.EMPTY, changes_something, of_published=True),
    Rule(Reason.IN_BENCHMARK, is_in_no_benchmark),
    Rule(Reason.BOT, by_a_person),
    Rule(Reason.NOT_A_CHANGE, is_a_change_of_its_own),
    Rule(Reason.SUBMODULE, leaves_submodules_alone, of_published=True),
    Rule(Reason.LANGUAGE, is_in_a_known_language, of_published=True),
    Rule(Reason.NO_SOURCE, touches_source),
    Rule(Reason.NO_TESTS, touches_tests),
    Rule(Reason.TOO_MANY_FILES, few_files),
    Rule(Reason.NO_STATEMENT, has_a_statement, of_published=True),
    Rule(Reason.GENERATED, is_written_by_hand),
    Rule(Reason.UNPARSABLE, can_be_taken_apart, of_published=True),
    Rule(Reason.TOO_LARGE, small_enough),
    Rule(Reason.CONFLICT_MARKERS, has_no_conflict_markers),
    Rule(Reason.LANGUAGE_SHARE, is_mostly_in_its_language),
    Rule(Reason.VERSION_BUMP, changes_more_than_a_version),
    Rule(Reason.MOVES_ONLY, does_more_than_move),
    Rule(Reason.TESTS_REMOVED, keeps_tests),
    Rule(Reason.FORMATTING_ONLY, changes_code),
    Rule(Reason.DOCSTRINGS_ONLY, changes_more_than_docstrings),
    Rule(Reason.TESTS_UNCHANGED, tests_change),
    Rule(Reason.NEAR_DUPLICATE, is_no_copy_of_a_benchmark),
    Rule(Reason.LICENSE, license_is_allowed, of_published=True),
    Rule(Reason.ROUND_TRIP, patches_make_the_merge, of_published=True),
)


def verdict(change: Change, settings: Settings) -> tuple[Reason, str] | None:
    """None for a candidate, else the reason and detail of the first rule that speaks against the change."""
    if change.settled:
        return change.settled
    published = change.pull_request.shape is Shape.INSTANCE
    for rule in RULES:
        if (rule.of_published or not published) and (detail := rule.check(change, settings)):
            return rule.reason, detail
    return None
