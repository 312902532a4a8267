"""From reports to lists, without an engine."""

from __future__ import annotations

from backends.testing.lists import make_lists
from backends.testing.outcomes import Outcome, Report, Status
from taskdb.published import compare
from taskdb.records import FailureKind, Published


def report(uncollected: dict[str, str] | None = None, **outcomes: str) -> Report:
    words = {name: word.partition(":") for name, word in outcomes.items()}
    return Report(
        outcomes={f"t.py::{n}": Outcome(status=Status(s), message=m) for n, (s, _, m) in words.items()},
        uncollected=uncollected or {},
    )


def test_each_test_is_where_it_belongs_and_says_how_it_failed() -> None:
    tested = report(
        a="failed:AssertionError: 1",
        b="error:KeyError: 1",
        d="passed",
        e="skipped",
        f="failed:TypeError: x",
        h="xfailed",
    )
    solved = report(a="passed", b="passed", c="passed", d="passed", e="passed", f="failed:TypeError: x", h="passed")
    lists = make_lists([tested, tested], [solved, solved])
    assert lists.fail_to_pass == (
        ("t.py::a", FailureKind.ASSERTION), ("t.py::b", FailureKind.ERROR), ("t.py::c", FailureKind.ABSENT),
    )  # fmt: skip
    assert lists.pass_to_pass == ("t.py::d",)
    assert lists.flaky == ()


def test_a_file_that_could_not_be_collected_is_told_from_an_absent_test() -> None:
    lists = make_lists([report({"t.py": "ImportError"})], [report(a="passed")])
    assert lists.fail_to_pass == (("t.py::a", FailureKind.COLLECTION),)


def test_a_test_that_varies_is_left_out_with_its_counts() -> None:
    once, twice = report(a="failed", b="passed"), report(a="passed", b="passed")
    lists = make_lists([once, once, once], [twice, once, twice])
    assert lists.flaky == (("t.py::a", "tested: failed 3; solved: passed 2, failed 1"),)
    assert lists.flaky_fail_to_pass == ("t.py::a",)
    assert lists.fail_to_pass == ()


def test_a_test_whose_very_name_varies_is_no_lost_fail_to_pass() -> None:
    lists = make_lists(
        [report(b="passed"), report(b="passed")], [report(b="passed", at_12="passed"), report(b="passed")]
    )
    assert [test for test, _ in lists.flaky] == ["t.py::at_12"]
    assert lists.flaky_fail_to_pass == ()


def test_published_ids_are_met_cut_at_a_space_or_bare() -> None:
    ours = ("t.py::test_a[x y]", "t.py::test_a[x z]", "t.py::test_b")
    cut = compare(Published(fail_to_pass=("t.py::test_a[x", "t.py::test_b"), pass_to_pass=()), ours, ())
    assert cut.verdict == "exact"
    bare = compare(Published(fail_to_pass=("test_b",), pass_to_pass=("gone",)), ours, ("p.py::test_b",))
    assert bare.verdict == "superset"
    assert bare.fail_to_pass.extra == ("t.py::test_a[x y]", "t.py::test_a[x z]")
    assert bare.pass_to_pass.missing == ("gone",)


def test_a_full_published_id_is_never_met_by_its_name_alone() -> None:
    verdict = compare(Published(fail_to_pass=("a.py::test_x",), pass_to_pass=()), ("b.py::test_x",), ())
    assert verdict.verdict == "different"
