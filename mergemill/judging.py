"""Published tasks as the judge sees them, straight from their file: no clone, no engine, no database.

What the base tree holds is not known then; the old lines that the patches show stand in for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mergemill.errors import InputError
from miner.instances import Row, lines, once, read
from verifiers.judge.assess import Assessment, assess
from verifiers.judge.case import Case

_NUMBER = re.compile(r"-(\d+)$")


def cases_of(path: Path) -> Iterator[Case | InputError]:
    """The tasks of a file, in its order; for a line that cannot be used, the error that names it.

    Raises:
        InputError: the file cannot be read.
    """
    seen: dict[str, int] = {}
    for number, line in lines(path):
        try:
            row = read(line)
            once(row, number, seen)
        except InputError as error:
            yield InputError(f"{path}:{number}: {error}", advice=error.advice)
        else:
            yield case_of(row)


def case_of(row: Row) -> Case:
    """A published task. The number at the end of its name is the pull request's, as SWE-bench has it."""
    found = _NUMBER.search(row.instance_id)
    return Case(
        name=row.instance_id, repo=row.repo, statement=row.problem_statement, hints=row.hints_text or "",
        gold=row.patch, tests=row.test_patch, fail_to_pass=row.FAIL_TO_PASS, pass_to_pass=row.PASS_TO_PASS,
        number=int(found[1]) if found else None,
    )  # fmt: skip


def judged(path: Path, only: Sequence[str] = ()) -> Iterator[dict[str, Any] | InputError]:
    """What is printed of each task of a file; for a line that cannot be used, the error.

    Args:
        path: the file.
        only: names of tasks; empty for all.

    Raises:
        InputError: the file cannot be read.
    """
    for case in cases_of(path):
        if isinstance(case, InputError):
            yield case
        elif not only or case.name in only:
            yield _told(case, assess(case))


def _told(case: Case, found: Assessment) -> dict[str, Any]:
    return {
        "instance_id": case.name,
        "underspecified": round(found.underspecified, 4),
        "unfair_tests": round(found.unfair_tests, 4),
        "findings": [finding.model_dump(include={"rule", "quote", "detail"}) for finding in found.findings],
    }
