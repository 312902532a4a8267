"""A candidate with what became of it so far: what a stage is given when its own input is not enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from taskdb.records import Candidate, Certificate, Environment, Kind, Record, Stage, Task, Verification
from taskdb.verdicts import Verdict

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """One change's chain of records. Ask for a record by `the_...` where the stage's place says that it is there."""

    candidate: Candidate
    environment: Environment | None = None
    verification: Verification | None = None
    verdict: Verdict | None = None
    task: Task | None = None
    """The one that is to be certified."""
    certificate: Certificate | None = None
    stopped: Stage | None = None
    """The stage that has rejected the change."""
    due: Stage | None = None
    """The stage that comes next, up to the judge; it is done even where its record is there: then it is done again."""
    kinds: tuple[Kind, ...] = ()
    """Kinds of tasks of which it is still to be found out whether the change gives them."""
    derived: tuple[Task, ...] = ()
    """Its tasks that are still to be certified."""
    others: tuple[Lineage, ...] = ()
    """Neighbours that have come as far, for tasks made of several changes."""

    @property
    def the_environment(self) -> Environment:
        """The environment; only for stages after `build`."""
        return _there(self.environment)

    @property
    def the_verification(self) -> Verification:
        """The verification; only for stages after `verify`."""
        return _there(self.verification)

    @property
    def the_verdict(self) -> Verdict:
        """The verdict on its statement; only for stages after `judge`."""
        return _there(self.verdict)

    @property
    def the_task(self) -> Task:
        """The task; only for stages after `derive`."""
        return _there(self.task)

    def then(self, record: Record) -> Lineage:
        """The lineage with one record more."""
        changes: dict[str, Any] = {type(record).__name__.lower(): record}
        return replace(self, **changes)


def _there(record: R | None) -> R:
    if record is None:
        raise LookupError("a stage was started before the one it builds on")
    return record
