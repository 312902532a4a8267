"""Columns of SWT-Bench (Mündler et al. 2024, arXiv 2406.12952), from reports and executed lines of test runs.

A test that did not pass in a run failed in it: one that failed, is absent, or was skipped. Executed lines are sets: a
line that the base suite runs already is not newly covered by running it more often.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from core.patch_headers import parse_patch_set, strip_name
from evaluation.reports.outcomes import OutcomeStatus
from guest.scoring.coverage import CoveredLines
from guest.scoring.submitted_tests import ReportView

Line = tuple[str, int]
"""Path and number of a line, 1-based."""


class Transition(StrEnum):
    """Status of a test before and after the fix."""

    FAIL_TO_PASS = "F->P"  # noqa: S105 - a transition of a test
    PASS_TO_PASS = "P->P"  # noqa: S105
    FAIL_TO_FAIL = "F->F"
    PASS_TO_FAIL = "P->F"  # noqa: S105


@dataclass(frozen=True, kw_only=True)
class SuiteRuns:
    """A suite of tests before and after the fix: the tests that passed, all that are known, and the lines they run.

    Attributes:
        passed_before: tests that passed before the fix.
        passed_after: tests that passed after it.
        tests: tests of either run.
        lines_before: path -> lines executed before the fix; None where they were not measured.
        lines_after: path -> lines executed after it.
    """

    passed_before: frozenset[str] = frozenset()
    passed_after: frozenset[str] = frozenset()
    tests: frozenset[str] = frozenset()
    lines_before: CoveredLines | None = None
    lines_after: CoveredLines | None = None

    def list_tests(self, transition: Transition) -> frozenset[str]:
        """Return the tests of a transition."""
        before = self.passed_before if transition.value[0] == "P" else self.tests - self.passed_before
        after = self.passed_after if transition.value[-1] == "P" else self.tests - self.passed_after
        return before & after


@dataclass(frozen=True, kw_only=True)
class ChangedLines:
    """Lines that a patch removes, by the tree before it, and adds, by the tree after it."""

    removed: frozenset[Line] = field(default_factory=frozenset)
    added: frozenset[Line] = field(default_factory=frozenset)


def make_suite_runs(
    before: ReportView, after: ReportView, lines_before: CoveredLines | None, lines_after: CoveredLines | None
) -> SuiteRuns:
    """Return the runs of a suite from its reports and executed lines."""
    return SuiteRuns(
        passed_before=_list_passed(before),
        passed_after=_list_passed(after),
        tests=frozenset(before.outcomes) | frozenset(after.outcomes),
        lines_before=lines_before,
        lines_after=lines_after,
    )


def _list_passed(report: ReportView) -> frozenset[str]:
    return frozenset(test for test, outcome in report.outcomes.items() if outcome.status is OutcomeStatus.PASSED)


def list_changed_lines(patch: str) -> ChangedLines:
    """Return the lines that a git diff removes and adds.

    Raises:
        UnidiffParseError: the diff is malformed.
    """
    removed, added = set[Line](), set[Line]()
    for file in parse_patch_set(patch):
        for hunk in file:
            for line in hunk:
                if line.is_removed and line.source_line_no:
                    removed.add((strip_name(file.source_file), line.source_line_no))
                elif line.is_added and line.target_line_no:
                    added.add((strip_name(file.target_file), line.target_line_no))
    return ChangedLines(removed=frozenset(removed), added=frozenset(added))


def compute_columns(
    submitted: SuiteRuns | None, base: SuiteRuns, gold: SuiteRuns, changed: ChangedLines
) -> dict[str, float | None]:
    """Return the columns of a submission.

    `applies`: W, the patch applies; `success`: S, at least one added test F->P, and none P->F or F->F; `fails_before`
    (F->X), `fail_to_pass` and `pass_to_pass`: at least one added test of that transition; `coverage_delta`: share of
    the executable lines of the fix that the tests run and the base suite does not; `coverage_of_gold`: the same lines
    over those of the change's own tests. Coverage is None where it was not measured, and 0 for a patch that does not
    apply.

    Args:
        submitted: runs of the tests with the submission; None where its patch does not apply.
        base: runs of the tests without it.
        gold: runs of the change's own tests.
        changed: lines that the fix removes and adds.
    """
    names = ("applies", "success", "fails_before", "fail_to_pass", "pass_to_pass")
    if submitted is None:
        columns: dict[str, float | None] = dict.fromkeys(names, 0.0)
        measured = _compute_coverage(base, base, gold, changed)
        return columns | {name: None if value is None else 0.0 for name, value in measured.items()}
    added = {transition: submitted.list_tests(transition) - base.list_tests(transition) for transition in Transition}
    keeps = submitted.list_tests(Transition.FAIL_TO_PASS) >= base.list_tests(Transition.FAIL_TO_PASS)
    fails_after = added[Transition.PASS_TO_FAIL] | added[Transition.FAIL_TO_FAIL]
    values = (
        True,
        bool(added[Transition.FAIL_TO_PASS]) and keeps and not fails_after,
        bool(added[Transition.FAIL_TO_PASS] | added[Transition.FAIL_TO_FAIL]),
        bool(added[Transition.FAIL_TO_PASS]),
        bool(added[Transition.PASS_TO_PASS]),
    )
    columns = {name: float(value) for name, value in zip(names, values, strict=True)}
    return columns | _compute_coverage(submitted, base, gold, changed)


def _compute_coverage(
    submitted: SuiteRuns, base: SuiteRuns, gold: SuiteRuns, changed: ChangedLines
) -> dict[str, float | None]:
    """Return both shares of coverage; None where lines were not measured, or there are none to run."""
    runs = (submitted, base, gold)
    if any(run.lines_before is None or run.lines_after is None for run in runs):
        return {"coverage_delta": None, "coverage_of_gold": None}
    new, new_of_gold, executable = set[tuple[str, Line]](), set[tuple[str, Line]](), set[tuple[str, Line]]()
    for side, lines in (("before", changed.removed), ("after", changed.added)):
        of_submitted, of_base, of_gold = (_select(lines, getattr(run, f"lines_{side}")) for run in runs)
        executable |= {(side, line) for line in of_base | of_gold}
        new |= {(side, line) for line in of_submitted & (of_base | of_gold) - of_base}
        new_of_gold |= {(side, line) for line in of_gold - of_base}
    return {
        "coverage_delta": len(new) / len(executable) if executable else None,
        "coverage_of_gold": len(new & new_of_gold) / len(new_of_gold) if new_of_gold else None,
    }


def _select(lines: Collection[Line], covered: Mapping[str, Collection[int]]) -> set[Line]:
    """Return the lines that were executed."""
    return {(path, number) for path, number in lines if number in covered.get(path, ())}
