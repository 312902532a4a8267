"""Convert rows of Multi-SWE-bench to the fields of SWE-bench.

Its lists are named by the result before the change: f2p failed, s2p was skipped, n2p did not exist; all of these tests
pass afterwards. In Java, and where its log parser has no finer result, an entry is a whole class, file or program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.errors import InputError
from miner.test_lists import parse_value

FAIL_TO_PASS_FIELDS = ("f2p_tests", "s2p_tests", "n2p_tests")


def convert_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with SWE-bench's field names; missing or malformed fields are left to the caller's validation."""
    base = row["base"] if isinstance(row["base"], dict) else {}
    return {
        "instance_id": row["instance_id"],
        "repo": f"{row.get('org', '')}/{row.get('repo', '')}",
        "base_commit": base.get("sha", ""),
        "patch": row["fix_patch"],
        "test_patch": row.get("test_patch", ""),
        "problem_statement": _build_statement(row),
        "FAIL_TO_PASS": sorted({test for name in FAIL_TO_PASS_FIELDS for test in _list_test_names(row, name)}),
        "PASS_TO_PASS": sorted(_list_test_names(row, "p2p_tests")),
    }


def _build_statement(row: dict[str, Any]) -> str:
    """Build the statement from the resolved issues, or from the pull request where there are none."""
    issues = [issue for issue in row.get("resolved_issues") or [] if isinstance(issue, dict)] or [row]
    return "\n\n".join(f"{issue.get('title') or ''}\n\n{issue.get('body') or ''}".strip() for issue in issues).strip()


def _list_test_names(row: dict[str, Any], name: str) -> Iterable[str]:
    """Return the tests of a list, whose form is an object or list; empty where it is absent, null or empty text.

    Raises:
        InputError: it has another form.
    """
    tests = parse_value(row.get(name), name)
    if not isinstance(tests, dict | list | None):
        raise InputError(f"field {name} is neither an object nor a list")
    return [str(test) for test in tests or ()]
