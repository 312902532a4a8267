"""Canaries in a report: tests of unpredictable names, of which one must pass and the other must fail."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus


@dataclass(frozen=True, kw_only=True)
class CanaryOutcome:
    """Outcome of a canary. `required`: that of a runner that is not manipulated."""

    file: str
    status: OutcomeStatus
    required: OutcomeStatus


def read_required_statuses(canary_list: str) -> dict[str, OutcomeStatus]:
    """Return file -> status of its canary. `canary_list`: lines `pass FILE` and `fail FILE`."""
    lines = (line.partition(" ") for line in canary_list.splitlines())
    return {file: OutcomeStatus.PASSED if word == "pass" else OutcomeStatus.FAILED for word, _, file in lines}


def find_canaries(report: EvaluationReport, required: Mapping[str, OutcomeStatus]) -> list[CanaryOutcome]:
    """Return the canaries in a report.

    A canary has the 32 digits of its file in its name. Plug-ins may report more for the file, such as the check of a
    linter, which passes in both files; only where no name has the digits does all that is reported for the file count.
    """
    canaries = []
    for file, status in required.items():
        outcomes = {test: one for test, one in report.outcomes.items() if test.partition("::")[0] == file}
        word = _CANARY_WORD.search(file.rpartition("/")[2])
        named = {test: one for test, one in outcomes.items() if word and word[0] in test.partition("::")[2]}
        canaries += [
            CanaryOutcome(file=file, status=one.status, required=status) for one in (named or outcomes).values()
        ]
    return canaries


_CANARY_WORD = re.compile("[0-9a-f]{32}")


def describe_canaries(canaries: Sequence[CanaryOutcome], required: Mapping[str, OutcomeStatus]) -> str:
    """Return the status of the canaries (`EvaluationResult.canary_status`)."""
    if not required:
        return "none"
    if any(one.status is not one.required for one in canaries):
        return "wrong"
    return "right" if len({one.file for one in canaries}) == len(required) else "missing"


def has_forged_canary(canaries: Sequence[CanaryOutcome]) -> bool:
    """Return whether the canary that must fail has passed."""
    return any(one.required is OutcomeStatus.FAILED and one.status is OutcomeStatus.PASSED for one in canaries)
