"""Rows of SWE-rebench and SWE-rebench V2: the fields of SWE-bench beside an install configuration and an image.

Kept are SWE-bench's fields. The image, the install configuration and the log parser are not: environments are planned
and built here, so lists of tests are compared, not trusted. The lists come from logs of test runners; as in the set's
own evaluation, colours and durations are not part of a name. Rows made from pull requests alone have their statement in
`pr_description` where `problem_statement` is empty.
"""

from __future__ import annotations

from typing import Any

from miner.datasets.rows import Row, parse_json, strip_decoration


def convert_row(row: Row) -> Row:
    """Return the row in SWE-bench's fields."""
    statement = row.get("problem_statement") or row.get("pr_description") or ""
    lists = {name: _read_names(row.get(name)) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    return {**row, "problem_statement": statement, "hints_text": row.get("hints_text") or "", **lists}


def _read_names(names: Any) -> list[str]:
    return list(dict.fromkeys(strip_decoration(name) for name in parse_json(names or [])))
