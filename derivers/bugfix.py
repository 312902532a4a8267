"""A bug fix: something behaved wrongly and a test sees it. New names alone (imports that fail) are no bug."""

from __future__ import annotations

from enum import StrEnum

from backends.services import Services
from derivers.base import Refusal, set_aside, task_of
from taskdb.lineage import Lineage
from taskdb.published import compare
from taskdb.records import FailureKind, Kind, PublishedVerdict, Task, Verification

BEHAVIOURAL = (FailureKind.ASSERTION, FailureKind.ERROR)


class Reason(StrEnum):
    """Why a verified change is no bug fix. What the judge has set aside has its finding's name for a reason."""

    NO_BEHAVIOURAL_FAILURE = "no-behavioural-failure"


def is_bugfix(verification: Verification) -> str | None:
    """None, or why not: no FAIL_TO_PASS test ran and saw something wrong."""
    kinds = {kind for _, kind in verification.FAIL_TO_PASS}
    if kinds & set(BEHAVIOURAL):
        return None
    if not kinds:
        return "nothing fails before it"
    return f"before the fix every FAIL_TO_PASS test was only {' or '.join(sorted(kinds))}"


def bugfix(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """The bugfix task of a verified change; runs nothing."""
    del services
    if detail := is_bugfix(lineage.the_verification):
        return Refusal(Reason.NO_BEHAVIOURAL_FAILURE, detail)
    return set_aside(lineage) or [task_of(lineage, Kind.BUGFIX, published=as_published(lineage))]


def as_published(lineage: Lineage) -> PublishedVerdict | None:
    """How the lists differ from those that a published task came with."""
    published, verification = lineage.candidate.published, lineage.the_verification
    if published is None:
        return None
    return compare(published, [test for test, _ in verification.FAIL_TO_PASS], verification.PASS_TO_PASS)
