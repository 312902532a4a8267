"""Certificates with a single grading of the gold submission, for tests that need a certified task.

A certificate takes at least three, each in one or two containers, and in twenty where submitted tests are graded. That
takes more than half of the containers of a command such as `mergemill run`. Three gradings, their conditions and the
exploits are tested in tests/verifiers/test_certify.py, and in test_end_to_end.py by the command. A certificate that is
compared with one of another process must be whole: new processes, such as the nodes of a cluster, make no short ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import verifiers
from backends.services import Services
from taskdb.records import Certificate, Rejection
from taskdb.records.lineage import Lineage

certify = verifiers.certify


def certify_shortly(lineage: Lineage, services: Services, *arguments: Any, **named: Any) -> Certificate | Rejection:
    """Do what `verifiers.certify` does, with one grading of the gold submission where that takes containers."""
    if not lineage.require_task().image:
        return certify(lineage, services, *arguments, **named)
    settings = services.settings
    # A copy is not validated: the settings of users allow no fewer than three.
    once = settings.model_copy(update={"certify": settings.certify.model_copy(update={"runs": 1})})
    return certify(lineage, replace(services, settings=once), *arguments, **named)


def shorten_certificates() -> None:
    """Let the stage `certify` of this process grade the gold submission once."""
    verifiers.certify = certify_shortly
