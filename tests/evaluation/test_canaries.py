"""Canaries in a report, by the rules of both graders."""

from __future__ import annotations

import pytest

from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.canaries import describe_canaries, find_canaries, has_forged_canary, read_required_statuses
from guest.verifier.tree_runs import ContainerReport, check_canaries

PASS_WORD, FAIL_WORD = "0123456789abcdef" * 2, "fedcba9876543210" * 2
PASS_FILE, FAIL_FILE = f"tests/test_{PASS_WORD}.py", f"tests/test_{FAIL_WORD}.py"
REQUIRED = read_required_statuses(f"pass {PASS_FILE}\nfail {FAIL_FILE}\n")
PASS_TEST, FAIL_TEST = f"{PASS_FILE}::test_{PASS_WORD}", f"{FAIL_FILE}::test_{FAIL_WORD}"
GOOD = {PASS_TEST: "passed", FAIL_TEST: "failed", "tests/test_a.py::test_1": "passed"}


@pytest.mark.parametrize(
    ("statuses", "expected", "is_forged"),
    [
        (GOOD, "right", False),
        ({**GOOD, f"{FAIL_FILE}::BLACK": "passed", f"{PASS_FILE}::FLAKE8": "failed"}, "right", False),
        ({f"{FAIL_FILE}::BLACK": "passed", **GOOD}, "right", False),
        ({**GOOD, FAIL_TEST: "passed", f"{FAIL_FILE}::BLACK": "failed"}, "wrong", True),
        ({**GOOD, f"{FAIL_FILE}::other_{FAIL_WORD}": "passed"}, "wrong", True),
        ({**GOOD, PASS_TEST: "failed"}, "wrong", False),
        ({PASS_TEST: "passed"}, "missing", False),
        ({PASS_TEST: "passed", f"{FAIL_FILE}::unnamed": "failed"}, "right", False),
        ({PASS_TEST: "passed", f"{FAIL_FILE}::unnamed": "passed"}, "wrong", True),
        ({}, "missing", False),
    ],
)
def test_both_graders_find_the_canaries(statuses: dict[str, str], expected: str, is_forged: bool) -> None:
    outcomes = {test: Outcome(status=OutcomeStatus(status)) for test, status in statuses.items()}
    canaries = find_canaries(EvaluationReport(outcomes=outcomes, uncollected={}), REQUIRED)
    assert (describe_canaries(canaries, REQUIRED), has_forged_canary(canaries)) == (expected, is_forged)
    files = {PASS_FILE: "pass", FAIL_FILE: "fail"}
    assert check_canaries(ContainerReport(statuses, []), files) == expected


def test_a_script_without_canaries_has_none() -> None:
    assert describe_canaries([], {}) == "none"
    assert check_canaries(ContainerReport(GOOD, []), {}) == "none"
