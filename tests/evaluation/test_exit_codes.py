"""Exit codes of an evaluation mean nothing: the code under test ends with any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.sandbox.execution import ExecResult
from evaluation.runner.run import parse_result
from guest.verifier import grade

CODES = (0, 1, 96, 97, 124, 126, 127, 137, 255)
"""Among them those by which scripts report failures: of a patch, of the machine, of time and of memory."""
# In a bundle the grader ends soon, and closes no pipe.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
REPORT = b'<testsuites><testcase classname="tests.test_shop" name="test_one"/></testsuites>'


@pytest.mark.parametrize("code", CODES)
def test_a_run_here_is_judged_by_the_files_of_root_alone(code: int) -> None:
    left = {"known": b"tests/test_shop.py\0", "times": b"1000 2000 %d\n" % code, "junit.xml": REPORT}
    ended = ExecResult(exit_code=code, output="", files=left, seconds=1.0, killed_by=None)
    result = parse_result(ended, "")
    assert (result.infrastructure_error, result.tree_error, result.is_applied) == (None, None, True)
    assert result.report is not None
    assert result.report.has_passed("tests/test_shop.py::test_one")
    without = parse_result(ExecResult(exit_code=code, output="", files={}, seconds=1.0, killed_by=None), "")
    assert (without.report, without.infrastructure_error, without.tree_error) == (None, None, None)


@pytest.mark.parametrize("code", CODES)
def test_a_run_in_a_bundle_is_judged_by_the_files_of_root_alone(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grade, "kill_tests", lambda: None)  # other processes of this machine have the tests' user
    monkeypatch.setattr(grade, "delete_leftovers", lambda *_: None)
    report = tmp_path / "report"
    words = 'printf "tests/test_shop.py\\0" > "$MERGEMILL_REPORT_DIR/known"; exit "$0"'
    output = grade.run_script(str(report), 60, command=["/bin/bash", "-c", words, str(code)])
    assert (output.killed, output.tree_error, grade.read_report(str(report))) == (False, "", None)
    (report / "junit.xml").write_bytes(REPORT)
    parsed = grade.read_report(str(report))
    assert parsed is not None
    assert parsed.list_statuses() == {"tests/test_shop.py::test_one": "passed"}


@pytest.mark.parametrize("code", CODES)
def test_only_the_file_of_an_error_makes_a_failure_of_the_machine(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grade, "kill_tests", lambda: None)
    monkeypatch.setattr(grade, "delete_leftovers", lambda *_: None)
    words = 'for name in known error; do echo "$name" > "$MERGEMILL_REPORT_DIR/$name"; done; exit "$0"'
    with pytest.raises(grade.InfrastructureFailure, match="error"):
        grade.run_script(str(tmp_path / "report"), 60, command=["/bin/bash", "-c", words, str(code)])
    ended = ExecResult(exit_code=code, output="", files={"error": b"it is full\n"}, seconds=1.0, killed_by=None)
    assert parse_result(ended, "").infrastructure_error == "it is full"
