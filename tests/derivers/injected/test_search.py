"""Which bugs are kept, by the run that tried them."""

from __future__ import annotations

import pytest

from backends.sandbox.base import Ran
from backends.testing.outcomes import Outcome, Report, Status
from backends.testing.run import TestResult
from derivers.injected.search import Reason, hideable_files, judged

PASSING = frozenset({"tests/test_a.py::test_one", "tests/test_a.py::test_two", "src/lib.rs::tests::three"})


def ran(failing: tuple[str, ...] = (), missing: tuple[str, ...] = (), killed_by: str | None = None) -> TestResult:
    """A run in which some of the tests fail and some are missing; all missing: there is no report."""
    told = {test for test in PASSING if not test.endswith(missing or ("?",))} | {"tests/test_a.py::test_old"}
    outcomes = {
        test: Outcome(status=Status.FAILED if test.endswith(failing or ("?",)) else Status.PASSED) for test in told
    }
    report = Report(outcomes=outcomes, uncollected={}) if len(missing) < len(PASSING) else None
    box = Ran(exit_code=1, output="", seconds=1.0, killed_by=killed_by, files={})  # type: ignore[arg-type]
    return TestResult(ran=box, report=report, test_seconds=1.0, script_sha="", log="", applied=True, canaries="none")


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (ran(failing=("one",)), ("tests/test_a.py::test_one",)),
        (ran(failing=("two", "one")), ("tests/test_a.py::test_one", "tests/test_a.py::test_two")),
        (ran(), Reason.NO_MUTANT_NOTICED),
        (ran(failing=("old",)), Reason.NO_MUTANT_NOTICED),
        (ran(failing=("one", "two", "three")), Reason.ALL_TESTS_FAIL),
        (ran(failing=("one",), missing=("two",)), Reason.BUILD_BREAKS),
        (ran(missing=("one", "two", "three")), Reason.BUILD_BREAKS),
        (ran(failing=("three",)), Reason.TESTS_IN_SOURCE),
        (ran(failing=("one",), killed_by="time"), Reason.NEVER_ENDS),
        (ran(killed_by="memory"), Reason.BUILD_BREAKS),
    ],
)  # fmt: skip
def test_a_bug_is_kept_when_some_tests_see_it(result: TestResult, verdict: tuple[str, ...] | Reason) -> None:
    assert judged(result, PASSING, frozenset({"tests/test_a.py"})) == verdict


def test_only_files_of_tests_are_taken_out_of_a_tree() -> None:
    paths = ["tests/test_a.py", "tests/helper.py", "a.py", "a_test.go", "src/lib.rs", "tests/data.json"]
    assert hideable_files(paths) == {"tests/test_a.py", "a_test.go"}
