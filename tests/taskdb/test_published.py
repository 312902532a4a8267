from __future__ import annotations

from collections.abc import Sequence

import pytest

from evaluation.published import compare_lists
from taskdb.records import PublishedLists, PublishedVerdict, Stage
from tests.records import make_candidate, make_environment, make_pull_request, make_rejection

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

WHOLE_FILES = ("a whole file", "a whole class", "a class by its short name")


def compare_f2p(theirs: Sequence[str], ours: Sequence[str]) -> PublishedVerdict:
    return compare_lists(PublishedLists(FAIL_TO_PASS=tuple(theirs), PASS_TO_PASS=()), ours, [])


@pytest.mark.parametrize("style", IDS)
def test_published_ids_of_every_style_are_matched(style: str) -> None:
    ours, theirs = IDS[style]
    verdict = compare_f2p([theirs], [ours])
    assert verdict.verdict == ("exact-by-file" if style in WHOLE_FILES else "exact"), verdict
    assert verdict.readings


def test_an_id_as_written_needs_no_reading() -> None:
    verdict = compare_f2p(["t.py::test_a"], ["t.py::test_a"])
    assert (verdict.verdict, verdict.readings, verdict.groups) == ("exact", (), ())


def test_a_published_id_that_fits_two_tests_is_not_exact() -> None:
    ours = ["tests/a.rs::works", "tests/b.rs::works"]
    verdict = compare_f2p(["works"], ours)
    assert verdict.verdict == "exact-by-name"
    assert [(group.published, group.level, group.tests) for group in verdict.groups] == [("works", "name", 2)]
    assert verdict.readings == ("without the file",)


def test_two_published_ids_that_fit_one_test_are_not_exact() -> None:
    verdict = compare_f2p(["a  b", "a b"], ["c.test.js::a > b"])
    assert verdict.verdict == "exact-by-name"
    assert [(group.published, group.tests) for group in verdict.groups] == [("a  b", 1), ("a b", 1)]


def test_a_file_stands_for_its_tests_only() -> None:
    ours = ["tests/card.test.js::card > trims", "tests/card.test.js::card > folds", "tests/list.test.js::list > trims"]
    whole = compare_f2p(["tests/card.test.js"], ours[:2])
    assert whole.verdict == "exact-by-file"
    assert [(group.published, group.level, group.tests) for group in whole.groups] == [
        ("tests/card.test.js", "file", 2)
    ]
    other = compare_f2p(["tests/card.test.js"], ours)
    assert (other.verdict, other.fail_to_pass.extra) == ("superset", (ours[2],))
    assert compare_f2p(["tests/card.test.js", "tests/gone.test.js"], ours[:2]).verdict == "subset"


def test_a_file_listed_with_one_of_its_tests_hides_no_other_test() -> None:
    ours = ["tests/card.test.js::card > trims", "tests/card.test.js::card > folds"]
    verdict = compare_f2p(["tests/card.test.js", "tests/card.test.js:trims"], ours)
    assert (verdict.verdict, verdict.fail_to_pass.extra) == ("superset", (ours[1],))
    java = ["src/test/java/org/x/PowTest.java::testPow", "src/test/java/org/x/PowTest.java::testSqrt"]
    verdict = compare_f2p(["org.x.PowTest", "org.x.PowTest#testPow"], java)
    assert (verdict.verdict, verdict.fail_to_pass.extra) == ("superset", (java[1],))


def test_groups_of_pass_to_pass_are_kept_and_do_not_change_the_verdict() -> None:
    published = PublishedLists(FAIL_TO_PASS=("TestA",), PASS_TO_PASS=("TestB",))
    verdict = compare_lists(published, ["a_test.go::TestA"], ["a_test.go::TestB", "b_test.go::TestB"])
    assert verdict.verdict == "exact"
    assert [(group.list_name, group.tests) for group in verdict.groups] == [("PASS_TO_PASS", 2)]


def test_a_verdict_of_an_earlier_version_is_read_and_keeps_its_identity() -> None:
    nothing: dict[str, list[str]] = {"missing": [], "extra": []}
    old = PublishedVerdict.model_validate({"verdict": "exact", "fail_to_pass": nothing, "pass_to_pass": nothing})
    assert (old.verdict, old.readings, old.groups, old.causes) == ("exact", (), (), ())
    environment = make_environment(make_candidate(make_pull_request()))
    first, same, other = (
        make_rejection(environment, Stage.VERIFY, published=old.model_copy(update=changes)).id
        for changes in ({}, {"readings": ("title",)}, {"verdict": "exact-by-file"})
    )
    assert first == same != other


def test_missing_and_extra_tests_are_listed() -> None:
    published = PublishedLists(FAIL_TO_PASS=("TestA", "TestB"), PASS_TO_PASS=())
    verdict = compare_lists(published, ["a_test.go::TestA", "a_test.go::TestC"], [])
    assert verdict.verdict == "different"
    assert verdict.fail_to_pass.missing == ("TestB",)
    assert verdict.fail_to_pass.extra == ("a_test.go::TestC",)


def test_a_file_listed_beside_its_tests_is_not_a_missing_test() -> None:
    published = PublishedLists(FAIL_TO_PASS=("tests/card.test.js", "tests/card.test.js:trims"), PASS_TO_PASS=())
    assert compare_lists(published, ["tests/card.test.js::card > trims"], []).verdict == "exact-by-file"
    assert compare_lists(published, ["tests/list.test.js::list > trims"], []).verdict == "different"


def test_subtests_of_go_are_matched_by_their_parent_where_a_list_has_no_subtests() -> None:
    ours = ["sum_test.go::TestSum", "sum_test.go::TestSum/of_two"]
    verdict = compare_f2p(["TestSum"], ours)
    assert verdict.verdict == "exact-by-parent"
    assert [(group.published, group.level, group.tests) for group in verdict.groups] == [("TestSum", "parent", 2)]
    assert compare_f2p(["TestSum"], ours[1:]).verdict == "different"
    named = PublishedLists(FAIL_TO_PASS=("TestSum", "TestSum/of_one"), PASS_TO_PASS=())
    assert compare_lists(named, ours, []).verdict == "different"
