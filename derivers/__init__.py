"""One verified change, the tasks that can be made of it: reading KINDS is reading which there are.

A kind stands in one file, and says of a change which tasks it gives, or why none. What each needs of a change, and
which kinds are made when none is named, stands in `taskdb.kinds`; what a submission to each is worth, in
`verifiers.rewards`.
"""

from __future__ import annotations

from collections.abc import Mapping

from backends.services import Services
from derivers.base import Deriver, Refusal
from derivers.bugfix import as_published, bugfix
from derivers.combined import combined
from derivers.feature import feature
from derivers.injected import injected
from derivers.performance import performance
from derivers.review import review
from derivers.simulated import simulated
from derivers.test_writing import test_writing
from taskdb.kinds import NEEDS, Needs
from taskdb.lineage import Lineage
from taskdb.records import Kind, Rejection, Stage, Task

__all__ = ["KINDS", "derive"]

KINDS: Mapping[Kind, Deriver] = {
    Kind.BUGFIX: bugfix,
    Kind.FEATURE: feature,
    Kind.INJECTED: injected,
    Kind.REVIEW: review,
    Kind.TEST_WRITING: test_writing,
    Kind.PERFORMANCE: performance,
    Kind.COMBINED: combined,
    Kind.SIMULATED: simulated,
}


def derive(lineage: Lineage, services: Services) -> list[Task] | Rejection:
    """The tasks of the one kind in `lineage.kinds` that a change gives, or why it gives none.

    Raises:
        Transient: engine, disk or network failed.
    """
    (kind,) = lineage.kinds
    made = KINDS[kind](lineage, services)
    if not isinstance(made, Refusal):
        return made
    candidate = lineage.candidate
    above = candidate if NEEDS[kind] in (Needs.CANDIDATE, Needs.NO_ENVIRONMENT) else lineage.the_verdict
    return Rejection(
        parent=above.id, name=candidate.name, source=candidate.source, stage=Stage.DERIVE, reason=str(made.reason),
        detail=made.detail, kind=kind, published=as_published(lineage) if lineage.verification else None,
    )  # fmt: skip
