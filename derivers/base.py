"""Parts that all derivers share: their signature, their rejection, and the fields that a task takes from its change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from backends.services import Services
from evaluation.controls import NO_CONTROLS
from taskdb.records import Kind, Task, TestOrigin
from taskdb.records.lineage import Lineage
from taskdb.records.verdicts import append_addition


@dataclass(frozen=True)
class KindRejection:
    """Why a change gives no task of a kind."""

    reason: StrEnum | str
    detail: str
    """A line for people."""


class FewerTasks(list[Task]):
    """Tasks of an environment that gives fewer of them than wanted.

    `rest`: why it gives no more.
    """

    def __init__(self, tasks: Iterable[Task], rest: KindRejection) -> None:
        super().__init__(tasks)
        self.rest = rest


Deriver = Callable[[Lineage, Services], list[Task] | KindRejection]
"""Makes the tasks of the same kind from a change that fulfils the kind's prerequisites (`mergemill.pipeline.kinds`)."""


def format_task_name(change: str, kind: Kind, number: int | None) -> str:
    """Return the name of a task: that of its change, its kind and, where there are several of the kind, its number."""
    return f"{change}.{kind}" + (f"-{number}" if number is not None else "")


def get_number(task: Task) -> int:
    """Return the number at the end of a task's name; 0 for none."""
    number = task.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def get_next_number(lineage: Lineage) -> int:
    """Return the number of the next task of an environment, after those that exist."""
    return max(map(get_number, lineage.existing), default=0) + 1


def count_wanted(lineage: Lineage, services: Services, of_change: int) -> int:
    """Return how many tasks a call of the deriver is to give: those that an environment lacks, or a step of them.

    Args:
        lineage: environment or change.
        services: settings with the number of tasks of an environment.
        of_change: number of tasks where none is set for environments.
    """
    per_environment = services.settings.derive.per_environment
    missing = per_environment - len(lineage.existing) if per_environment else of_change
    return missing if lineage.step is None else min(missing, lineage.step)


def build_task(lineage: Lineage, kind: Kind, number: int | None = None, **fields: Any) -> Task:
    """Return a task with all fields that follow from its change, overridden by `fields`.

    Args:
        lineage: the change. Lists and script are empty where it was not verified, and the image where it was not
            built.
        kind: kind of the task.
        number: appended to the name where a change gives several tasks of the same kind.
        fields: fields of the task, in place of those that follow from the change.
    """
    candidate = lineage.candidate
    addition = lineage.verdict.addition if lineage.verdict else ""
    common: dict[str, Any] = {
        "parent": candidate.id,
        "candidate": candidate.id,
        "source": candidate.source,
        "kind": kind,
        "name": format_task_name(candidate.name, kind, number),
        "repo": candidate.repo,
        "language": candidate.language,
        "language_version": "",
        "version": candidate.version,
        "base_commit": candidate.base_commit,
        "created_at": candidate.created_at,
        "license": candidate.license,
        "problem_statement": append_addition(candidate.problem_statement, addition),
        "hints": candidate.hints,
        "gold_patch": lineage.gold_patch,
        "test_patch": lineage.tests.patch,
        **NO_CONTROLS,
        "FAIL_TO_PASS": (),
        "PASS_TO_PASS": (),
        "eval_script": None,
        "plan": None,
        "image": "",
        "image_digest": "",
        "test_seconds": 0.0,
        "environment": "none",
    }
    values = common | _get_environment_fields(lineage) | _get_verified_fields(lineage) | fields
    listed = {*(test for test, _ in values["FAIL_TO_PASS"]), *values["PASS_TO_PASS"]}
    weak_tests = lineage.verification.weak_tests if lineage.verification else ()
    return Task(**values, weak_tests=tuple(weak for weak in weak_tests if weak.test in listed))


def _get_environment_fields(lineage: Lineage) -> dict[str, Any]:
    """Return the fields that follow from the environment; none where it is missing."""
    environment = lineage.environment
    if environment is None:
        return {}
    return {
        "parent": environment.id,
        "plan": environment.plan,
        "image": environment.image,
        "language_version": environment.plan.language_version,
        "image_digest": environment.image_digest,
        "environment": "verified",
    }


def _get_verified_fields(lineage: Lineage) -> dict[str, Any]:
    """Return the fields that follow from the verification; none where it is missing, or decides nothing of the task."""
    verification = lineage.verification
    if verification is None or lineage.wanted is not None:
        return {}
    return {
        "parent": verification.id,
        **{name: getattr(verification, name) for name in NO_CONTROLS},
        "FAIL_TO_PASS": verification.FAIL_TO_PASS,
        "PASS_TO_PASS": verification.PASS_TO_PASS,
        "eval_script": verification.eval_script,
        "test_seconds": max(verification.list_gold_seconds(), default=0.0),
        "tests": TestOrigin.MODEL_WRITTEN if verification.written_tests else TestOrigin.HUMAN,
    }


def check_statement(lineage: Lineage) -> KindRejection | None:
    """Return a rejection where the judge has excluded the statement; for kinds that use the change's own statement."""
    verdict = lineage.verdict
    if verdict is None or verdict.set_aside is None:
        return None
    finding = next((finding for finding in verdict.findings if finding.rule == verdict.set_aside), None)
    detail = f"{finding.detail}: {finding.quote!r}" if finding else "excluded by the judge"
    return KindRejection(verdict.set_aside, detail)
