"""The benchmark of flaky tests: its projects, its counts and its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.flaky.cases import CASES
from benchmarks.flaky.measure import make_project, measure
from benchmarks.flaky.simulate import REPEATS, CaseResult, FlakyCounts, count_tests, simulate
from benchmarks.flaky.tables import render_table
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from tests.containers import make_services


def make_report(**statuses: str) -> EvaluationReport:
    outcomes = {test: Outcome(status=OutcomeStatus(status)) for test, status in statuses.items()}
    return EvaluationReport(outcomes=outcomes, uncollected={})


def test_a_listed_test_slips_only_if_it_passes_in_the_certificate() -> None:
    passed = make_report(a="passed", b="passed", c="passed")
    late = make_report(a="failed", b="passed", c="passed")
    counts = count_tests(["a", "b", "c"], [passed] * 10, [*[passed] * 4, late, *[passed] * 5], [passed] * 6)
    assert [(counts[number].caught, counts[number].slipped) for number in REPEATS] == [(0, 3), (1, 2), (1, 2)]
    fresh = [*[passed] * 5, make_report(a="passed", b="failed", c="passed")]
    counts = count_tests(["a", "b"], [passed] * 10, [passed] * 10, fresh)
    assert [counts[number].slipped for number in REPEATS] == [1, 1, 1]


def test_simulated_shares_follow_from_the_failure_rate() -> None:
    results = list(simulate(2000, seed=1))
    assert [result.rate for result in results] == ["1/2", "1/4", "1/8", "1/20"] * 2
    for result in results:
        passes = 1 - 1 / int(result.rate.removeprefix("1/"))
        runs = 2 if result.name == "PASS_TO_PASS" else 1
        for number, counts in result.counts.items():
            assert counts.slipped / counts.tests == pytest.approx(passes ** (runs * number + 6), abs=0.05)
            same = passes**number + (1 - passes) ** number
            assert counts.caught / counts.tests == pytest.approx(1 - same**runs, abs=0.05)
    assert list(simulate(50, seed=1)) == list(simulate(50, seed=1)) != list(simulate(50, seed=2))


def test_projects_are_made_by_their_seed() -> None:
    project = make_project(3, copies=2)
    assert project == make_project(3, copies=2) != make_project(4, copies=2)
    assert list(project.tests) == list(CASES)
    for tests in project.tests.values():
        assert len(tests) == 2
        assert all("def test_flaky()" in project.files[test.partition("::")[0]] for test in tests)
    for path, text in project.files.items():
        compile(text, path, "exec")


def test_a_table_has_shares_with_intervals() -> None:
    counts = {number: FlakyCounts(tests=10, caught=8, slipped=0) for number in REPEATS}
    table = render_table("in containers", [CaseResult(name="at random", rate="1/2", counts=counts)])
    assert table.splitlines()[2].startswith("| at random | 1/2 | 10 | 80 (49-94) | ")


@pytest.mark.docker
@pytest.mark.slow
def test_a_project_is_measured_in_containers(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=max(REPEATS), budget_seconds=900)
    measured = {(result.name, result.rate): result.counts for result in measure(services, tmp_path, [5], 1)}
    assert len(measured) == len(CASES)
    even = measured["passes in even seconds", "1/2"]
    assert {counts.tests for counts in even.values()} == {1}
    steady = measured["needs another test of its file before it", "0 in any run"]
    assert [(steady[number].caught, steady[number].slipped) for number in REPEATS] == [(0, 1)] * 3
