"""Rows of SWE-smith: bugs injected into a tree whose own tests detect them.

`repo` names a mirror, `swesmith/OWNER__NAME.COMMIT`; `patch` injects the bug, so its reverse is the gold patch. The
bug has no commit in the repository itself: `mergemill.bundles.foreign_import` makes a commit (`bug_patch`), from which
the test files of the FAIL_TO_PASS tests are missing, as SWE-smith's own branches lack them. They are the test patch.
"""

from __future__ import annotations

import re

from core.errors import InputError
from miner.datasets.rows import Row
from miner.test_lists import LIST_NAMES, read_test_list

MAX_NAME = 250
"""Characters of a mirror's name."""
_MIRROR = re.compile(r"(?:[\w.-]+/)?(?P<owner>[\w.-]+?)__(?P<name>[\w.-]+)\.(?P<commit>[0-9a-f]{8,40})")


def convert_row(row: Row) -> Row:
    """Return the row in SWE-bench's fields; patches and base commit are those before the bug is made a commit.

    Raises:
        InputError: `repo` does not name a mirror.
    """
    match = _MIRROR.fullmatch(row["repo"][:MAX_NAME])
    if match is None:
        raise InputError(f"{row['repo'][:MAX_NAME]!a} is not the name of a mirror, OWNER__NAME.COMMIT")
    return {
        "instance_id": row["instance_id"],
        "repo": f"{match['owner']}/{match['name']}",
        "base_commit": row.get("base_commit") or match["commit"],
        "patch": row["patch"],
        "test_patch": "",
        "problem_statement": row.get("problem_statement") or "",
        **{name: read_test_list(row, name) for name in LIST_NAMES},
        "created_at": row.get("created_at"),
        "is_bug": True,
    }
