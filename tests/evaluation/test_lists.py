"""Lists made from reports, without an engine."""

from __future__ import annotations

from evaluation.lists import make_lists
from evaluation.published import compare_lists
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.records import FailureKind, FlakyTest, PublishedLists, RunVariant


def report(uncollected: dict[str, str] | None = None, **outcomes: str) -> EvaluationReport:
    words = {name: word.partition(":") for name, word in outcomes.items()}
    return EvaluationReport(
        outcomes={f"t.py::{n}": Outcome(status=OutcomeStatus(s), message=m) for n, (s, _, m) in words.items()},
        uncollected=uncollected or {},
    )


def test_each_test_is_in_the_right_list_with_its_kind_of_failure() -> None:
    test_only = report(
        a="failed:AssertionError: 1",
        b="error:KeyError: 1",
        d="passed",
        e="skipped",
        f="failed:TypeError: x",
        h="xfailed",
    )
    gold = report(a="passed", b="passed", c="passed", d="passed", e="passed", f="failed:TypeError: x", h="passed")
    lists = make_lists([test_only, test_only], [gold, gold])
    assert lists.fail_to_pass == (
        ("t.py::a", FailureKind.ASSERTION),
        ("t.py::b", FailureKind.ERROR),
        ("t.py::c", FailureKind.ABSENT),
    )
    assert lists.pass_to_pass == ("t.py::d",)
    assert lists.flaky == ()


def test_a_file_that_could_not_be_collected_differs_from_an_absent_test() -> None:
    lists = make_lists([report({"t.py": "ImportError"})], [report(a="passed")])
    assert lists.fail_to_pass == (("t.py::a", FailureKind.COLLECTION),)


def test_a_flaky_test_is_excluded_with_its_counts() -> None:
    once, twice = report(a="failed", b="passed"), report(a="passed", b="passed")
    lists = make_lists([once, once, once], [twice, once, twice])
    counts = {RunVariant.TEST_ONLY: {"failed": 3}, RunVariant.GOLD: {"passed": 2, "failed": 1}}
    assert lists.flaky == (FlakyTest(test="t.py::a", counts=counts),)
    assert lists.flaky[0].describe_counts() == "test-only: failed 3; gold: passed 2, failed 1"
    assert lists.flaky_fail_to_pass == ("t.py::a",)
    assert lists.fail_to_pass == ()


def test_a_test_whose_name_varies_is_no_flaky_fail_to_pass() -> None:
    lists = make_lists(
        [report(b="passed"), report(b="passed")], [report(b="passed", at_12="passed"), report(b="passed")]
    )
    assert [flaky_test.test for flaky_test in lists.flaky] == ["t.py::at_12"]
    assert lists.flaky_fail_to_pass == ()


def test_published_ids_match_when_cut_at_a_space_or_without_their_file() -> None:
    ours = ("t.py::test_a[x y]", "t.py::test_a[x z]", "t.py::test_b")
    cut = compare_lists(PublishedLists(FAIL_TO_PASS=("t.py::test_a[x", "t.py::test_b"), PASS_TO_PASS=()), ours, ())
    assert cut.verdict == "exact-by-name"
    assert cut.readings == ("cut at the first space",)
    bare = compare_lists(PublishedLists(FAIL_TO_PASS=("test_b",), PASS_TO_PASS=("gone",)), ours, ("p.py::test_b",))
    assert bare.verdict == "superset"
    assert bare.fail_to_pass.extra == ("t.py::test_a[x y]", "t.py::test_a[x z]")
    assert bare.pass_to_pass.missing == ("gone",)


def test_a_full_published_id_never_matches_by_its_name_alone() -> None:
    verdict = compare_lists(PublishedLists(FAIL_TO_PASS=("a.py::test_x",), PASS_TO_PASS=()), ("b.py::test_x",), ())
    assert verdict.verdict == "different"
