"""Decisions about submitted tests, from the reports of their runs on several trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

REPEATS = 2
"""Number of runs before the fix, and number of runs after it."""
REWRITTEN_FAULT = "fault-rewritten"
"""Operator of an edit that brings the fault back in different code, which a reader does not recognise."""
OMITTED_HUNK = "hunk-left-out"
"""Operator of an edit that brings a part of the fault back unchanged, so that a reader recognises it."""
SHORT_RUN_SECONDS = 60
"""Seconds that a short run may take in addition to four times the longest run so far."""


class ReportView(Protocol):
    """Report of a run: outcomes by test id, and files that could not be collected."""

    @property
    def outcomes(self) -> Mapping[str, Any]:
        """Test id -> outcome."""

    @property
    def uncollected(self) -> Collection[str]:
        """Test files that could not be collected."""

    def has_passed(self, test: str) -> bool:
        """Return whether the test ran and passed."""

    def has_failed(self, test: str) -> bool:
        """Return whether the test ran and failed."""


@dataclass(frozen=True)
class SubmittedTestsResult:
    """Results of submitted tests before and after the fix."""

    detecting_tests: frozenset[str] = frozenset()
    """Tests that failed in every run before the fix, passed in every run after it, and did not fail unpatched."""
    supporting_tests: frozenset[str] = frozenset()
    """The detecting tests and the new tests that pass after the fix: the tests that the patch is credited with."""
    failures: tuple[str, ...] = ()
    """Tests that fail after the fix, and files that cannot be collected then."""
    lost_tests: tuple[str, ...] = ()
    """PASS_TO_PASS tests that the patch removed or broke."""
    tampering: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether all submitted tests pass after the fix."""
        return bool(self.supporting_tests) and not self.failures and not self.lost_tests

    def find_failure(self) -> str | None:
        """Return the reason the tests show nothing; None if they detect the fault and hold."""
        if self.tampering:
            return self.tampering[0]
        if self.lost_tests:
            return f"{self.lost_tests[0]} passed before and is missing or fails now"
        if self.failures:
            return f"not passing after the fix: {self.failures[0]}"
        return None if self.detecting_tests else "no test fails before the fix and passes after it"


def compare_reports(
    baseline: ReportView,
    before: Sequence[ReportView],
    after: Sequence[ReportView],
    *,
    pass_to_pass: Collection[str],
    listed_tests: Collection[str],
) -> SubmittedTestsResult:
    """Return the result of submitted tests from their reports.

    Args:
        baseline: report of the unpatched test files before the fix; empty when the patch only adds files.
        before: reports of the submitted tests before the fix.
        after: reports of the submitted tests after the fix.
        pass_to_pass: PASS_TO_PASS.
        listed_tests: FAIL_TO_PASS and PASS_TO_PASS; failures of existing tests in neither list are ignored.
    """
    stable = {test for test in after[0].outcomes if all(report.has_passed(test) for report in after)}
    detecting = {
        test for test in stable if all(report.has_failed(test) for report in before) and not baseline.has_failed(test)
    }
    failures = [
        test
        for test in sorted({test for report in after for test in report.outcomes})
        if any(report.has_failed(test) for report in after)
        and not baseline.has_failed(test)
        and (test in listed_tests or test not in baseline.outcomes)
    ]
    failures += sorted({file for report in after for file in report.uncollected} - set(baseline.uncollected))
    lost = sorted(
        test for test in baseline.outcomes if test in pass_to_pass and baseline.has_passed(test) and test not in stable
    )
    return SubmittedTestsResult(
        detecting_tests=frozenset(detecting),
        supporting_tests=frozenset(detecting | (stable - set(baseline.outcomes))),
        failures=tuple(failures),
        lost_tests=tuple(lost),
    )


def is_missed(report: ReportView | None, tests: Iterable[str], *, killed: bool) -> bool:
    """Return whether a fault stays undetected: no test failed or is absent, or the run was killed."""
    if report is None or killed:
        return True
    return not any(report.has_failed(test) or test not in report.outcomes for test in tests)


def find_false_alarm(report: ReportView | None, tests: Iterable[str]) -> str | None:
    """Return the first of the tests that does not pass; None when all pass."""
    return next((test for test in sorted(tests) if report is None or not report.has_passed(test)), None)


def compute_line_share(spans: Iterable[tuple[str, int, int]], covered: Mapping[str, Collection[int]]) -> float:
    """Return the share of the lines of the spans (path, first line, last line) that were run; 1 without lines."""
    lines = {(path, line) for path, first, last in spans for line in range(first, last + 1)}
    return sum(line in covered.get(path, ()) for path, line in lines) / len(lines) if lines else 1.0


def compute_quality(parts: Mapping[str, float]) -> float:
    """Return the value of tests that passed all gates, the average of 1 and the measured shares."""
    shares = [1.0, *(parts[name] for name in ("mutants_killed", "covered") if name in parts)]
    return sum(shares) / len(shares)


def concatenate_patches(first: bytes, second: bytes) -> bytes:
    """Return two patches as a single patch; the second applies on top of the first."""
    return b"".join(patch if patch.endswith(b"\n") else patch + b"\n" for patch in (first, second) if patch)
