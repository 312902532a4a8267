"""Check of rebuild tasks: the judge's rules on their statements, and the audit of their images.

The statement is compared with the tree that the agent is given, which lacks the removed code and the hidden tests.
"""

from __future__ import annotations

from enum import StrEnum

from backends.overlay import open_task_tree
from backends.services import Services
from derivers.base import KindRejection
from mergemill.pipeline.variants import LEFT_OPEN
from taskdb.records import Task
from taskdb.records.lineage import Lineage
from verifiers.audit import audit_image
from verifiers.judge.case import JudgeCase
from verifiers.judge.rules import DECISIVE, apply_rules
from verifiers.judge.stage import TreeSearch


class Reason(StrEnum):
    """Why a rebuild task is rejected where no rule of the judge rejects its statement."""

    IMAGE_LEAKS = "image-leaks"
    """The image contains the removed code, such as in an installed copy of the package."""


def check_rebuild(_lineage: Lineage, task: Task, services: Services) -> KindRejection | None:
    """Return why a rebuild task is rejected, or None.

    Raises:
        Transient: the engine failed.
    """
    with open_task_tree(task, services) as (repository, commit):
        case = JudgeCase(
            name=task.name,
            repo=task.repo,
            statement=task.problem_statement,
            gold_patch=services.artifacts.get_text(task.gold_patch),
            test_patch=services.artifacts.get_text(task.test_patch),
            fail_to_pass=tuple(test for test, _ in task.FAIL_TO_PASS),
            pass_to_pass=task.PASS_TO_PASS,
            find_in_base_tree=TreeSearch(lambda: repository, commit).find_texts,
        ).cache_searches()
        findings = apply_rules(case)
    for finding in findings:
        if finding.rule in DECISIVE or LEFT_OPEN.match(finding.rule):
            return KindRejection(finding.rule, f"{finding.detail}: {finding.quote!r}")
    if leaks := audit_image(task, services):
        return KindRejection(Reason.IMAGE_LEAKS, f"/{leaks[0].path}: {leaks[0].description}")
    return None
