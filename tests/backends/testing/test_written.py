"""What reports say of tests that somebody wrote, and which patches are patches of tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.sandbox.base import Ran
from backends.testing.outcomes import Outcome, Report, Status
from backends.testing.run import TestResult
from backends.testing.submitted import Touched, fault_of
from backends.testing.written import NOTHING, Seen, alarmed, failed_in, noticed, over, seen

NEW, OLD = "tests/test_new.py::test_it", "tests/test_old.py::test_it"


def report(uncollected: tuple[str, ...] = (), **statuses: str) -> Report:
    """A report of `new` and `old` and whatever else is named."""
    names = {"new": NEW, "old": OLD}
    outcomes = {names.get(name, name): Outcome(status=Status(word)) for name, word in statuses.items()}
    return Report(outcomes=outcomes, uncollected=dict.fromkeys(uncollected, "no"))


def told(before: list[Report], after: list[Report], baseline: Report = NOTHING, kept: tuple[str, ...] = ()) -> Seen:
    return seen(baseline, before, after, kept=kept, known={*kept, NEW})


FAILS, PASSES = report(new="failed"), report(new="passed")


def test_a_new_test_that_fails_before_and_passes_after_detects_and_holds() -> None:
    found = told([FAILS, report(new="error")], [PASSES, PASSES])
    assert found.detecting == found.own == {NEW}
    assert found.holds


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
def test_what_does_not_fail_before_in_every_run_detects_nothing(before: list[Report], after: list[Report]) -> None:
    assert not told(before, after).detecting


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
def test_what_does_not_pass_after_the_fix_in_every_run_does_not_hold(after: list[Report]) -> None:
    assert not told([FAILS, FAILS], after).holds


def test_a_test_that_failed_without_the_patch_is_none_of_its_merits_nor_its_faults() -> None:
    before, after = report(new="failed", old="failed"), report(new="passed", old="passed")
    assert told([before] * 2, [after] * 2, report(old="failed")).own == {NEW}
    assert told([before] * 2, [report(new="passed", old="failed")] * 2, report(old="failed")).holds


def test_a_test_that_passed_before_must_be_there_and_pass_unless_the_change_itself_gave_it_up() -> None:
    assert told([FAILS] * 2, [PASSES] * 2, report(old="passed"), kept=(OLD,)).lost == (OLD,)
    assert told([FAILS] * 2, [PASSES] * 2, report(old="passed")).holds
    both = report(new="passed", old="passed")
    assert told([FAILS] * 2, [both] * 2, report(old="passed"), kept=(OLD,)).own == {NEW}


def result(found: Report | None, killed_by: str | None = None) -> TestResult:
    ran = Ran(exit_code=0, output="", files={}, seconds=1.0, killed_by=killed_by)
    return TestResult(
        ran=ran, report=found, test_seconds=1.0, script_sha="", log="", applied=True, canaries="none",
    )  # fmt: skip


def test_a_mutant_is_noticed_by_a_test_that_fails_or_is_gone_and_by_no_run_that_broke_down() -> None:
    assert noticed(result(FAILS), [NEW])
    assert noticed(result(report()), [NEW])
    assert not noticed(result(report(new="skipped")), [NEW])
    assert not noticed(result(PASSES), [NEW])
    assert not noticed(result(None), [NEW])
    assert not noticed(result(FAILS, killed_by="time"), [NEW])
    assert failed_in(result(FAILS), [NEW])
    assert not failed_in(result(report()), [NEW])


def test_a_variant_alarms_by_every_test_that_does_not_pass() -> None:
    assert alarmed(result(PASSES), [NEW]) is None
    for found in (FAILS, report(), report(new="skipped"), None):
        assert alarmed(result(found), [NEW]) == NEW


def test_patches_follow_each_other_line_by_line() -> None:
    assert over(b"a\n", b"b\n") == over(b"a", b"b") == b"a\nb\n"
    assert over(b"a\n", b"") == b"a\n"


def touched(path: str, before: str = "100644", after: str = "100644") -> Touched:
    return Touched(path=path, before=before, after=after)


@pytest.mark.parametrize(
    "file",
    [
        touched("tests/test_a.py"), touched("pkg/tests/data/x.bin", "000000"), touched("pkg/x_test.go", "000000"),
        touched("test/a.spec.ts"), touched("tests/test_a.py", after="000000"), touched("checks/a.py", "000000"),
    ],
    ids=lambda file: file.path,
)  # fmt: skip
def test_tests_and_what_lies_beside_them_may_be_touched(file: Touched) -> None:
    assert fault_of([file]) is None


@pytest.mark.parametrize(
    "file",
    [
        touched("pkg/a.py"), touched("checks/a.py"), touched("pkg/a.py", after="000000"), touched("tests/conftest.py"),
        touched("pyproject.toml"), touched("tox.ini", "000000"), touched("package.json"), touched("README.md"),
        touched("tests/link.py", "000000", "120000"), touched("sitecustomize.py", "000000"),
        touched("_pytest/tests/x.py", "000000"), touched("notes.txt", "000000"),
    ],
    ids=lambda file: f"{file.path}-{file.before}-{file.after}",
)  # fmt: skip
def test_sources_configuration_and_links_may_not(file: Touched) -> None:
    detail = fault_of([touched("tests/test_a.py"), file])
    assert detail is not None
    assert file.path in detail


def test_an_empty_patch_is_no_patch_of_tests() -> None:
    assert fault_of([]) == "the patch is empty"
