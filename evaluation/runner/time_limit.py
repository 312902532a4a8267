"""Time limits of repeated runs of tests: a run that takes many times as long as an earlier one hangs."""

from __future__ import annotations

from dataclasses import dataclass

HANG_FACTOR = 10
"""A run that takes this many times the seconds of an earlier one hangs. Other work on the machine costs less."""
MIN_REPEAT_SECONDS = 120.0
"""Least time limit of a repeated run: without the gold patch a test may wait for an event in vain."""
MIN_GRADING_SECONDS = 300.0
"""Least time limit of a run with a submission, here and elsewhere: the machine and the instances of tests differ."""


@dataclass(frozen=True, kw_only=True)
class TimeLimit:
    """Time limit of a run, from the seconds of an earlier one. The general limit of a run applies as well."""

    expected: float
    """Seconds of the earlier run."""
    minimum: float
    """Least limit in seconds."""

    @property
    def seconds(self) -> float:
        """The limit in seconds."""
        return max(self.minimum, HANG_FACTOR * self.expected)

    def describe(self) -> str:
        """Return why a run that exceeded the limit was ended."""
        return f"the tests hang: they were ended after {self.seconds:.0f} s, an earlier run took {self.expected:.1f} s"


def limit_repeat(expected: float) -> TimeLimit | None:
    """Return the limit of a repeated run; None where no run has ended before (0 seconds)."""
    return TimeLimit(expected=expected, minimum=MIN_REPEAT_SECONDS) if expected > 0 else None


def limit_grading(expected: float) -> TimeLimit | None:
    """Return the limit of a run with a submission; None where the seconds of the gold patch are not known (0)."""
    return TimeLimit(expected=expected, minimum=MIN_GRADING_SECONDS) if expected > 0 else None
