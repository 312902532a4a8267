"""From reports to lists: what fails before and passes after, what passes in both, and what cannot be relied upon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from backends.testing.outcomes import FAILING, Outcome, Report, Status
from taskdb.records import FailureKind, TestId

_ASSERTIONS = ("AssertionError", "assert ", "Failed: ", "[XPASS(strict)]", "unexpected success")


@dataclass(frozen=True, kw_only=True)
class Lists:
    """The lists of one candidate, each sorted. `flaky`: test -> its statuses, such as `solved: passed 2, failed 1`."""

    fail_to_pass: tuple[tuple[TestId, FailureKind], ...]
    pass_to_pass: tuple[TestId, ...]
    flaky: tuple[tuple[TestId, str], ...]
    flaky_fail_to_pass: tuple[TestId, ...]
    """The flaky tests that would have been FAIL_TO_PASS by the first pair; not those whose very name varies."""


def make_lists(tested: Sequence[Report], solved: Sequence[Report]) -> Lists:
    """Lists from the repeats of B+T and of B+T+G.

    A test is in a list when every repeat says the same of it. Skipped and xfailed is neither failing nor passing.
    """
    f2p, p2p, flaky, lost = [], [], [], []
    for test in sorted({test for report in (*tested, *solved) for test in report.outcomes}):
        before = [_word(report, test) for report in tested]
        after = [_word(report, test) for report in solved]
        if len(set(before)) > 1 or len(set(after)) > 1:
            flaky.append((test, f"tested: {_tally(tested, test)}; solved: {_tally(solved, test)}"))
            if before[0] == "fails" and after[0] == "passes" and all(test in report.outcomes for report in solved):
                lost.append(test)
        elif after[0] == "passes" and before[0] == "fails":
            f2p.append((test, failure_kind(tested[0], test)))
        elif after[0] == before[0] == "passes":
            p2p.append(test)
    return Lists(fail_to_pass=tuple(f2p), pass_to_pass=tuple(p2p), flaky=tuple(flaky), flaky_fail_to_pass=tuple(lost))


def failure_kind(report: Report, test: TestId) -> FailureKind:
    """How a test failed that fails or is absent in `report`."""
    outcome = report.outcomes.get(test)
    if outcome is None:
        collection = test.partition("::")[0] in report.uncollected
        return FailureKind.COLLECTION if collection else FailureKind.ABSENT
    return FailureKind.ASSERTION if is_assertion(outcome) else FailureKind.ERROR


def is_assertion(outcome: Outcome) -> bool:
    """Whether the test itself found the fault, not an exception that nobody expected."""
    return outcome.status is Status.FAILED and outcome.message.startswith(_ASSERTIONS)


def _word(report: Report, test: TestId) -> str:
    outcome = report.outcomes.get(test)
    if outcome is None or outcome.status in FAILING:
        return "fails"
    return "passes" if outcome.status is Status.PASSED else "neither"


def _tally(reports: Sequence[Report], test: TestId) -> str:
    outcomes = [report.outcomes.get(test) for report in reports]
    counts = Counter("absent" if outcome is None else outcome.status.value for outcome in outcomes)
    return ", ".join(f"{word} {number}" for word, number in counts.most_common())
