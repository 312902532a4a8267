"""The one reader of JUnit reports: inputs that two readers once read differently, and its limits."""

from __future__ import annotations

import math

import pytest

from evaluation.reports.outcomes import OutcomeStatus
from guest.harness.reports import core
from guest.reports.entries import name_restored_files, split_entries
from guest.reports.junit import MAX_MESSAGE, STATUSES, CaseOutcome, JUnitReport, parse_report

PASSED = CaseOutcome("passed")
KNOWN = ("tests/test_a.py", "sub/test_b.py")
CASES = {
    "a row without a name, of an interrupted pytest": ('<testcase time="0.0"/>', {}, {}),
    "a file that could not be collected": (
        '<testcase classname="" name="tests.test_a"><error message="collection failure">SyntaxError</error></testcase>',
        {},
        {"tests/test_a.py": "collection failure"},
    ),
    "the last reason of a file counts": (
        "".join(
            f'<testcase classname="" name="sub.test_b"><error message="collection failure: {reason}"/></testcase>'
            for reason in "xy"
        ),
        {},
        {"sub/test_b.py": "collection failure: y"},
    ),
    "a repeated test": (
        '<testcase classname="tests.test_a" name="t[1-2]"/><testcase classname="tests.test_a" name="t[2-2]"/>',
        {"tests/test_a.py::t[1-2]": PASSED, "tests/test_a.py::t[2-2]": PASSED},
        {},
    ),
    "two rows of one test": (
        (
            '<testcase classname="tests.test_a" name="t" time="1"><skipped message="no"/></testcase>'
            '<testcase classname="tests.test_a" name="t" time="2"/>'
        ),
        {"tests/test_a.py::t": CaseOutcome("skipped", "no", 3.0)},
        {},
    ),
    "the first of two equally bad rows": (
        "".join(
            f'<testcase classname="tests.test_a" name="t"><failure message="{reason}"/></testcase>' for reason in "xy"
        ),
        {"tests/test_a.py::t": CaseOutcome("failed", "x")},
        {},
    ),
    "an error is not replaced by a failure": (
        '<testcase classname="tests.test_a" name="t"><error message="x"/><failure message="y"/></testcase>',
        {"tests/test_a.py::t": CaseOutcome("error", "x")},
        {},
    ),
    "a long reason": (
        f'<testcase classname="tests.test_a" name="t"><failure>\n {"x" * 2 * MAX_MESSAGE}</failure></testcase>',
        {"tests/test_a.py::t": CaseOutcome("failed", "x" * MAX_MESSAGE)},
        {},
    ),
    "seconds that are no number": (
        '<testcase classname="tests.test_a" name="t" time="1:2"/>',
        {"tests/test_a.py::t": PASSED},
        {},
    ),
    "a file in another folder of the same ending": (
        '<testcase classname="test_b.TestX" name="t"/>',
        {"sub/test_b.py::TestX::t": PASSED},
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_reports_of_pytest(case: str) -> None:
    rows, outcomes, uncollected = CASES[case]
    content = f"<testsuites><testsuite>{rows}</testsuite></testsuites>".encode()
    assert parse_report(content, KNOWN)[:2] == JUnitReport(outcomes, uncollected)[:2]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ('<testcase file="a.go" name="TestA/b"/>', JUnitReport({"a.go::TestA/b": PASSED}, {})),
        ("<testcase/>", JUnitReport({}, {})),
        (
            '<testcase file="a.go" name=""><error message="broken"/></testcase>',
            JUnitReport({}, {"a.go": "broken"}),
        ),
    ],
)
def test_the_canonical_form_has_ids_verbatim(rows: str, expected: JUnitReport) -> None:
    assert (
        parse_report(f'<testsuites mergemill="1"><testsuite>{rows}</testsuite></testsuites>'.encode(), ()) == expected
    )


def test_seconds_of_a_forged_report_may_be_any_number() -> None:
    report = parse_report(b'<a><testcase classname="tests.test_a" name="t" time="nan"/></a>', KNOWN)
    assert math.isnan(report.outcomes["tests/test_a.py::t"].seconds)


def test_converter_reader_and_outcomes_have_the_same_statuses() -> None:
    assert STATUSES == core.ORDER
    assert set(STATUSES) == {status.value for status in OutcomeStatus}


def test_entries_are_separated_by_nuls_or_lines() -> None:
    assert split_entries(b"") == []
    assert split_entries("a\nb\0é\0".encode()) == ["a\nb", "é"]
    assert split_entries(b"a b\nc\n\n\xff") == ["a b", "c", "\udcff"]


def test_restored_files_are_named_in_ascii() -> None:
    assert name_restored_files([]) == ""
    assert name_restored_files(["b\n", "aé"]) == r"put back or removed, as protected: a\xe9, b\n"
    assert name_restored_files([f"{number:02}" for number in range(12)]).endswith("08, 09 and 2 more")
