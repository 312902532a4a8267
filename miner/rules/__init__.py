"""Rules that decide which changes become candidates. `RULES` is the complete mining policy.

The first rule that fails rejects the change. Rules are ordered by cost: findings of the reader of the source, then the
record and paths, files of the clone, patches, tags, and the database last. docs/guide/mine/rules.md lists the same
rows, and the effect of each rule on real histories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from core.settings.mining import MiningSettings
from miner.changes import Change, Reason
from miner.rules.allowed import is_in_no_benchmark, is_no_benchmark_copy, is_not_stored, license_is_allowed
from miner.rules.files import (
    changes_no_submodule,
    has_few_files,
    is_in_supported_language,
    is_written_by_hand,
    touches_source,
    touches_tests,
)
from miner.rules.origin import changes_any_file, has_base_commit, is_original_change, is_written_by_person
from miner.rules.patches import (
    can_be_split,
    changes_code,
    changes_more_than_a_version,
    changes_more_than_docstrings,
    changes_test_code,
    does_more_than_move,
    has_no_conflict_markers,
    is_mostly_in_candidate_language,
    is_small_enough,
    keeps_tests,
    patches_reproduce_merge,
)
from miner.rules.routing import has_route, has_tests_or_is_performance
from miner.rules.statement import has_statement
from taskdb.records import Shape

Check = Callable[[Change, MiningSettings], str | None]
"""Return why a change is rejected, in a few words; None when it passes."""


class RuleInput(StrEnum):
    """Most expensive input of a rule."""

    SOURCE = "source"
    """Facts that the reader of the source found."""
    RECORD = "record"
    """The record of the change and the list of changed files."""
    CLONE = "clone"
    """Files of the clone."""
    PATCHES = "patches"
    TAGS = "tags"
    STORE = "store"
    """Candidates that the database holds already."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason and the check behind it."""

    reason: Reason
    check: Check
    needs: RuleInput
    applies_to_published: bool = False
    """Whether published tasks are checked too; their publisher has applied rules of its own already."""
    applies_to_heads: bool = False
    """Whether heads are checked too, which have no patches."""


def _build_source_rule(reason: Reason) -> Rule:
    """Build the rule that rejects the changes that the reader of a source found unusable for this reason."""

    def has_no_source_rejection(change: Change, _: MiningSettings) -> str | None:
        rejection = change.source_rejection
        return rejection[1] if rejection and rejection[0] is reason else None

    return Rule(reason, has_no_source_rejection, RuleInput.SOURCE, applies_to_published=True, applies_to_heads=True)


RULES: tuple[Rule, ...] = (
    _build_source_rule(Reason.NO_MERGE_COMMIT),
    _build_source_rule(Reason.NOT_ON_DEFAULT_BRANCH),
    _build_source_rule(Reason.BRANCH_MERGE),
    _build_source_rule(Reason.UNREADABLE_SDIST),
    _build_source_rule(Reason.UNPARSABLE),
    _build_source_rule(Reason.LANGUAGE),
    _build_source_rule(Reason.NO_TESTS),
    Rule(Reason.NO_BASE, has_base_commit, RuleInput.RECORD),
    Rule(Reason.EMPTY, changes_any_file, RuleInput.RECORD, applies_to_published=True),
    Rule(Reason.IN_BENCHMARK, is_in_no_benchmark, RuleInput.RECORD, applies_to_heads=True),
    Rule(Reason.BOT, is_written_by_person, RuleInput.RECORD),
    Rule(Reason.NOT_A_CHANGE, is_original_change, RuleInput.RECORD),
    Rule(Reason.SUBMODULE, changes_no_submodule, RuleInput.RECORD, applies_to_published=True),
    Rule(Reason.LANGUAGE, is_in_supported_language, RuleInput.RECORD, applies_to_published=True),
    Rule(Reason.NO_SOURCE, touches_source, RuleInput.RECORD),
    Rule(Reason.NO_TESTS, touches_tests, RuleInput.RECORD),
    Rule(Reason.TOO_MANY_FILES, has_few_files, RuleInput.RECORD),
    Rule(Reason.NO_STATEMENT, has_statement, RuleInput.RECORD, applies_to_published=True),
    Rule(Reason.GENERATED, is_written_by_hand, RuleInput.CLONE),
    Rule(Reason.UNPARSABLE, can_be_split, RuleInput.PATCHES, applies_to_published=True),
    Rule(Reason.TOO_LARGE, is_small_enough, RuleInput.PATCHES),
    Rule(Reason.CONFLICT_MARKERS, has_no_conflict_markers, RuleInput.PATCHES),
    Rule(Reason.LANGUAGE_SHARE, is_mostly_in_candidate_language, RuleInput.PATCHES),
    Rule(Reason.VERSION_BUMP, changes_more_than_a_version, RuleInput.PATCHES),
    Rule(Reason.MOVES_ONLY, does_more_than_move, RuleInput.PATCHES),
    Rule(Reason.TESTS_REMOVED, keeps_tests, RuleInput.PATCHES),
    Rule(Reason.FORMATTING_ONLY, changes_code, RuleInput.PATCHES),
    Rule(Reason.DOCSTRINGS_ONLY, changes_more_than_docstrings, RuleInput.PATCHES),
    Rule(Reason.TESTS_UNCHANGED, changes_test_code, RuleInput.PATCHES),
    Rule(Reason.NEAR_DUPLICATE, is_no_benchmark_copy, RuleInput.PATCHES),
    Rule(Reason.LICENSE, license_is_allowed, RuleInput.CLONE, applies_to_published=True, applies_to_heads=True),
    Rule(Reason.ROUND_TRIP, patches_reproduce_merge, RuleInput.PATCHES, applies_to_published=True),
    Rule(Reason.NO_TESTS, has_tests_or_is_performance, RuleInput.TAGS, applies_to_published=True),
    Rule(Reason.NOT_ROUTED, has_route, RuleInput.TAGS),
    Rule(Reason.NEAR_DUPLICATE, is_not_stored, RuleInput.STORE),
)


def find_rejection(change: Change, mining: MiningSettings) -> tuple[Reason, str] | None:
    """Return reason and detail of the first rule that fails; None for a candidate."""
    shape = change.pull_request.shape
    for rule in RULES:
        applies = {Shape.INSTANCE: rule.applies_to_published, Shape.HEAD: rule.applies_to_heads}.get(shape, True)
        if applies and (detail := rule.check(change, mining)):
            return rule.reason, detail
    return None
