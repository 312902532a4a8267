"""Statements of injected bugs: their content, and what they must not contain."""

from __future__ import annotations

import pytest

from derivers.injected.failure_statement import (
    collect_failures,
    extract_test,
    find_details,
    find_leak,
    format_test_name,
    order_failures,
    write_statement,
)
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus

PYTHON = b"""import pytest


@pytest.mark.parametrize("a", [1])
def test_wide_gaps(a):
    # a comment on test_wide_gaps

    assert count(" a   b ") == 2


class TestMore:
    def test_one(self):
        assert count("a") == 1
"""
GO = b"package a\n\nfunc TestWide(t *testing.T) {\n\tif Count() != 2 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc helper() {}\n"
JAVASCRIPT = b"describe('count', () => {\n  it('counts wide gaps', () => {\n    expect(count()).toBe(2);\n  });\n});\n"
RUBY = b'describe Label do\n  it "is in capitals" do\n    expect(Label.of("cup")).to eq("CUP")\n  end\nend\n'
GOLD = (
    b"--- a/words.py\n+++ b/words.py\n@@ -2 +2 @@\n-    return len(words.split(' '))\n+    return len(words.split())\n"
)


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("tests/test_words.py::test_wide_gaps", "Wide gaps"),
        ("tests/test_words.py::TestMore::test_wide_gaps[a-b]", "Wide gaps, given a-b"),
        ("words_test.go::TestWideGaps", "Wide Gaps"),
        ("words.test.js::count > counts wide gaps", "Count > counts wide gaps"),
        ("t.py::test", "Test"),
    ],
)
def test_a_test_name_is_formatted_as_a_phrase(test: str, words: str) -> None:
    assert format_test_name(test) == words


@pytest.mark.parametrize(
    ("source", "test", "first", "last"),
    [
        (PYTHON, "t.py::test_wide_gaps[1]", "def test_wide_gaps(a):", '    assert count(" a   b ") == 2'),
        (PYTHON, "t.py::TestMore::test_one", "def test_one(self):", '    assert count("a") == 1'),
        (GO, "a_test.go::TestWide", "func TestWide(t *testing.T) {", "}"),
        (GO, "a_test.go::TestWide/of_two", "func TestWide(t *testing.T) {", "}"),
        (JAVASCRIPT, "a.test.js::count counts wide gaps", "it('counts wide gaps', () => {", "});"),
        (RUBY, "a_spec.rb::Label is in capitals", 'it "is in capitals" do', "end"),
        (JAVASCRIPT, "a.test.js::count > counts wide gaps", "it('counts wide gaps', () => {", "});"),
    ],
)
def test_the_source_of_a_test_is_extracted_from_its_file(source: bytes, test: str, first: str, last: str) -> None:
    lines = extract_test(source, test).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


def test_missing_and_long_tests_are_not_extracted() -> None:
    assert extract_test(PYTHON, "t.py::test_other") == ""
    assert extract_test(b"def test_a():\n" + b"    f()\n" * 40, "t.py::test_a") == ""


def test_the_statement_shows_few_tests_in_full_and_names_the_others() -> None:
    tests = [f"t.py::test_{word}" for word in ("a", "b", "c", "d", "e")]
    report = EvaluationReport(
        outcomes={
            test: Outcome(status=OutcomeStatus.FAILED, message=f"assert 6 == {n}") for n, test in enumerate(tests)
        },
        uncollected={},
    )
    failures = order_failures(collect_failures(tests, report, lambda _: None), [tests])
    text = write_statement("ada/greet", "python", failures, bugs=1, gold=GOLD)
    assert text is not None
    assert "5 of its checks fail" in text
    assert "2 more checks fail: D, E." in text
    assert all(f"assert 6 == {n}" in text for n in range(3))
    assert "\n\n\n" not in text


