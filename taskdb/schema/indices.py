"""Indices of the listings."""

from __future__ import annotations

from collections.abc import Mapping

from taskdb.schema.task_columns import RANGE_FILTERS

_ORDER = "created_at DESC, name"
_FILTERS = (
    "kind",
    "repo",
    "status",
    "change_kind",
    "split",
    "audited",
    "lower(repo)",
    "lower(source)",
    "lower(language)",
    "lower(license)",
)
"""Columns that tasks are filtered by.

An index for each ends in the order of lists, so that a page is read off the index.
"""

_COMPARED = tuple(
    dict.fromkeys(
        (
            "environment",
            "tests",
            "kind",
            "status",
            "repo",
            "language",
            "license",
            "change_kind",
            "split",
            "audited",
            "n_fail_to_pass",
            "n_pass_to_pass",
            "changed_lines",
            "changed_files",
            "statement_tokens",
            "test_seconds",
            "strength",
            "underspecified",
            "unfair_tests",
            "control_bound",
            "flaky_bound",
            *RANGE_FILTERS,
        )
    )
)
"""Columns that ranges, histograms and facets read."""

_COMMON: dict[str, str] = {
    **{
        f"listed_task_{name.replace('lower(', 'any_').replace(')', '')}": f"task_listing ({name}, {_ORDER})"
        for name in _FILTERS
    },
    **{f"listed_task_{name}": f"task_listing ({name})" for name in ("id", "name", "change_name", "change", "image")},
    "listed_task_candidate": "task_listing (candidate)",
    "listed_change_source": "change_listing (source, merged_at DESC, name)",
    "listed_change_repo": "change_listing (repo, merged_at DESC, name)",
    "listed_change_status": "change_listing (status, merged_at DESC, name)",
    "listed_change_state": "change_listing (state, merged_at DESC, name)",
    "listed_change_source_reason": "change_listing (source, rejected_by, reason, merged_at DESC, name)",
    "listed_change_order": "change_listing (merged_at DESC, name)",
    "listed_change_reason": "change_listing (rejected_by, reason, merged_at DESC, name)",
    **{f"listed_change_{name}": f"change_listing ({name})" for name in ("name", "candidate", "pull_request")},
    "listed_derivation_change": "derivation_listing (change)",
    "listed_derivation_candidate": "derivation_listing (candidate)",
    "listed_derivation_task": "derivation_listing (task)",
    "listed_derivation_kind": "derivation_listing (kind, status)",
    "whole_test_list": "test_list (repo, seq) WHERE base IS NULL",
    "listed_derivation_order": "derivation_listing (merged_at DESC, name, kind, task_name, source, status, reason)",
}
INDICES: Mapping[str, Mapping[str, str]] = {
    # A range that few tasks match is decided in the index, a fifth of the table, and without going to each row.
    "sqlite": {**_COMMON, "listed_task_order": f"task_listing ({_ORDER}, {', '.join(_COMPARED)})"},
    # PostgreSQL goes to the row for every condition. Exports are in the order of bytes, whatever its collation.
    "postgresql": {
        **_COMMON,
        "listed_task_order": f"task_listing ({_ORDER})",
        "listed_task_bytes": 'task_listing (name COLLATE "C", id COLLATE "C")',
    },
}
"""Kind of a database -> name of an index -> its table and columns. Like views they are created again when this file
changes."""
