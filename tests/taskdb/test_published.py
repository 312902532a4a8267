from __future__ import annotations

import pytest

from taskdb.published import compare
from taskdb.records import Published

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
    "pytest, cut at a space": ("tests/test_a.py::test_x[a b]", "tests/test_a.py::test_x[a"),
}


@pytest.mark.parametrize("style", IDS)
def test_published_ids_of_every_style_are_found_among_ours(style: str) -> None:
    ours, theirs = IDS[style]
    verdict = compare(Published(fail_to_pass=(theirs,), pass_to_pass=()), [ours], [])
    assert verdict.verdict == "exact", verdict


def test_what_is_only_ours_or_only_theirs_is_told() -> None:
    published = Published(fail_to_pass=("TestA", "TestB"), pass_to_pass=())
    verdict = compare(published, ["a_test.go::TestA", "a_test.go::TestC"], [])
    assert verdict.verdict == "different"
    assert verdict.fail_to_pass.missing == ("TestB",)
    assert verdict.fail_to_pass.extra == ("a_test.go::TestC",)


def test_a_file_that_is_listed_beside_its_tests_is_no_test_of_its_own() -> None:
    published = Published(fail_to_pass=("tests/card.test.js", "tests/card.test.js:trims"), pass_to_pass=())
    assert compare(published, ["tests/card.test.js::card > trims"], []).verdict == "exact"
    assert compare(published, ["tests/list.test.js::list > trims"], []).verdict == "different"


def test_subtests_of_go_are_told_by_their_parent_where_a_list_names_none_of_them() -> None:
    ours = ["sum_test.go::TestSum", "sum_test.go::TestSum/of_two"]
    assert compare(Published(fail_to_pass=("TestSum",), pass_to_pass=()), ours, []).verdict == "exact"
    named = Published(fail_to_pass=("TestSum", "TestSum/of_one"), pass_to_pass=())
    assert compare(named, ours, []).verdict == "different"
