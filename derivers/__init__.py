"""One verified change, the tasks that can be made of it."""

from __future__ import annotations

from enum import StrEnum

from backends.services import Services
from derivers.bugfix import bugfix, is_bugfix
from taskdb.lineage import Lineage
from taskdb.records import Rejection, Stage, Task

__all__ = ["Reason", "derive"]


class Reason(StrEnum):
    """Why a verified change became no task."""

    NO_BEHAVIOURAL_FAILURE = "no-behavioural-failure"


def derive(lineage: Lineage, services: Services) -> Task | Rejection:
    """The derivers' stage; it runs nothing."""
    del services
    why_not = is_bugfix(lineage.the_verification)
    if why_not is None:
        return bugfix(lineage)
    verification, candidate = lineage.the_verification, lineage.candidate
    return Rejection(
        parent=verification.id, name=candidate.name, source=candidate.source, stage=Stage.DERIVE,
        reason=Reason.NO_BEHAVIOURAL_FAILURE, detail=why_not,
    )  # fmt: skip