def test_the_statement_shows_a_test_of_each_bug() -> None:
    tests = [f"t.py::test_{word}" for word in ("a", "b", "c", "z")]
    report = EvaluationReport(
        outcomes={test: Outcome(status=OutcomeStatus.ERROR, message="KeyError") for test in tests}, uncollected={}
    )
    failures = order_failures(collect_failures(tests, report, lambda _: None), [tests[:3], tests[3:]])
    assert [failure.test for failure in failures][:2] == ["t.py::test_a", "t.py::test_z"]


def test_no_line_of_the_patch_occurs_in_the_statement() -> None:
    test = "t.py::test_a"
    shown = b"def test_a():\n    assert same('return len(words.split())')\n"
    report = EvaluationReport(
        outcomes={test: Outcome(status=OutcomeStatus.FAILED, message="assert False")}, uncollected={}
    )
    failures = collect_failures([test], report, lambda _: shown)
    assert find_leak(shown.decode(), GOLD)
    text = write_statement("ada/greet", "python", failures, bugs=1, gold=GOLD)
    assert text is not None
    assert "split" not in text
    seen = EvaluationReport(
        outcomes={test: Outcome(status=OutcomeStatus.FAILED, message="return  len(words.split())")}, uncollected={}
    )
    assert (
        write_statement("ada/greet", "python", collect_failures([test], seen, lambda _: None), bugs=1, gold=GOLD)
        is None
    )


def test_a_test_without_a_message_follows_its_subtest_with_one() -> None:
    outcomes = {
        "a_test.go::TestWide": Outcome(status=OutcomeStatus.FAILED),
        "a_test.go::TestWide/of_two": Outcome(status=OutcomeStatus.FAILED, message="a_test.go:5: 6"),
    }
    failures = order_failures(
        collect_failures(list(outcomes), EvaluationReport(outcomes=outcomes, uncollected={}), lambda _: GO), []
    )
    assert [failure.test for failure in failures] == ["a_test.go::TestWide/of_two", "a_test.go::TestWide"]
    text = write_statement("ada/a", "go", failures, bugs=1, gold=GOLD) or ""
    assert text.count("What happens instead") == 1
    assert text.count("func TestWide") == 1
    assert text.startswith("Wide/of two: ")


PYTEST_LOG = """_________ test_wide_gaps _________

    def test_wide_gaps():
>       assert count(" a   b ") == 2
E       AssertionError: assert 5 == 2
E        +  where 5 = count(" a   b ")

tests/test_words.py:4: AssertionError
"""
JEST_LOG = """  ● count > counts wide gaps

    expect(received).toBe(expected) // Object.is equality

    Expected: 2
    Received: 5

      at Object.toBe (a.test.js:3:21)
  ● count > counts small gaps

    expect(received).toBe(expected) // Object.is equality

    Expected: 1
    Received: 7
"""
RUST_LOG = """---- tests::wide_gaps stdout ----
thread 'tests::wide_gaps' panicked at src/lib.rs:9:5:
assertion `left == right` failed
  left: 5
 right: 2
note: run with `RUST_BACKTRACE=1`
"""


@pytest.mark.parametrize(
    ("log", "test", "message", "details"),
    [
        (PYTEST_LOG, "t.py::test_wide_gaps", "AssertionError: assert 5 == 2", ['+  where 5 = count(" a   b ")']),
        (
            JEST_LOG,
            "a.test.js::count counts wide gaps",
            "Error: expect(received).toBe(expected) // Object.is equality",
            [],
        ),
        (
            JEST_LOG,
            "a.test.js::count > counts small gaps",
            "expect(received).toBe(expected) // Object.is equality",
            ["Expected: 1", "Received: 7"],
        ),
        (RUST_LOG, "src/lib.rs::wide_gaps", "assertion `left == right` failed", ["left: 5", "right: 2"]),
        (RUST_LOG, "src/lib.rs::wide_gaps", "another message", []),
        (RUST_LOG, "src/lib.rs::wide_gaps", "", []),
    ],
)
def test_expected_and_actual_values_follow_the_message(log: str, test: str, message: str, details: list[str]) -> None:
    assert find_details(log.splitlines(), test, message) == details
