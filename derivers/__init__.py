"""One verified change, the tasks that can be made of it."""

from __future__ import annotations

from enum import StrEnum

from backends.services import Services
from derivers.bugfix import bugfix, is_bugfix
from taskdb.lineage import Lineage
from taskdb.records import Rejection, Stage, Task

__all__ = ["Reason", "derive"]


class Reason(StrEnum):
    """Why a verified change became no task. What the judge has set aside has its finding's name for a reason."""

    NO_BEHAVIOURAL_FAILURE = "no-behavioural-failure"


def derive(lineage: Lineage, services: Services) -> Task | Rejection:
    """The derivers' stage; it runs nothing."""
    del services
    why_not = _why_not(lineage)
    if why_not is None:
        return bugfix(lineage)
    reason, detail = why_not
    candidate, parent = lineage.candidate, lineage.verdict or lineage.the_verification
    return Rejection(
        parent=parent.id, name=candidate.name, source=candidate.source, stage=Stage.DERIVE, reason=reason,
        detail=detail,
    )  # fmt: skip


def _why_not(lineage: Lineage) -> tuple[str, str] | None:
    """Reason and detail, or None: it is a bug fix, and its statement is enough."""
    if detail := is_bugfix(lineage.the_verification):
        return Reason.NO_BEHAVIOURAL_FAILURE, detail
    verdict = lineage.verdict
    if verdict is None or verdict.set_aside is None:
        return None
    found = next((finding for finding in verdict.findings if finding.rule == verdict.set_aside), None)
    return verdict.set_aside, f"{found.detail}: {found.quote!r}" if found else "set aside by the judge"
