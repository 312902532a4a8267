"""What the statement of an injected bug says, and what it must not say."""

from __future__ import annotations

import pytest

from backends.testing.outcomes import Outcome, Report, Status
from derivers.injected.telling import best_first, excerpt, failures, in_words, leaks, statement

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
def test_a_tests_name_is_told_in_words(test: str, words: str) -> None:
    assert in_words(test) == words


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
def test_a_test_is_shown_as_it_stands_in_its_file(source: bytes, test: str, first: str, last: str) -> None:
    lines = excerpt(source, test).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


def test_what_is_not_there_or_too_long_is_not_shown() -> None:
    assert excerpt(PYTHON, "t.py::test_other") == ""
    assert excerpt(b"def test_a():\n" + b"    f()\n" * 40, "t.py::test_a") == ""


def test_the_statement_shows_few_tests_in_full_and_names_the_others() -> None:
    tests = [f"t.py::test_{word}" for word in ("a", "b", "c", "d", "e")]
    report = Report(
        outcomes={test: Outcome(status=Status.FAILED, message=f"assert 6 == {n}") for n, test in enumerate(tests)},
        uncollected={},
    )
    told = best_first(failures(tests, report, lambda _: None), [tests])
    text = statement("ada/greet", "python", told, bugs=1, gold=GOLD)
    assert text is not None
    assert "5 of its checks fail" in text
    assert "2 more checks fail: D, E." in text
    assert all(f"assert 6 == {n}" in text for n in range(3))
    assert "\n\n\n" not in text


def test_of_several_bugs_each_is_shown() -> None:
    tests = [f"t.py::test_{word}" for word in ("a", "b", "c", "z")]
    report = Report(outcomes={test: Outcome(status=Status.ERROR, message="KeyError") for test in tests}, uncollected={})
    told = best_first(failures(tests, report, lambda _: None), [tests[:3], tests[3:]])
    assert [one.test for one in told][:2] == ["t.py::test_a", "t.py::test_z"]


def test_no_line_of_the_patch_is_told() -> None:
    test = "t.py::test_a"
    shown = b"def test_a():\n    assert same('return len(words.split())')\n"
    report = Report(outcomes={test: Outcome(status=Status.FAILED, message="assert False")}, uncollected={})
    told = failures([test], report, lambda _: shown)
    assert leaks(shown.decode(), GOLD)
    text = statement("ada/greet", "python", told, bugs=1, gold=GOLD)
    assert text is not None
    assert "split" not in text
    seen = Report(outcomes={test: Outcome(status=Status.FAILED, message="return  len(words.split())")}, uncollected={})
    assert statement("ada/greet", "python", failures([test], seen, lambda _: None), bugs=1, gold=GOLD) is None


def test_a_test_that_says_nothing_is_told_after_the_one_inside_it_that_does() -> None:
    outcomes = {
        "a_test.go::TestWide": Outcome(status=Status.FAILED),
        "a_test.go::TestWide/of_two": Outcome(status=Status.FAILED, message="a_test.go:5: 6"),
    }
    told = best_first(failures(list(outcomes), Report(outcomes=outcomes, uncollected={}), lambda _: GO), [])
    assert [one.test for one in told] == ["a_test.go::TestWide/of_two", "a_test.go::TestWide"]
    text = statement("ada/a", "go", told, bugs=1, gold=GOLD) or ""
    assert text.count("What happens instead") == 1
    assert text.count("func TestWide") == 1
    assert text.startswith("Wide/of two: ")
