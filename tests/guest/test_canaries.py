"""Canaries in a report, by the rules that both graders apply."""

from __future__ import annotations

from pathlib import Path

import pytest

from guest.reports.canaries import find_tampering, has_forged_canary, judge_canaries, parse_canary_list
from guest.verifier import grade

PASS_WORD, FAIL_WORD = "0123456789abcdef" * 2, "fedcba9876543210" * 2
PASS_FILE, FAIL_FILE = f"tests/test_{PASS_WORD}.py", f"tests/test_{FAIL_WORD}.py"
CANARY_LIST = f"pass {PASS_FILE}\nfail {FAIL_FILE}\n".encode()
REQUIRED = parse_canary_list(CANARY_LIST)
PASS_TEST, FAIL_TEST = f"{PASS_FILE}::test_{PASS_WORD}", f"{FAIL_FILE}::test_{FAIL_WORD}"
GOOD = {PASS_TEST: "passed", FAIL_TEST: "failed", "tests/test_a.py::test_1": "passed"}
TWICE = {f"{test}[{number}-2]": status for test, status in GOOD.items() for number in (1, 2)}
ORDINARY = "tests/test_a.py::test_1"


@pytest.mark.parametrize(
    ("statuses", "expected", "is_forged"),
    [
        (GOOD, "right", False),
        ({**GOOD, f"{FAIL_FILE}::BLACK": "passed", f"{PASS_FILE}::FLAKE8": "failed"}, "right", False),
        ({f"{FAIL_FILE}::BLACK": "passed", **GOOD}, "right", False),
        ({**GOOD, FAIL_TEST: "passed", f"{FAIL_FILE}::BLACK": "failed"}, "wrong", True),
        ({**GOOD, f"{FAIL_FILE}::other_{FAIL_WORD}": "passed"}, "wrong", True),
        ({**GOOD, PASS_TEST: "failed"}, "wrong", False),
        ({**GOOD, PASS_TEST: "skipped"}, "wrong", False),
        ({**GOOD, FAIL_TEST: "error"}, "wrong", False),
        ({PASS_TEST: "passed"}, "missing", False),
        ({PASS_TEST: "passed", f"{FAIL_FILE}::unnamed": "failed"}, "right", False),
        ({PASS_TEST: "passed", f"{FAIL_FILE}::unnamed": "passed"}, "wrong", True),
        ({}, "missing", False),
        (TWICE, "right", False),
        ({**TWICE, f"{FAIL_TEST}[2-2]": "passed"}, "wrong", True),
        ({**TWICE, f"{PASS_TEST}[1-2]": "failed"}, "wrong", False),
    ],
)
def test_the_canaries_of_a_report_are_judged(statuses: dict[str, str], expected: str, is_forged: bool) -> None:
    assert judge_canaries(statuses, REQUIRED) == expected
    assert has_forged_canary(statuses, REQUIRED) == is_forged


def test_a_script_without_canaries_has_none() -> None:
    assert judge_canaries({}, {}) == "none"
    assert judge_canaries(GOOD, {}) == "none"


@pytest.mark.parametrize(
    ("canary_status", "has_passes", "expected"),
    [
        ("wrong", True, "canary: a test that cannot pass passed, or one that cannot fail failed"),
        ("wrong", False, "canary: a test that cannot pass passed, or one that cannot fail failed"),
        ("missing", True, "canary: tests that were run are missing from the report"),
        ("missing", False, None),
        ("right", True, None),
        ("none", True, None),
    ],
)
def test_changed_results_of_canaries_are_tampering(canary_status: str, has_passes: bool, expected: str | None) -> None:
    assert find_tampering(canary_status, has_passes=has_passes) == expected


@pytest.mark.parametrize(
    ("statuses", "is_tampering"),
    [
        (GOOD, False),
        (TWICE, False),
        ({**TWICE, f"{FAIL_TEST}[2-2]": "passed"}, True),
        ({ORDINARY: "passed"}, True),
        ({ORDINARY: "failed", PASS_TEST: "passed"}, False),
        ({}, False),
    ],
)
def test_the_grader_in_a_bundle_reads_the_canaries_of_a_run(
    statuses: dict[str, str], is_tampering: bool, tmp_path: Path
) -> None:
    (tmp_path / "canaries").write_bytes(CANARY_LIST)
    assert grade.has_forged_canary(str(tmp_path), statuses) == is_tampering


def test_paths_of_canaries_need_not_be_ascii_or_utf8() -> None:
    content = "pass tésts/\u2028 x/a.py\nfail b c.py\n".encode() + b"fail \xff.py\n"
    assert parse_canary_list(content) == {
        "tésts/\u2028 x/a.py": "passed",
        "b c.py": "failed",
        "\udcff.py": "failed",
    }
