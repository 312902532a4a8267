"""Results of submitted tests from their reports, and the rules for test patches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.sandbox.execution import ExecResult
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.run import EvaluationResult
from evaluation.submitted_tests.patch import find_violation
from evaluation.submitted_tests.runner import EMPTY_REPORT, find_false_alarm, has_failure, is_detected
from guest.scoring.patch_rules import TouchedFile
from guest.scoring.submitted_tests import SubmittedTestsResult, compare_reports, concatenate_patches

NEW, OLD = "tests/test_new.py::test_it", "tests/test_old.py::test_it"


def report(uncollected: tuple[str, ...] = (), **statuses: str) -> EvaluationReport:
    """Return a report with the tests `new` and `old` and any other named test."""
    names = {"new": NEW, "old": OLD}
    outcomes = {names.get(name, name): Outcome(status=OutcomeStatus(word)) for name, word in statuses.items()}
    return EvaluationReport(outcomes=outcomes, uncollected=dict.fromkeys(uncollected, "no"))


def compare(
    before: list[EvaluationReport],
    after: list[EvaluationReport],
    baseline: EvaluationReport = EMPTY_REPORT,
    kept: tuple[str, ...] = (),
) -> SubmittedTestsResult:
    return compare_reports(baseline, before, after, pass_to_pass=kept, listed_tests={*kept, NEW})


FAILS, PASSES = report(new="failed"), report(new="passed")


def test_a_new_test_that_fails_before_and_passes_after_the_fix_is_detecting_and_valid() -> None:
    compared = compare([FAILS, report(new="error")], [PASSES, PASSES])
    assert compared.detecting_tests == compared.supporting_tests == {NEW}
    assert compared.is_valid


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([FAILS, PASSES], [PASSES, PASSES], id="not every time"),
        pytest.param([PASSES, PASSES], [PASSES, PASSES], id="never"),
        pytest.param([report(), report()], [PASSES, PASSES], id="absent before"),
        pytest.param([report(("tests/test_new.py",))] * 2, [PASSES, PASSES], id="not collected before"),
        pytest.param([report(new="skipped")] * 2, [PASSES, PASSES], id="skipped before"),
    ],
)
def test_a_test_that_does_not_fail_in_every_run_before_the_fix_is_not_detecting(
    before: list[EvaluationReport], after: list[EvaluationReport]
) -> None:
    assert not compare(before, after).detecting_tests


@pytest.mark.parametrize(
    "after",
    [
        pytest.param([FAILS, FAILS], id="fails"),
        pytest.param([PASSES, FAILS], id="fails once"),
        pytest.param([report(new="skipped")] * 2, id="skipped"),
        pytest.param([report(("tests/test_new.py",))] * 2, id="not collected"),
        pytest.param([replace(PASSES, uncollected={"tests/test_more.py": "no"})] * 2, id="another not collected"),
        pytest.param([report(), report()], id="absent"),
    ],
)
def test_a_test_that_does_not_pass_in_every_run_after_the_fix_is_invalid(after: list[EvaluationReport]) -> None:
    assert not compare([FAILS, FAILS], after).is_valid


def test_a_test_that_failed_without_the_patch_counts_neither_for_nor_against_it() -> None:
    before, after = report(new="failed", old="failed"), report(new="passed", old="passed")
    assert compare([before] * 2, [after] * 2, report(old="failed")).supporting_tests == {NEW}
    assert compare([before] * 2, [report(new="passed", old="failed")] * 2, report(old="failed")).is_valid


def test_a_pass_to_pass_test_must_still_exist_and_pass() -> None:
    assert compare([FAILS] * 2, [PASSES] * 2, report(old="passed"), kept=(OLD,)).lost_tests == (OLD,)
    assert compare([FAILS] * 2, [PASSES] * 2, report(old="passed")).is_valid
    both = report(new="passed", old="passed")
    assert compare([FAILS] * 2, [both] * 2, report(old="passed"), kept=(OLD,)).supporting_tests == {NEW}


def result(evaluation_report: EvaluationReport | None, killed_by: str | None = None) -> EvaluationResult:
    exec_result = ExecResult(exit_code=0, output="", files={}, seconds=1.0, killed_by=killed_by)
    return EvaluationResult(
        exec_result=exec_result,
        report=evaluation_report,
        test_seconds=1.0,
        script_sha256="",
        log="",
        is_applied=True,
        canary_status="none",
    )


def test_a_mutant_is_detected_by_a_failing_or_absent_test_but_not_by_a_killed_run() -> None:
    assert is_detected(result(FAILS), [NEW])
    assert is_detected(result(report()), [NEW])
    assert not is_detected(result(report(new="skipped")), [NEW])
    assert not is_detected(result(PASSES), [NEW])
    assert not is_detected(result(None), [NEW])
    assert not is_detected(result(FAILS, killed_by="time"), [NEW])
    assert has_failure(result(FAILS), [NEW])
    assert not has_failure(result(report()), [NEW])


def test_every_test_that_does_not_pass_on_a_correct_variant_is_a_false_alarm() -> None:
    assert find_false_alarm(result(PASSES), [NEW]) is None
    for evaluation_report in (FAILS, report(), report(new="skipped"), None):
        assert find_false_alarm(result(evaluation_report), [NEW]) == NEW


def test_concatenated_patches_start_on_lines_of_their_own() -> None:
    assert concatenate_patches(b"a\n", b"b\n") == concatenate_patches(b"a", b"b") == b"a\nb\n"
    assert concatenate_patches(b"a\n", b"") == b"a\n"


def touch(path: str, before: str = "100644", after: str = "100644") -> TouchedFile:
    return TouchedFile(path=path, mode_before=before, mode_after=after)


@pytest.mark.parametrize(
    "file",
    [
        touch("tests/test_a.py"),
        touch("pkg/tests/data/x.bin", "000000"),
        touch("pkg/x_test.go", "000000"),
        touch("test/a.spec.ts"),
        touch("tests/test_a.py", after="000000"),
        touch("checks/a.py", "000000"),
    ],
    ids=lambda file: file.path,
)
def test_tests_and_files_beside_them_may_be_touched(file: TouchedFile) -> None:
    assert find_violation([file]) is None


@pytest.mark.parametrize(
    "file",
    [
        touch("pkg/a.py"),
        touch("checks/a.py"),
        touch("pkg/a.py", after="000000"),
        touch("tests/conftest.py"),
        touch("pyproject.toml"),
        touch("tox.ini", "000000"),
        touch("package.json"),
        touch("README.md"),
        touch("tests/link.py", "000000", "120000"),
        touch("sitecustomize.py", "000000"),
        touch("_pytest/tests/x.py", "000000"),
        touch("notes.txt", "000000"),
    ],
    ids=lambda file: f"{file.path}-{file.mode_before}-{file.mode_after}",
)
def test_sources_configuration_and_links_may_not_be_touched(file: TouchedFile) -> None:
    detail = find_violation([touch("tests/test_a.py"), file])
    assert detail is not None
    assert file.path in detail


def test_an_empty_patch_is_no_patch_of_tests() -> None:
    assert find_violation([]) == "the patch is empty"
