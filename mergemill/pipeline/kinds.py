"""The kinds of tasks: `TASK_KINDS` has a row for each, with its prerequisites, deriver and reward.

A new kind is a member of `Kind`, a module in `derivers`, and a row here; a new oracle is also a reward in `verifiers`.
Which formats can carry a task is decided by `exporters.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from derivers.structure.migration import derive_migration
from derivers.structure.refactoring import derive_refactoring
from derivers.test_writing import derive_test_writing
from derivers.variants import derive_terse, derive_traceback, derive_user_story
from mergemill.pipeline.base_trees import keep_tree
from mergemill.pipeline.variants import check_variant
from taskdb.records import Kind, Rejection, Stage, Task
from taskdb.records.kinds import Prerequisites, Requirement
from taskdb.records.lineage import Lineage
from taskdb.records.tags import ChangeKind
from verifiers.rewards import REWARDS, SIMULATED, TESTS, Reward


@dataclass(frozen=True, kw_only=True)
class TaskKind:
    """A row: everything that depends on the kind of a task."""

    prerequisites: Prerequisites
    derive: Deriver
    reward: Reward
    is_default: bool = False
    """Whether such tasks are derived when the command names no kind."""
    check: Callable[[Lineage, Task, Services], KindRejection | None] | None = None
    """Condition on each derived task that uses other stages than `derive`; the first rejection is the kind's."""


def _describe_variant(derive_variant: Deriver) -> TaskKind:
    """Return the row of a statement variant: that of a bug fix, with the judge's rules for the new statement."""
    return TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED),
        derive=derive_variant,
        reward=REWARDS[TESTS],
        check=check_variant,
    )


TASK_KINDS: Mapping[Kind, TaskKind] = {
    Kind.BUGFIX: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED),
        derive=derive_bugfix,
        reward=REWARDS[TESTS],
        is_default=True,
    ),
    Kind.FEATURE: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED, replaced_by=Kind.BUGFIX),
        derive=derive_feature,
        reward=REWARDS[TESTS],
        is_default=True,
    ),
    Kind.PERFORMANCE: TaskKind(
        prerequisites=Prerequisites(
            requirement=Requirement.VERIFIED, change_kind=ChangeKind.PERFORMANCE, needs_new_tests=False
        ),
        derive=derive_performance,
        reward=REWARDS["performance"],
    ),
    Kind.TEST_WRITING: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED),
        derive=derive_test_writing,
        reward=REWARDS["test-writing"],
    ),
    Kind.INJECTED: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED, needs_new_tests=False),
        derive=derive_injected,
        reward=REWARDS[TESTS],
    ),
    Kind.COMBINED: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.PAIR),
        derive=derive_combined,
        reward=REWARDS[TESTS],
    ),
    Kind.REVIEW: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.CANDIDATE, needs_new_tests=False),
        derive=derive_review,
        reward=REWARDS["review"],
    ),
    Kind.SIMULATED: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.NO_ENVIRONMENT),
        derive=derive_simulated,
        reward=REWARDS[SIMULATED],
    ),
    Kind.TERSE: _describe_variant(derive_terse),
    Kind.USER_STORY: _describe_variant(derive_user_story),
    Kind.TRACEBACK: _describe_variant(derive_traceback),
    Kind.REFACTORING: TaskKind(
        prerequisites=Prerequisites(
            requirement=Requirement.VERIFIED, change_kind=ChangeKind.REFACTOR, needs_new_tests=False
        ),
        derive=derive_refactoring,
        reward=REWARDS["refactoring"],
    ),
    Kind.DEPENDENCY_MIGRATION: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED),
        derive=derive_migration,
        reward=REWARDS["dependency-migration"],
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
    """Return the tasks of the kind in `lineage.kinds` that a change gives, or why it gives none.

    Their base trees are in the store then, so that the clone is not needed for them again.

    Raises:
        Transient: engine, disk or network failed.
    """
    (kind,) = lineage.kinds
    row = TASK_KINDS[kind]
    result = row.derive(lineage, services)
    if row.check is not None and not isinstance(result, KindRejection):
        result = next(filter(None, (row.check(lineage, task, services) for task in result)), result)
    if not isinstance(result, KindRejection):
        for task in result:
            keep_tree(task, services)
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
        published=compare_with_published(lineage, services) if lineage.verification else None,
    )
