"""The kinds of tasks: `TASK_KINDS` has a row for each, with its prerequisites, deriver and reward.

A new kind is a member of `Kind`, a module in `derivers`, and a row here; a new oracle is also a reward in `verifiers`.
Which formats can carry a task is decided by `exporters.FORMATS`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from unidiff.errors import UnidiffParseError

from backends.services import Services
from core.errors import InputError
from core.settings.group import replace_values
from derivers.base import Deriver, FewerTasks, KindRejection, format_task_name
from derivers.bugfix import compare_with_published, derive_bugfix
from derivers.changed_code import measure_changed_code
from derivers.combined import derive_combined
from derivers.feature import derive_feature
from derivers.injected import derive_injected
from derivers.instructions import derive_instructions
from derivers.mirrored import derive_mirrored
from derivers.performance import derive_performance
from derivers.rebuild import derive_rebuild
from derivers.review import derive_review
from derivers.simulated import derive_simulated
from derivers.structure.migration import derive_migration
from derivers.structure.refactoring import derive_refactoring
from derivers.test_writing import derive_test_writing
from derivers.variants import derive_terse, derive_traceback, derive_user_story
from mergemill.pipeline.base_trees import keep_tree
from mergemill.pipeline.instructions import make_vote_collector
from mergemill.pipeline.mirrored import MIRROR_GATES
from mergemill.pipeline.rebuild import check_rebuild
from mergemill.pipeline.variants import check_variant
from taskdb.records import Kind, Rejection, Stage, Task
from taskdb.records.kinds import Prerequisites, Requirement
from taskdb.records.lineage import Lineage, StepTasks
from taskdb.records.tags import ChangeKind
from verifiers.rewards import REWARDS, SIMULATED, TESTS, Reward

log = logging.getLogger(__name__)


class Reason(StrEnum):
    """Why an environment gives no task, or no further task."""

    NO_IMAGE = "no-image"
    """Its image is missing, and was not built again."""
    NO_FURTHER_TASK = "no-further-task"
    """Fewer tasks than wanted; the deriver has nothing to add to them."""


@dataclass(frozen=True, kw_only=True)
class TaskKind:
    """A row: everything that depends on the kind of a task."""

    prerequisites: Prerequisites
    derive: Deriver
    reward: Reward
    is_default: bool = False
    """Whether such tasks are derived when the command names no kind."""
    check: Callable[[Lineage, Task, Services], KindRejection | None] | None = None
    """Condition on each derived task that uses other stages than `derive`. Tasks that it rejects are left out; where
    none remains, the first rejection is the kind's."""


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
        prerequisites=Prerequisites(requirement=Requirement.ENVIRONMENT, needs_new_tests=False),
        derive=derive_injected,
        reward=REWARDS[TESTS],
    ),
    Kind.REBUILD: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.ENVIRONMENT, needs_new_tests=False),
        derive=derive_rebuild,
        reward=REWARDS[TESTS],
        check=check_rebuild,
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
    Kind.MIRRORED: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.ENVIRONMENT, needs_new_tests=False),
        derive=partial(derive_mirrored, gates=MIRROR_GATES),
        reward=REWARDS[TESTS],
    ),
    Kind.INSTRUCTIONS: TaskKind(
        prerequisites=Prerequisites(requirement=Requirement.VERIFIED),
        derive=partial(derive_instructions, make_collector=make_vote_collector),
        reward=REWARDS["instructions"],
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


def derive(lineage: Lineage, services: Services) -> Sequence[Task | Rejection] | Rejection:
    """Return the tasks of the kind in `lineage.kinds` that a change or its environment gives, or why it gives none.

    Their base trees are in the store then, so that the clone is not needed for them again. An environment that gives
    fewer tasks than its step is rejected after its tasks, for all that were wanted: nothing further is to be had.

    Raises:
        Transient: engine, disk or network failed.
    """
    (kind,) = lineage.kinds
    result = _run_deriver(TASK_KINDS[kind], lineage, services)
    if isinstance(result, KindRejection):
        return _reject(lineage, kind, result, services)
    for task in result:
        keep_tree(task, services)
    tasks = [_add_changed_code(task, services) for task in result]
    if lineage.wanted is None:
        return tasks
    if isinstance(result, StepTasks):
        return StepTasks(tasks, result.progress)
    if len(tasks) >= (lineage.wanted if lineage.step is None else lineage.step):
        return tasks
    rest = result.rest if isinstance(result, FewerTasks) else KindRejection(Reason.NO_FURTHER_TASK, "nothing is left")
    return [*tasks, _reject(lineage, kind, rest, services, n_new=len(tasks))]


def _run_deriver(row: TaskKind, lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the result of a kind's deriver and of its check."""
    if row.prerequisites.requirement is Requirement.ENVIRONMENT and (problem := _restore_image(lineage, services)):
        return problem
    # Derivers read from the settings how many tasks an environment is to give in all.
    number = 0 if lineage.wanted is None else len(lineage.existing) + lineage.wanted
    result = row.derive(
        lineage, replace(services, settings=replace_values(services.settings, {"per_environment": number}))
    )
    if row.check is None or isinstance(result, KindRejection):
        return result
    checked = [(task, row.check(lineage, task, services)) for task in result]
    first = next((rejection for _, rejection in checked if rejection is not None), None)
    kept = [task for task, rejection in checked if rejection is None]
    if first is None:
        return result
    if kept and isinstance(result, StepTasks):
        return StepTasks(kept, result.progress)  # the next step searches for those that are left out
    return FewerTasks(kept, first) if kept else first


def _restore_image(lineage: Lineage, services: Services) -> KindRejection | None:
    """Build the image of an environment again where it is missing: those of rejected changes are the first to go."""
    image = lineage.require_environment().image
    if services.images.inspect(image) is not None:
        return None
    from builders.build import build  # noqa: PLC0415 - few environments are built again

    built = build(lineage.candidate, services)
    if services.images.inspect(image) is not None:
        return None
    problem = f"{built.reason}: {built.detail}" if isinstance(built, Rejection) else f"it is {built.image} now"
    return KindRejection(Reason.NO_IMAGE, f"the image {image} is gone and was not built again: {problem}")


def _reject(lineage: Lineage, kind: Kind, rejection: KindRejection, services: Services, *, n_new: int = 0) -> Rejection:
    """Return the rejection of a kind; `n_new`: tasks that the environment has given all the same."""
    candidate, name, detail = lineage.candidate, lineage.candidate.name, rejection.detail
    if lineage.wanted is not None:
        n_before = len(lineage.existing)
        name = format_task_name(name, kind, n_before + lineage.wanted)
        detail = f"{n_before + n_new} of {n_before + lineage.wanted} tasks: {detail}"
    return Rejection(
        parent=_find_rejected(lineage, kind),
        name=name,
        source=candidate.source,
        stage=Stage.DERIVE,
        reason=str(rejection.reason),
        detail=detail,
        kind=kind,
        published=compare_with_published(lineage, services)
        if lineage.verification is not None and lineage.wanted is None
        else None,
    )


def _find_rejected(lineage: Lineage, kind: Kind) -> str:
    """Return the id of the record that gives no task of a kind."""
    requirement = TASK_KINDS[kind].prerequisites.requirement
    if requirement is Requirement.ENVIRONMENT and (lineage.wanted is not None or lineage.verdict is None):
        return lineage.require_environment().id
    if requirement in (Requirement.CANDIDATE, Requirement.NO_ENVIRONMENT):
        return lineage.candidate.id
    return lineage.require_verdict().id


def _add_changed_code(task: Task, services: Services) -> Task:
    """Return the task with the code its gold patch changes; without, and with a warning, if no tree can be read."""
    try:
        return task.model_copy(update={"changed_code": measure_changed_code(task, services)})
    except (InputError, UnidiffParseError) as error:
        log.warning("the functions that %s changes are not known: %s", task.name, error)
        return task
