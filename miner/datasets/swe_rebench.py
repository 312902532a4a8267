"""Rows of SWE-rebench and SWE-rebench V2: the fields of SWE-bench beside an install configuration and an image.

Kept are SWE-bench's fields. The image, the install configuration and the log parser are not: environments are planned
and built here, so lists of tests are compared, not trusted. The lists come from logs of test runners; as in the set's
own evaluation, colours and durations are not part of a name. Rows made from pull requests alone have their statement in
`pr_description` where `problem_statement` is empty.
"""

from __future__ import annotations

from miner.datasets.rows import Row, strip_decoration
from miner.test_lists import LIST_NAMES, read_test_list

_LIST_FIELDS = frozenset(name.lower() for names in LIST_NAMES.items() for name in (names[0], *names[1]))


def convert_row(row: Row) -> Row:
    """Return the row in SWE-bench's fields."""
    statement = row.get("problem_statement") or row.get("pr_description") or ""
    others = {field: value for field, value in row.items() if field.lower() not in _LIST_FIELDS}
    lists = {
        name: list(dict.fromkeys(strip_decoration(test) for test in read_test_list(row, name))) for name in LIST_NAMES
    }
    return {**others, "problem_statement": statement, "hints_text": row.get("hints_text") or "", **lists}
