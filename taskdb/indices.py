"""Indices of the listings."""

from __future__ import annotations

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
"""What tasks are filtered by; an index for each ends in the order of lists, so that a page is read off the index."""

INDICES: dict[str, str] = {
    "listed_task_order": f"task_listing ({_ORDER})",
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
    "listed_derivation_order": "derivation_listing (merged_at DESC, name, kind, task_name)",
}
"""Name of an index -> its table and columns. Like views they are created again when this file changes."""
