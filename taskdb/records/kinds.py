"""Prerequisites of kinds of tasks: the facts that the queue needs in order to decide which kinds are open for a change.

The kinds themselves, with their prerequisites, are the table of `mergemill.pipeline.kinds`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from taskdb.records import Kind, Stage
from taskdb.records.tags import ChangeKind

MAX_NEIGHBOURS = 6
"""Older changes among which the parts of a task of several changes are selected."""
_ENVIRONMENT_STAGES = (Stage.BUILD, Stage.VERIFY)


class Requirement(StrEnum):
    """The records that a change must have before a kind of task can be derived from it."""

    CANDIDATE = "candidate"
    """Only its candidate: patches and history."""
    VERIFIED = "verified"
    """Its verification, and the verdict on its statement."""
    PAIR = "pair"
    """The same, and a neighbouring change that has them, too."""
    ENVIRONMENT = "environment"
    """Its environment, whatever verification and judge have decided on the change itself."""
    NO_ENVIRONMENT = "no-environment"
    """A rejection by build or verify: there is no usable environment."""


LIST_KINDS = (
    Kind.BUGFIX,
    Kind.FEATURE,
    Kind.INJECTED,
    Kind.REBUILD,
    Kind.COMBINED,
    Kind.TERSE,
    Kind.USER_STORY,
    Kind.TRACEBACK,
    Kind.MIRRORED,
)
"""Kinds whose reward lists of tests alone decide, so that their tests need negative controls."""

ENVIRONMENT_KINDS = (Kind.INJECTED, Kind.REBUILD, Kind.MIRRORED)
"""Kinds that an environment gives, whatever was decided on its change (`Requirement.ENVIRONMENT`)."""


@dataclass(frozen=True, kw_only=True)
class Prerequisites:
    """Properties that a change must have for a kind of task."""

    requirement: Requirement
    replaced_by: Kind | None = None
    """The kind is not derived from a change that gives a task of this other kind."""
    change_kind: ChangeKind | None = None
    """The kind is derived only from changes of this kind; None for all."""
    needs_new_tests: bool = True
    """Whether the change must add or modify tests; else those of the base tree are enough."""

    @property
    def needs_environment(self) -> bool:
        """Whether the change must go through build and verify first."""
        return self.requirement is not Requirement.CANDIDATE

    def are_met(self, *, built: bool, judged: bool, paired: bool, rejected_by: Stage | None) -> bool:
        """Return whether a change has the required records.

        Args:
            built: whether it has an environment.
            judged: whether it has a verdict.
            paired: whether it has a neighbour with a verdict.
            rejected_by: the stage that has rejected it.
        """
        return (
            self.requirement is Requirement.CANDIDATE
            or (self.requirement is Requirement.VERIFIED and judged)
            or (self.requirement is Requirement.PAIR and judged and paired)
            or (self.requirement is Requirement.ENVIRONMENT and built and (judged or rejected_by is not None))
            or (self.requirement is Requirement.NO_ENVIRONMENT and rejected_by in _ENVIRONMENT_STAGES)
        )


def iter_open_kinds(
    wanted: Mapping[Kind, Prerequisites],
    derived: Collection[str],
    rejected: Collection[str],
    change_kind: str | None,
    *,
    brings_tests: bool = True,
) -> Iterator[Kind]:
    """Yield the wanted kinds that a change may give and that were neither derived from it nor rejected.

    Args:
        wanted: kinds with their prerequisites, in the order in which they are derived.
        derived: kinds of the change's tasks.
        rejected: kinds that the change does not give.
        change_kind: the change's own kind.
        brings_tests: whether it adds or modifies tests.
    """
    for kind, prerequisites in wanted.items():
        if kind in derived or kind in rejected or prerequisites.replaced_by in derived:
            continue
        if not brings_tests and prerequisites.needs_new_tests:
            continue
        if prerequisites.change_kind in (None, change_kind):
            yield kind
