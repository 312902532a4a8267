from __future__ import annotations

import pytest

from taskdb.published import compare_lists
from taskdb.records import PublishedLists

IDS = {
    "Go": ("caddyconfig/caddyfile/lexer_test.go::TestLexer/case 1", "TestLexer/case 1"),
    "Rust": ("tests/regression.rs::regression::r2208", "regression::r2208"),
    "jest, titles alone": ("src/link.test.ts::validate > accepts valid link", "accepts valid link"),
    "jest, suites": ("test/a.test.js::OrderedSet > provides initial values", "OrderedSet > provides initial values"),
    "mocha": ("test/http.js::supports http > should work (well)", "supports http should work (well)"),
    "mocha, titles alone": ("test/utils.js::utils utils::isFormData calls nothing", "calls nothing"),
    "vitest": ("packages/a.spec.ts::api: watch > effect", "packages/a.spec.ts > api: watch > effect"),
    "file and title": ("tests/card.test.js::card > should trim header", "tests/card.test.js:should trim header"),
    "a whole file": ("test/locale/keys.test.js::keys", "test/locale/keys.test.js"),
    "JUnit, #": ("core/src/test/java/org/x/PowTest.java::testPow", "org.x.PowTest#testPow"),
    "JUnit, >": ("core/src/test/java/org/x/PowTest.java::testPow", "org.x.PowTest > testPow"),
    "a whole class": ("core/src/test/java/org/x/PowTest.java::testPow", "org.x.PowTest"),
    "a class by its short name": ("src/test/java/org/x/NodeTest.java::removes", "NodeTest"),
    "GoogleTest": ("test/printf-test.cc::PrintfTest.MinusFlag", "PrintfTest.MinusFlag"),
    "R2E-Gym, without the file": ("tests/test_a.py::TestX::test_a", "TestX.test_a"),
    "pytest, cut at a space": ("tests/test_a.py::test_x[a b]", "tests/test_a.py::test_x[a"),
}


@pytest.mark.parametrize("style", IDS)
def test_published_ids_of_every_style_are_matched(style: str) -> None:
    ours, theirs = IDS[style]
    verdict = compare_lists(PublishedLists(FAIL_TO_PASS=(theirs,), PASS_TO_PASS=()), [ours], [])
    assert verdict.verdict == "exact", verdict


def test_missing_and_extra_tests_are_listed() -> None:
    published = PublishedLists(FAIL_TO_PASS=("TestA", "TestB"), PASS_TO_PASS=())
    verdict = compare_lists(published, ["a_test.go::TestA", "a_test.go::TestC"], [])
    assert verdict.verdict == "different"
    assert verdict.fail_to_pass.missing == ("TestB",)
    assert verdict.fail_to_pass.extra == ("a_test.go::TestC",)


def test_a_file_listed_beside_its_tests_is_not_a_missing_test() -> None:
    published = PublishedLists(FAIL_TO_PASS=("tests/card.test.js", "tests/card.test.js:trims"), PASS_TO_PASS=())
    assert compare_lists(published, ["tests/card.test.js::card > trims"], []).verdict == "exact"
    assert compare_lists(published, ["tests/list.test.js::list > trims"], []).verdict == "different"


def test_subtests_of_go_are_matched_by_their_parent_where_a_list_has_no_subtests() -> None:
    ours = ["sum_test.go::TestSum", "sum_test.go::TestSum/of_two"]
    assert compare_lists(PublishedLists(FAIL_TO_PASS=("TestSum",), PASS_TO_PASS=()), ours, []).verdict == "exact"
    named = PublishedLists(FAIL_TO_PASS=("TestSum", "TestSum/of_one"), PASS_TO_PASS=())
    assert compare_lists(named, ours, []).verdict == "different"
