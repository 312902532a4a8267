"""The kinds of tasks: `TASK_KINDS` has one row for each, with its prerequisites, deriver, reward and export formats.

A new kind is a member of `Kind`, a module in `derivers`, and a row here; a new oracle is also a reward in `verifiers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from backends.services import Services
from derivers.base import Deriver, KindRejection
from derivers.bugfix import compare_with_published, derive_bugfix
from derivers.combined import derive_combined
from derivers.feature import derive_feature
from derivers.injected import derive_injected
from derivers.performance import derive_performance
from derivers.review import derive_review
from derivers.simulated import derive_simulated
from derivers.test_writing import derive_test_writing
from exporters import FORMATS
from taskdb.kinds import Prerequisites, Requirement
from taskdb.lineage import Lineage
from taskdb.records import Kind, Rejection, Stage, Task
from taskdb.tags import ChangeKind
from verifiers.rewards import REWARDS, SIMULATED, TESTS, Reward

ALL_FORMATS = tuple(FORMATS)
"""Formats for tasks with an image that are graded by lists of tests."""


@dataclass(frozen=True, kw_only=True)
class TaskKind:
    """One row: everything that depends on the kind of a task."""

    prerequisites: Prerequisites
    derive: Deriver
    reward: Reward
    export_formats: tuple[str, ...]
    """Names of the formats (`exporters.FORMATS`) that can represent such tasks; may be empty."""
    not_exported: str = ""
    """Why no format can, where `export_formats` is empty."""
    is_default: bool = False
    """Whether such tasks are derived when the command names no kind."""


TASK_KINDS: Mapping[Kind, TaskKind] = {
    Kind.BUGFIX: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED),
        derive=derive_bugfix,
        reward=REWARDS[TESTS],
        export_formats=ALL_FORMATS,
        is_default=True,
    ),
    Kind.FEATURE: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED, replaced_by=Kind.BUGFIX),
        derive=derive_feature,
        reward=REWARDS[TESTS],
        export_formats=ALL_FORMATS,
        is_default=True,
    ),
    Kind.PERFORMANCE: TaskKind(
        prerequisites=Prerequisites(
            requirement=Requirement.VERIFIED, change_kind=ChangeKind.PERFORMANCE, needs_new_tests=False
        ),
        derive=derive_performance,
        reward=REWARDS["performance"],
        export_formats=(),
        not_exported="performance tasks are graded by run time",
    ),
    Kind.TEST_WRITING: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED),
        derive=derive_test_writing,
        reward=REWARDS["test-writing"],
        export_formats=(),
        not_exported="test-writing tasks are graded by mutants and coverage",
    ),
    Kind.INJECTED: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED, needs_new_tests=False),
        derive=derive_injected,
        reward=REWARDS[TESTS],
        export_formats=ALL_FORMATS,
    ),
    Kind.COMBINED: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.PAIR),
        derive=derive_combined,
        reward=REWARDS[TESTS],
        export_formats=ALL_FORMATS,
    ),
    Kind.REVIEW: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.CANDIDATE, needs_new_tests=False),
        derive=derive_review,
        reward=REWARDS["review"],
        export_formats=(),
        not_exported="review tasks are graded by their findings",
    ),
    Kind.SIMULATED: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.NO_ENVIRONMENT),
        derive=derive_simulated,
        reward=REWARDS[SIMULATED],
        export_formats=(),
        not_exported="simulated tasks have no image",
    ),
}
"""Kind -> its row, in the order in which kinds are derived from a change."""

DEFAULT_KINDS = tuple(kind for kind, row in TASK_KINDS.items() if row.is_default)


def get_prerequisites(kinds: Iterable[Kind]) -> dict[Kind, Prerequisites]:
    """Return the prerequisites of some kinds, in the order in which they are derived."""
    chosen = set(kinds)
    return {kind: row.prerequisites for kind, row in TASK_KINDS.items() if kind in chosen}


def list_stages(kinds: Iterable[Kind]) -> tuple[Stage, ...]:
    """Return the stages that changes go through for tasks of some kinds, in order."""
    if any(TASK_KINDS[kind].prerequisites.needs_environment for kind in kinds):
        return tuple(Stage)
    return (Stage.MINE, Stage.DERIVE, Stage.CERTIFY)


def derive(lineage: Lineage, services: Services) -> list[Task] | Rejection:
    """Return the tasks of the one kind in `lineage.kinds` that a change gives, or why it gives none.

    Raises:
        Transient: engine, disk or network failed.
    """
    (kind,) = lineage.kinds
    row = TASK_KINDS[kind]
    result = row.derive(lineage, services)
    if not isinstance(result, KindRejection):
        return result
    candidate = lineage.candidate
    needs_verdict = row.prerequisites.requirement in (Requirement.VERIFIED, Requirement.PAIR)
    return Rejection(
        parent=lineage.require_verdict().id if needs_verdict else candidate.id,
        name=candidate.name,
        source=candidate.source,
        stage=Stage.DERIVE,
        reason=str(result.reason),
        detail=result.detail,
        kind=kind,
        published=compare_with_published(lineage) if lineage.verification else None,
    )
