"""From a refused attempt to what policies look at: the log's end, the lines that say most, failures by message."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from backends.testing.outcomes import Report, Status
from builders.accept import HOPELESS, Refused
from builders.repair.policy import Observation, Spent
from languages.draft import Draft
from taskdb.records import BuildPlan

TAIL = 6000
"""Characters of the log's end."""
LINES = 30
"""Of the log, those that say most."""
MESSAGES = 12
"""Kinds of failures told."""

_TELLING = re.compile(
    r"error[: \[]|fatal|exception|cannot |could not|no such file|not found|no module named|undefined|unresolved|failed|"
    r"denied|refused|unsupported|incompatible|requires |missing|deprecat",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


def observe(draft: Draft, plan: BuildPlan, refused: Refused, *, attempt: int, spent: Spent) -> Observation:
    """What policies are shown of a refused attempt."""
    return Observation(
        draft=draft, plan=plan, reason=refused.reason, detail=refused.detail, log=refused.log,
        tail=refused.log[-TAIL:], lines=(*telling_lines(refused.log), *failures(refused.report)),
        report=refused.report, discovered=tuple(refused.discovered), attempt=attempt, spent=spent,
        hopeless=refused.reason in HOPELESS,
    )  # fmt: skip


def telling_lines(log: str) -> Iterator[str]:
    """The last lines of a log that seem to say what went wrong, each once, in their order."""
    found: dict[str, str] = {}
    for line in reversed(log.splitlines()):
        text = line.strip()[:400]
        if text and _TELLING.search(text):
            found.setdefault(_NUMBERS.sub("0", text), text)
            if len(found) == LINES:
                break
    yield from reversed(found.values())


def failures(report: Report | None) -> Iterator[str]:
    """`12 tests failed: ConnectionRefusedError: ...`, the most frequent first, and files that were not collected."""
    if report is None:
        return
    bad = [o.message for o in report.outcomes.values() if o.status in (Status.FAILED, Status.ERROR) and o.message]
    kinds = Counter(_NUMBERS.sub("0", message[:300]) for message in bad)
    said = {_NUMBERS.sub("0", message[:300]): message[:300] for message in bad}
    yield from (f"{count} tests failed: {said[kind]}" for kind, count in kinds.most_common(MESSAGES))
    unread = Counter(why[:300] for why in report.uncollected.values())
    yield from (f"{count} files not collected: {why}" for why, count in unread.most_common(MESSAGES))
