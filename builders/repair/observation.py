"""Observation of a rejected attempt: the log's end, its error lines, and failures grouped by message."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from builders.acceptance import UNREPAIRABLE_REASONS, BuildRejection
from builders.repair.policy import Observation, RepairUsage
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus
from languages.draft import PlanDraft
from taskdb.records import BuildPlan

TAIL_CHARS = 6000
"""Characters of the log's end."""
MAX_ERROR_LINES = 30
"""Limit of error lines from the log."""
MAX_MESSAGES = 12
"""Limit of distinct failure messages."""

_ERROR_LINE = re.compile(
    r"error[: \[]|fatal|exception|cannot |could not|no such file|not found|no module named|undefined|unresolved|failed|"
    r"denied|refused|unsupported|incompatible|requires |missing|deprecat",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


def build_observation(
    draft: PlanDraft,
    plan: BuildPlan,
    rejection: BuildRejection,
    *,
    attempt: int,
    usage: RepairUsage,
    image: str = "",
) -> Observation:
    """Return the observation of a rejected attempt."""
    return Observation(
        draft=draft,
        plan=plan,
        reason=rejection.reason,
        detail=rejection.detail,
        log=rejection.log,
        tail=rejection.log[-TAIL_CHARS:],
        lines=(*find_error_lines(rejection.log), *summarize_failures(rejection.report)),
        report=rejection.report,
        expected_files=tuple(rejection.expected_files),
        attempt=attempt,
        usage=usage,
        image=image,
        is_unrepairable=rejection.reason in UNREPAIRABLE_REASONS,
    )


def find_error_lines(log: str) -> Iterator[str]:
    """Yield the last error lines of a log, without duplicates, in their order."""
    error_lines: dict[str, str] = {}
    for line in reversed(log.splitlines()):
        text = line.strip()[:400]
        if text and _ERROR_LINE.search(text):
            error_lines.setdefault(_NUMBERS.sub("0", text), text)
            if len(error_lines) == MAX_ERROR_LINES:
                break
    yield from reversed(error_lines.values())


def summarize_failures(report: EvaluationReport | None) -> Iterator[str]:
    """Yield `12 tests failed: ConnectionRefusedError: ...`, most frequent first, then files that were not collected."""
    if report is None:
        return
    messages = [
        o.message
        for o in report.outcomes.values()
        if o.status in (OutcomeStatus.FAILED, OutcomeStatus.ERROR) and o.message
    ]
    counts = Counter(_NUMBERS.sub("0", message[:300]) for message in messages)
    samples = {_NUMBERS.sub("0", message[:300]): message[:300] for message in messages}
    yield from (f"{count} tests failed: {samples[key]}" for key, count in counts.most_common(MAX_MESSAGES))
    uncollected = Counter(error[:300] for error in report.uncollected.values())
    yield from (f"{count} files not collected: {error}" for error, count in uncollected.most_common(MAX_MESSAGES))
