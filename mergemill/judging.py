"""Published tasks as the judge sees them, straight from their file: no clone, no engine, no database.

What the base tree holds is not known then; the old lines that the patches show stand in for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mergemill.config import Settings
from mergemill.errors import InputError
from mergemill.services import artifacts_of, model_of
from miner.instances import Row, lines, once, read
from verifiers.judge.asking import Asking
from verifiers.judge.assess import Assessment, assess
from verifiers.judge.case import Case
from verifiers.judge.hearing import Heard, hear

Told = dict[str, Any]
"""A task's line, by its keys."""
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


def judged(path: Path, only: Sequence[str] = (), settings: Settings | None = None) -> Iterator[Told | InputError]:
    """What is printed of each task of a file; for a line that cannot be used, the error.

    Args:
        path: the file.
        only: names of tasks; empty for all.
        settings: whether a model is asked, too; None asks none.

    Raises:
        InputError: the file cannot be read, or the model's endpoint refuses what is asked.
        Transient: the model's endpoint does not answer.
    """
    model = model_of(settings) if settings else None
    for case in cases_of(path):
        if isinstance(case, InputError):
            yield case
        elif not only or case.name in only:
            found = assess(case)
            if settings and model:
                heard = hear(case, found, Asking.begin(model, settings, artifacts_of(settings)))
                yield _told(case, found) | _of_models(heard)
            else:
                yield _told(case, found)


def _told(case: Case, found: Assessment) -> Told:
    return {
        "instance_id": case.name,
        "underspecified": round(found.underspecified, 4),
        "unfair_tests": round(found.unfair_tests, 4),
        "findings": [finding.model_dump(include={"rule", "quote", "detail"}) for finding in found.findings],
    }


def _of_models(heard: Heard) -> Told:
    """What is told in place of the rules' probabilities, and beside it, where models were asked."""
    shown = {"model", "sample", "tests", "leaks", "missing", "underspecified", "unfair_tests", "void"}
    return {
        "underspecified": round(heard.underspecified, 4),
        "unfair_tests": round(heard.unfair_tests, 4),
        "opinions": [opinion.model_dump(mode="json", include=shown) for opinion in heard.panel.opinions],
        "agreement": heard.panel.agreement,
        "alpha": heard.panel.alpha,
        "addition": heard.addition,
        "refused": list(heard.completion.refused) if heard.completion else [],
    }
