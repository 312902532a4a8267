"""What is decided about written tests without containers: by paths, by runs with edits, and for what is sent back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from derivers.base import KindRejection
from derivers.combined import derive_combined
from evaluation.lists import OutcomeLists
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.records import FlakyTest, WrittenTests
from taskdb.records.lineage import ChangeTests, Lineage
from tests import records
from verifiers.strength import EditKind, EditOutcome, TriedEdit
from verifiers.written_tests.answer import MAX_FILE_LINES, TestFileAnswer, WritingReason, find_path_objection
from verifiers.written_tests.stage import _clean, _find_unreliable, judge_edits

EXISTING = ("src/shop.py", "tests/test_shop.py", "tests/data.json", "conftest.py")


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["tests/test_new.py"], None),
        (["tests/test_a.py", "tests/unit/test_b.py"], None),
        ([], "there are 0 files"),
        ([f"tests/test_{n}.py" for n in range(4)], "there are 4 files"),
        (["tests/test_a.py"] * 2, "same path"),
        (["tests/test_shop.py"], "exists"),
        (["tests/test_gold.py"], "exists"),
        (["tests/data.json/test_a.py"], "below a file"),
        (["src/shop.py"], "exists"),
        (["src/new.py"], "not a test file"),
        (["tests/conftest.py"], "not a test file"),
        (["conftest.py"], "exists"),
        (["setup.cfg"], "not a test file"),
        (["/tests/test_a.py"], "relative to the root"),
        (["tests/../src/test_a.py"], "relative to the root"),
        (["tests//test_a.py"], "relative to the root"),
        (["tests/data/rows.json"], "no path of a test file"),
        (["tests/test_a.js"], "no path of a test file"),
    ],
)
def test_only_new_test_files_of_the_language_are_accepted(paths: list[str], problem: str | None) -> None:
    files = [TestFileAnswer(path=path, content="x\n") for path in paths]
    path_objection = find_path_objection(files, "python", EXISTING, ("src/shop.py", "tests/test_gold.py"))
    assert (path_objection is None) == (problem is None)
    if path_objection is not None:
        assert path_objection.reason == WritingReason.NOT_ONLY_TESTS
        assert str(problem) in path_objection.detail


def test_a_long_file_is_refused() -> None:
    for n, is_accepted in ((MAX_FILE_LINES, True), (MAX_FILE_LINES + 1, False)):
        file = TestFileAnswer(path="tests/test_a.py", content="x\n" * n)
        assert (find_path_objection([file], "python", (), ()) is None) == is_accepted


def make_edit(kind: EditKind, outcome: EditOutcome, line: int = 1) -> TriedEdit:
    by = "t" if outcome is EditOutcome.DETECTED else ""
    return TriedEdit(
        kind=kind,
        operator="o",
        path="a.py",
        first_line=line,
        last_line=line,
        detail="x became y",
        outcome=outcome,
        by=by,
    )


@pytest.mark.parametrize(
    ("detected", "passed", "not_built", "share", "reason"),
    [
        (2, 2, 0, 0.5, None),
        (2, 3, 0, 0.5, WritingReason.WEAK),
        (0, 1, 0, 0.0, WritingReason.WEAK),
        (1, 9, 0, 0.0, None),
        (0, 0, 3, 0.5, None),
        (1, 0, 9, 1.0, None),
        (9, 1, 0, 1.0, WritingReason.WEAK),
    ],
)
def test_tests_must_detect_one_fault_and_a_share_of_those_that_run(
    detected: int, passed: int, not_built: int, share: float, reason: str | None
) -> None:
    outcomes = {EditOutcome.DETECTED: detected, EditOutcome.PASSED: passed, EditOutcome.NOT_BUILT: not_built}
    edits = [make_edit(EditKind.MUTANT, outcome) for outcome, n in outcomes.items() for _ in range(n)]
    edits.append(make_edit(EditKind.VARIANT, EditOutcome.PASSED))
    verdict = judge_edits(edits, share)
    assert (verdict.reason if verdict else None) == reason


def test_tests_that_fail_on_a_rewrite_are_rejected_with_its_place() -> None:
    detected = [make_edit(EditKind.MUTANT, EditOutcome.DETECTED)] * 5
    verdict = judge_edits([*detected, make_edit(EditKind.VARIANT, EditOutcome.DETECTED, 7)], 0.5)
    assert verdict is not None
    assert (verdict.reason, "a.py:7" in verdict.detail) == (WritingReason.FALSE_ALARM, True)


PASSED, FAILED, SKIPPED = (OutcomeStatus.PASSED, OutcomeStatus.FAILED, OutcomeStatus.SKIPPED)


class _Verifier:
    """Gold runs with the given outcomes of the written test and of another one; the lists of those runs."""

    def __init__(self, *statuses: OutcomeStatus, varies: bool = False, uncollected: str = "") -> None:
        self.tests = ChangeTests("", ("tests/test_new.py",))
        flaky = (FlakyTest(test="tests/test_new.py::test_a", counts={}),) if varies else ()
        others = (FlakyTest(test="tests/test_old.py::test_b", counts={}),)
        self._lists = OutcomeLists(fail_to_pass=(), pass_to_pass=(), flaky=flaky + others, flaky_fail_to_pass=())
        self.gold_runs = [self._make_run(status, uncollected) for status in statuses]

    def _make_run(self, status: OutcomeStatus, uncollected: str) -> Any:
        outcomes = {
            "tests/test_new.py::test_a": Outcome(status=status, message=""),
            "tests/test_old.py::test_b": Outcome(status=OutcomeStatus.FAILED, message=""),
        }
        report = EvaluationReport(outcomes=outcomes, uncollected={uncollected: ""} if uncollected else {})
        return type("Run", (), {"report": report})()

    def compute_lists(self) -> OutcomeLists:
        return self._lists


@pytest.mark.parametrize(
    ("verifier", "is_reliable"),
    [
        (_Verifier(PASSED, PASSED), True),
        (_Verifier(PASSED, FAILED), False),
        (_Verifier(SKIPPED, SKIPPED), False),
        (_Verifier(PASSED, varies=True), False),
        (_Verifier(PASSED, uncollected="tests/test_old.py"), True),
        (_Verifier(PASSED, uncollected="tests/test_new.py"), False),
    ],
)
def test_every_written_test_passes_in_every_gold_run(verifier: _Verifier, is_reliable: bool) -> None:
    unreliable = _find_unreliable(cast("Any", verifier))
    assert (unreliable.reason if unreliable else None) == (None if is_reliable else WritingReason.UNRELIABLE)


def test_what_is_sent_back_does_not_differ_between_equal_runs() -> None:
    first = "test_a: <A object at 0x7f40ad752c00> in /tmp/pytest-1/a after 1.25 s"
    assert _clean(first) == _clean(first.replace("7f40ad", "8f40ad").replace("1.25", "1.5").replace("pytest-1", "p-2"))
    assert "test_a" in _clean(first)


def test_written_tests_are_not_combined_with_those_of_people() -> None:
    candidate = records.make_candidate(records.make_pull_request())
    environment = records.make_environment(candidate)
    written = WrittenTests(
        patch="a" * 64,
        files=("tests/test_new.py",),
        model="m",
        prompt="p",
        attempt=1,
        transcript="b" * 64,
        faults=1,
        faults_detected=1,
        variants=0,
    )
    own = records.make_verification(environment)
    lineage = Lineage(
        candidate=candidate,
        environment=environment,
        verification=own.model_copy(update={"written_tests": written}),
    )
    assert lineage.tests == ChangeTests("a" * 64, ("tests/test_new.py",))
    assert replace(lineage, verification=own).tests == ChangeTests(candidate.test_patch, candidate.test_files)
    derived = derive_combined(lineage, cast("Any", None))
    assert isinstance(derived, KindRejection)
    assert derived.reason == "model-written-tests"
