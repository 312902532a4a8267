"""Outcomes drawn by a seeded generator and compared by the code of verification: thousands of tests, no container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.flaky.cases import PROBABILITIES
from evaluation.lists import OutcomeLists, make_lists
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.records import TestId

REPEATS = (3, 5, 10)
"""Numbers of test-only and of gold runs that are compared."""
GRADINGS, EVALUATIONS = 3, 2
"""Gradings of gold for a certificate, and runs of the tests that each takes."""

_PASSED, _FAILED = Outcome(status=OutcomeStatus.PASSED), Outcome(status=OutcomeStatus.FAILED, message="assert 0")


@dataclass(frozen=True, kw_only=True)
class FlakyCounts:
    """What became of the tests of one case after a number of repeats."""

    tests: int
    caught: int
    """Excluded as flaky."""
    slipped: int
    """In FAIL_TO_PASS or PASS_TO_PASS, and passed in all runs of the certificate."""


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """Counts of one case by the number of repeats."""

    name: str
    rate: str
    counts: Mapping[int, FlakyCounts]


def count_tests(
    tests: Sequence[TestId],
    test_only: Sequence[EvaluationReport],
    gold: Sequence[EvaluationReport],
    certificate: Sequence[EvaluationReport],
) -> dict[int, FlakyCounts]:
    """Return number of repeats -> what became of `tests`, by the first runs of both trees.

    Args:
        tests: the flaky tests of one case.
        test_only: the reports of as many test-only runs as the largest of REPEATS.
        gold: as many of gold runs.
        certificate: reports of gold runs made when the lists were frozen.
    """
    steady = {test for test in tests if all(report.has_passed(test) for report in certificate)}
    counts = {}
    for number in REPEATS:
        lists = make_lists(test_only[:number], gold[:number])
        listed, flaky = _collect_tests(lists)
        counts[number] = FlakyCounts(
            tests=len(tests), caught=len(flaky.intersection(tests)), slipped=len(listed & steady)
        )
    return counts


def _collect_tests(lists: OutcomeLists) -> tuple[set[TestId], set[TestId]]:
    """Return the listed and the flaky tests."""
    return {*lists.pass_to_pass, *(test for test, _ in lists.fail_to_pass)}, {
        flaky_test.test for flaky_test in lists.flaky
    }


def simulate(n_tests: int, seed: int) -> Iterator[CaseResult]:
    """Yield the counts of tests that fail at random, as PASS_TO_PASS and as FAIL_TO_PASS.

    Args:
        n_tests: tests of each failure rate and list.
        seed: of the generator.
    """
    random = Random(seed)  # noqa: S311 - a simulation
    for role in ("PASS_TO_PASS", "FAIL_TO_PASS"):
        for probability in PROBABILITIES:
            tests = [f"t.py::test_{number}" for number in range(n_tests)]

            def draw(rate: float, tests: Sequence[TestId] = tests) -> EvaluationReport:
                outcomes = {test: _FAILED if random.random() < rate else _PASSED for test in tests}
                return EvaluationReport(outcomes=outcomes, uncollected={})

            most = max(REPEATS)
            before = [draw(1.0 if role == "FAIL_TO_PASS" else probability) for _ in range(most)]
            after = [draw(probability) for _ in range(most)]
            fresh = [draw(probability) for _ in range(GRADINGS * EVALUATIONS)]
            yield CaseResult(
                name=role, rate=f"1/{1 / probability:.0f}", counts=count_tests(tests, before, after, fresh)
            )
