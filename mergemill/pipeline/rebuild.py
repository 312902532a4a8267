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
from verifiers.judge.rules import DECISIVE, apply_rules
from verifiers.judge.stage import build_task_case


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
        findings = apply_rules(build_task_case(task, services, repository, commit))
    for finding in findings:
        if finding.rule in DECISIVE or LEFT_OPEN.match(finding.rule):
            return KindRejection(finding.rule, f"{finding.detail}: {finding.quote!r}")
    if leaks := audit_image(task, services):
        return KindRejection(Reason.IMAGE_LEAKS, f"/{leaks[0].path}: {leaks[0].description}")
    return None
