"""Columns of a task and filters over them; `scripts/task-columns` of mergemill writes this file."""

from __future__ import annotations

TASK_COLUMNS: dict[str, type] = {
    "id": str,
    "name": str,
    "kind": str,
    "repo": str,
    "language": str,
    "language_version": str,
    "license": str,
    "source": str,
    "status": str,
    "base_commit": str,
    "n_fail_to_pass": int,
    "n_pass_to_pass": int,
    "created_at": str,
    "published": str,
    "environment": str,
    "image": str,
    "change_name": str,
    "change_kind": str,
    "candidate": str,
    "verification": str,
    "certificate": str,
    "strength": float,
    "untested_hunks": str,
    "control_bound": float,
    "flaky_bound": float,
    "underspecified": float,
    "unfair_tests": float,
    "set_aside": str,
    "test_seconds": float,
    "statement_tokens": int,
    "changed_files": int,
    "changed_lines": int,
    "family": str,
    "split": str,
    "difficulty": str,
    "audited": str,
    "image_digest": str,
    "added_at": str,
    "tests": str,
    "worst_block_bound": float,
    "n_weak_tests": int,
    "rests_on_copies": int,
    "functions": str,
    "operators": str,
    "edit_group": str,
    "failing_set": str,
    "changed_hunks": int,
    "call_depth": int,
    "n_findings": int,
    "findings": str,
}
"""Column of the view `tasks` -> type of its value, which may also be None.

`difficulty` is JSON in tables and an object in rows.
"""
WORD_FILTERS = (
    "repo",
    "language",
    "kind",
    "status",
    "source",
    "change_kind",
    "license",
    "family",
    "split",
    "audited",
    "environment",
    "tests",
    "operators",
    "findings",
)
RANGE_FILTERS = (
    "changed_lines",
    "strength",
    "changed_files",
    "changed_hunks",
    "call_depth",
    "statement_tokens",
    "test_seconds",
    "n_fail_to_pass",
    "n_pass_to_pass",
    "underspecified",
    "unfair_tests",
    "n_findings",
    "n_weak_tests",
    "control_bound",
    "worst_block_bound",
    "flaky_bound",
)
MIXED_CASE = (
    "repo",
    "language",
    "source",
    "license",
    "family",
)
"""Columns whose values are compared in lower case."""
LIST_COLUMNS = (
    "operators",
    "findings",
)
"""Columns whose values are words separated by commas."""
STRATA = (
    "repo",
    "language",
    "kind",
    "change_kind",
    "status",
    "license",
    "source",
    "split",
    "audited",
    "family",
    "operators",
    "year",
)
"""Columns by which a sample is stratified; `year`: that of `created_at`."""
CAPPED = (
    "edit_group",
    "failing_set",
    "functions",
    "family",
    "operators",
    "repo",
)
"""Columns by which selected tasks can be limited, in the order in which the limits are applied."""
