"""Bug fixes: changes before which a test fails by its behaviour, not only because a name is missing."""

from __future__ import annotations

from enum import StrEnum

from backends.services import Services
from derivers.base import KindRejection, build_task, check_statement
from evaluation.differences import compare_with_runs
from taskdb.records import FailureKind, Kind, PublishedVerdict, Task, Verification
from taskdb.records.lineage import Lineage

BEHAVIOURAL_FAILURES = (FailureKind.ASSERTION, FailureKind.ERROR)


class Reason(StrEnum):
    """Why a verified change is not a bug fix. Where the judge has excluded the statement, the reason is its finding."""

    NO_BEHAVIOURAL_FAILURE = "no-behavioural-failure"


def check_bugfix(verification: Verification) -> str | None:
    """Return why a verified change is not a bug fix: no FAIL_TO_PASS test ran and failed; None if it is one."""
    kinds = {kind for _, kind in verification.FAIL_TO_PASS}
    if kinds & set(BEHAVIOURAL_FAILURES):
        return None
    if not kinds:
        return "no test fails before the change"
    return f"before the fix every FAIL_TO_PASS test was only {' or '.join(sorted(kinds))}"


def derive_bugfix(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the bugfix task of a verified change. Nothing is executed."""
    if detail := check_bugfix(lineage.require_verification()):
        return KindRejection(Reason.NO_BEHAVIOURAL_FAILURE, detail)
    return check_statement(lineage) or [
        build_task(lineage, Kind.BUGFIX, published=compare_with_published(lineage, services))
    ]


def compare_with_published(lineage: Lineage, services: Services) -> PublishedVerdict | None:
    """Return how the lists differ from those of a published task; None where the change was not published."""
    published, verification = lineage.candidate.published, lineage.require_verification()
    if published is None:
        return None
    return compare_with_runs(
        published,
        [test for test, _ in verification.FAIL_TO_PASS],
        verification.PASS_TO_PASS,
        runs=verification.runs,
        eval_files=verification.eval_files,
        artifacts=services.artifacts,
    )
