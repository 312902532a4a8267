"""From reports to lists: FAIL_TO_PASS, PASS_TO_PASS and the flaky tests of a candidate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from evaluation.reports.outcomes import FAILING_STATUSES, EvaluationReport, Outcome, OutcomeStatus
from taskdb.records import FailureKind, FlakyTest, RunVariant, TestId

_ASSERTION = re.compile(
    r"(?:[\w.]+\.)?(?:\w*AssertionError|MismatchError|FailTest)\b|assert |Failed: (?!Timeout)|\[XPASS\(strict\)\]"
    r"|unexpected success"
)
"""Begins pytest's message of a failed assertion, a failed `pytest.raises`, or a test that was expected to fail."""


@dataclass(frozen=True, kw_only=True)
class OutcomeLists:
    """The lists of a candidate, each sorted."""

    fail_to_pass: tuple[tuple[TestId, FailureKind], ...]
    pass_to_pass: tuple[TestId, ...]
    flaky: tuple[FlakyTest, ...]
    flaky_fail_to_pass: tuple[TestId, ...]
    """Flaky tests that the first pair of runs put into FAIL_TO_PASS, without those missing from a gold run."""


NO_DATES: Mapping[TestId, str] = MappingProxyType({})


def make_lists(
    test_only: Sequence[EvaluationReport], gold: Sequence[EvaluationReport], *, dated: Mapping[TestId, str] = NO_DATES
) -> OutcomeLists:
    """Return the lists made from the repeats of the test-only run and of the gold run.

    A test is listed only if it has the same result in every repeat, and in every row of a report that has several of
    it. A skipped or xfailed test neither fails nor passes.

    Args:
        test_only: reports of the test-only runs.
        gold: reports of the gold runs.
        dated: tests whose ids hold a date of the runs, with that date; they count as flaky.
    """
    f2p, p2p, flaky, lost = [], [], [], []
    for test in sorted({test for report in (*test_only, *gold) for test in report.outcomes}):
        before = [_classify_status(report, test) for report in test_only]
        after = [_classify_status(report, test) for report in gold]
        differs = any(len(set(report.repeated.get(test, ()))) > 1 for report in (*test_only, *gold))
        if len(set(before)) > 1 or len(set(after)) > 1 or differs or test in dated:
            counts = {
                RunVariant.TEST_ONLY: _count_statuses(test_only, test),
                RunVariant.GOLD: _count_statuses(gold, test),
            }
            flaky.append(FlakyTest(test=test, counts=counts, date=dated.get(test, "")))
            if before[0] == "fails" and after[0] == "passes" and all(test in report.outcomes for report in gold):
                lost.append(test)
        elif after[0] == "passes" and before[0] == "fails":
            f2p.append((test, classify_failure(test_only[0], test)))
        elif after[0] == before[0] == "passes":
            p2p.append(test)
    return OutcomeLists(
        fail_to_pass=tuple(f2p), pass_to_pass=tuple(p2p), flaky=tuple(flaky), flaky_fail_to_pass=tuple(lost)
    )


def classify_failure(report: EvaluationReport, test: TestId) -> FailureKind:
    """Return how a test failed that fails in `report` or is absent from it."""
    outcome = report.outcomes.get(test)
    if outcome is None:
        collection = test.partition("::")[0] in report.uncollected
        return FailureKind.COLLECTION if collection else FailureKind.ABSENT
    return FailureKind.ASSERTION if is_assertion(outcome) else FailureKind.ERROR


def is_assertion(outcome: Outcome) -> bool:
    """Return whether the test failed by an assertion of its own, not by an unexpected exception.

    The readers of reports (`guest.harness.reports`) decide it from what each framework reports; pytest's report has
    only the message, which begins with the name of the exception unless that is AssertionError.
    """
    if outcome.status is not OutcomeStatus.FAILED:
        return False
    return bool(_ASSERTION.match(outcome.message)) if outcome.by_assertion is None else outcome.by_assertion


def _classify_status(report: EvaluationReport, test: TestId) -> str:
    outcome = report.outcomes.get(test)
    if outcome is None or outcome.status in FAILING_STATUSES:
        return "fails"
    return "passes" if outcome.status is OutcomeStatus.PASSED else "neither"


def _count_statuses(reports: Sequence[EvaluationReport], test: TestId) -> dict[str, int]:
    return dict(Counter(status for report in reports for status in _list_statuses(report, test)))


def _list_statuses(report: EvaluationReport, test: TestId) -> Sequence[str]:
    """Return the statuses of a test in a report, several where it was reported several times."""
    outcome = report.outcomes.get(test)
    return report.repeated.get(test) or ("absent" if outcome is None else outcome.status.value,)
