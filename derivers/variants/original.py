"""The bug fix or feature of a change, of which variants are made."""

from __future__ import annotations

from backends.services import Services
from derivers.base import KindRejection
from derivers.bugfix import derive_bugfix
from derivers.feature import derive_feature
from taskdb.records import Task
from taskdb.records.lineage import Lineage

NO_ORIGINAL = "no-original"
"""Reason of a change that is neither a bug fix nor a feature; the detail gives the reasons of these kinds."""


def derive_original(lineage: Lineage, services: Services) -> Task | KindRejection:
    """Return the change's own bug fix or feature."""
    rejections = []
    for derive in (derive_bugfix, derive_feature):
        result = derive(lineage, services)
        if not isinstance(result, KindRejection):
            return result[0]
        rejections.append(result)
    first = rejections[0] if rejections[0].reason == rejections[1].reason else rejections[1]
    return KindRejection(NO_ORIGINAL, f"{first.reason}: {first.detail}")
