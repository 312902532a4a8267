"""Multi-SWE-bench's rows in SWE-bench's fields.

Their lists are by what a test did before: f2p failed, s2p was skipped, n2p was not there; all of them pass afterwards.
In Java, and where their reading of a log tells no more, an entry is a whole class, file or program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

FIXED = ("f2p_tests", "s2p_tests", "n2p_tests")


def fields(row: dict[str, Any]) -> dict[str, Any]:
    """The row with SWE-bench's names; what is missing or of another form is left for its reader to complain of."""
    base = row["base"] if isinstance(row["base"], dict) else {}
    return {
        "instance_id": row["instance_id"],
        "repo": f"{row.get('org', '')}/{row.get('repo', '')}",
        "base_commit": base.get("sha", ""),
        "patch": row["fix_patch"],
        "test_patch": row.get("test_patch", ""),
        "problem_statement": _statement(row),
        "FAIL_TO_PASS": sorted({test for name in FIXED for test in _names(row.get(name))}),
        "PASS_TO_PASS": sorted(_names(row.get("p2p_tests"))),
    }


def _statement(row: dict[str, Any]) -> str:
    """The resolved issues, titles and texts; where there are none, the pull request's own."""
    issues = [issue for issue in row.get("resolved_issues") or [] if isinstance(issue, dict)] or [row]
    return "\n\n".join(f"{issue.get('title') or ''}\n\n{issue.get('body') or ''}".strip() for issue in issues).strip()


def _names(tests: Any) -> Iterable[str]:
    return [str(test) for test in tests] if isinstance(tests, dict | list) else []
