"""Which bugs are kept, by the result of the run with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from backends.sandbox.execution import ExecResult
from derivers.injected.search import BugSearch, Reason, classify_run, find_hideable_files
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.run import EvaluationResult

PASSING = frozenset({"tests/test_a.py::test_one", "tests/test_a.py::test_two", "src/lib.rs::tests::three"})


def make_result(
    failing: tuple[str, ...] = (), missing: tuple[str, ...] = (), killed_by: str | None = None
) -> EvaluationResult:
    """Return a run in which some tests fail and some are missing; with all missing, without a report."""
    reported = {test for test in PASSING if not test.endswith(missing or ("?",))} | {"tests/test_a.py::test_old"}
    outcomes = {
        test: Outcome(status=OutcomeStatus.FAILED if test.endswith(failing or ("?",)) else OutcomeStatus.PASSED)
        for test in reported
    }
    report = EvaluationReport(outcomes=outcomes, uncollected={}) if len(missing) < len(PASSING) else None
    exec_result = ExecResult(exit_code=1, output="", seconds=1.0, killed_by=killed_by, files={})
    return EvaluationResult(
        exec_result=exec_result,
        report=report,
        test_seconds=1.0,
        script_sha256="",
        log="",
        is_applied=True,
        canary_status="none",
    )


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (make_result(failing=("one",)), ("tests/test_a.py::test_one",)),
        (make_result(failing=("two", "one")), ("tests/test_a.py::test_one", "tests/test_a.py::test_two")),
        (make_result(), Reason.NO_MUTANT_DETECTED),
        (make_result(failing=("old",)), Reason.NO_MUTANT_DETECTED),
        (make_result(failing=("one", "two", "three")), Reason.ALL_TESTS_FAIL),
        (make_result(failing=("one",), missing=("two",)), Reason.BUILD_BREAKS),
        (make_result(missing=("one", "two", "three")), Reason.BUILD_BREAKS),
        (make_result(failing=("three",)), Reason.TESTS_IN_SOURCE),
        (make_result(failing=("one",), killed_by="time"), Reason.TIMES_OUT),
        (make_result(killed_by="memory"), Reason.BUILD_BREAKS),
    ],
)
def test_a_bug_is_kept_when_some_tests_fail_with_it(
    result: EvaluationResult, verdict: tuple[str, ...] | Reason
) -> None:
    assert classify_run(result, PASSING, frozenset({"tests/test_a.py"})) == verdict


def test_only_test_files_can_be_hidden() -> None:
    paths = ["tests/test_a.py", "tests/helper.py", "a.py", "a_test.go", "src/lib.rs", "tests/data.json"]
    assert find_hideable_files(paths) == {"tests/test_a.py", "a_test.go"}


def test_a_search_whose_base_run_is_known_starts_no_container() -> None:
    environment = SimpleNamespace(plan=SimpleNamespace(language="python"), test_seconds=1.0, base_report="")
    candidate = SimpleNamespace(base_commit="0" * 40)
    lineage: Any = SimpleNamespace(require_environment=lambda: environment, candidate=candidate)
    services: Any = SimpleNamespace(  # without a sandbox
        test_limits=lambda _: SimpleNamespace(seconds=600.0),
        settings=SimpleNamespace(budget=SimpleNamespace(seconds=1000.0)),
    )
    tree = SimpleNamespace(ls_tree=lambda _: [SimpleNamespace(path="tests/test_a.py")])
    earlier = make_result()
    search, passing = BugSearch.open_base(lineage, services, cast("Any", tree), earlier)
    assert search.require_base_result() is earlier
    assert passing == PASSING | {"tests/test_a.py::test_old"}
