"""Tests whose ids hold a date of the run are in no list, whatever its notation; those of a constant date stay."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.sandbox.execution import ExecResult
from evaluation.dated_ids import find_dated_tests, make_undated_lists
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.evaluator import EvaluationRun
from evaluation.runner.run import EvaluationResult
from evaluation.weak_tests.find import TreeSource
from taskdb.records import RunVariant
from tests.helpers import TinyRepo
from tests.records import make_test_run

DAY = date(2026, 11, 28)
"""Day of the run, a Saturday in week 48."""

DATED = (
    "2026-11-28",
    "20261128",
    "28/11/2026",
    "11/28/2026",
    "28.11.2026",
    "2026/11/28",
    "2026_11_28",
    "2026.11.28",
    "28112026",
    "Nov 28 2026",
    "Nov 28, 2026",
    "28 November 2026",
    "28-Nov-2026",
    "November 28th, 2026",
    "Sat Nov 28 2026",
    "28 nov 26",
    "28th of November",
    "26-11-28",
    "28.11.26",
    "261128",
    "2026-W48",
    "2026W48",
    "W48",
    "week 48",
    "2026-332",
    "2026332",
    "2026",
    "2025",
    "2027",
    "FY2026",
    "year_2027",
    "2026-11",
    "202611",
    "11/2026",
    "Nov 2026",
    "November 2026",
    "2026-Q4",
    "2026-11-27",
    "2026-11-29",
    "27 Nov",
    "2027-11-28",
    "2025-11-28",
    "2026-12-05",
    "2026-11-01",
    "2026-11-28T00:00:00",
    "2026-11-28 00:00:00+00:00",
    "20261128T000000",
    "20261128000000",
    "20261128_120000",
    "1795824000",
    "1795824000000",
    "1795824000.0",
    "v2026.11.28",
    "report-2026-11-28.json",
    "28/11",
    "11/28",
    "Saturday",
    "NOVEMBER",
    "5-2026-11-28-utc",
    "2026年11月28日",
)
STABLE = (
    "adds",
    "1-2-3",
    "x2020",
    "2020-05-17",
    "17 May 2020",
    "1999",
    "2030-01-01",
    "1-28",
    "0.2026",
    "120261128",
    "20269999",
    "W12",
    "1589673600",
    "48",
    "11-28",
    "Tuesday",
    "May",
    "100",
    "v1.2.3",
    "0x2026ff",
    "12:30",
)
HELD = {
    "2026-11-28": (
        "date(2026, 11, 28)",
        "new Date(2026, 10, 28)",
        "LocalDate.of(2026, Month.NOVEMBER, 28)",
        "'28.11.2026'",
        '"Nov 28, 2026"',
        "time.Date(2026, time.November, 28, 0)",
        "'20261128'",
        "datetime.date(\n    2026, 11, 28)",
        "'2026-11-28T10:00:00Z'",
    ),
    "28 November 2026": ("date(2026, 11, 28)", "'2026-11-28'"),
    "20261128": ("'2026-11-28'",),
    "2026": ("[2026]", "date(2026, 3, 1)", "test_2026", "range(2020, 2028)", "2020; y <= 2027", "'20260301'"),
    "2027": ("range(2020, 2028)", "2027"),
    "2026-11": ("'2026-11'", "date(2026, 11, 3)", "'November 2026'"),
    "2026-W48": ("'2026-W48'", "date(2026, 11, 25)"),
    "28 November": ("'Nov 28'", "date(2020, 11, 28)"),
    "1795824000": ("1795824000", "date(2026, 11, 28)"),
    "Saturday": ("days = ['saturday']",),
}
NOT_HELD = {
    "2026-11-28": ("2026", "date(2026, 11, 27)", "# 2026-11-28\n", '"""Since 2026-11-28."""\n'),
    "2026": ("# Copyright 2026\n", "2020, 2030", "x = 12026", '"""Copyright 2026."""\n', "a = 1  # of 2026\n"),
    "28 November": ("date(2026, 11, 27)",),
}


def find(tmp_path: Path, tests: dict[str, str], days: set[date] | None = None, **files: str) -> dict[str, str]:
    """Return the dated tests of ids and sources, given as name of a test -> content of its file."""
    sources = {f"tests/test_{number}.py": text for number, text in enumerate(tests.values())}
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", sources | files)
    ids = {f"tests/test_{number}.py::test[{name}]": name for number, name in enumerate(tests)}
    tree = TreeSource(repository=GitRepository(repo.path), base=base, patches=())
    return {ids[test]: text for test, text in find_dated_tests(list(ids), days or {DAY}, tree).items()}


def test_a_date_of_the_run_is_found_in_every_notation(tmp_path: Path) -> None:
    dated = find(tmp_path, dict.fromkeys([*DATED, *STABLE], "def test(day): assert date(2020, 5, 17)\n"))
    assert [name for name in DATED if name not in dated] == []
    assert [name for name in STABLE if name in dated] == []


@pytest.mark.parametrize("name", HELD)
def test_a_date_that_stands_in_the_source_is_constant(name: str, tmp_path: Path) -> None:
    for number, source in enumerate(HELD[name]):
        assert find(tmp_path / str(number), {name: f"x = [\n{source}\n]\n"}) == {}, source


@pytest.mark.parametrize("name", NOT_HELD)
def test_another_date_or_a_comment_does_not_hold_it(name: str, tmp_path: Path) -> None:
    for number, source in enumerate(NOT_HELD[name]):
        assert list(find(tmp_path / str(number), {name: f"{source}\n"})) == [name], source


def test_the_year_changes_between_days(tmp_path: Path) -> None:
    names = {"2025-12-31": "", "2026-01-01": "", "2024": "", "2027": ""}
    assert list(find(tmp_path, names, {date(2025, 12, 31)})) == list(names)


def find_in(tmp_path: Path, files: dict[str, str], *ids: str) -> list[str]:
    repo = TinyRepo(tmp_path / "repo")
    tree = TreeSource(repository=GitRepository(repo.path), base=repo.commit("Start", files), patches=())
    return list(find_dated_tests(ids, {DAY}, tree))


def test_sources_are_read_in_every_language(tmp_path: Path) -> None:
    files = {
        "a_test.go": "package a // 2026\nvar held = 2027\n",
        "src/a.test.js": "// 2026\ntest.each([2027])\n",
        "src/ATest.java": "/* 2026 */ int held = 2027;\n",
        "t/a.t": "# 2026\nis 2027;\n",
        "tests/testthat/test-a.R": "# 2026\nx <- 2027\n",
        "tests/conftest.py": "YEAR = 2027\n",
        "tests/deep/test_a.py": "",
    }
    held = [*(f"{file}::case 2027" for file in files if "conftest" not in file), "src::case 2027"]
    dated = [test.replace("2027", "2026") for test in held]
    assert find_in(tmp_path, files, *held, *dated) == dated


def test_a_table_of_all_weekdays_is_constant(tmp_path: Path) -> None:
    days = [
        f"test_a.py::test[{day}]"
        for day in ("Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday")
    ]
    assert find_in(tmp_path, {"test_a.py": "import calendar\n"}, *days) == []
    assert find_in(tmp_path / "one", {"test_a.py": "import calendar\n"}, days[1]) == [days[1]]


def test_dates_in_names_of_files_are_no_dates_of_the_run(tmp_path: Path) -> None:
    assert find_in(tmp_path, {"2026-11-28/test_2026.py": ""}, "2026-11-28/test_2026.py::test_adds") == []


def test_the_name_of_a_file_of_the_tree_is_constant(tmp_path: Path) -> None:
    files = {"data/report-2026-11-28.json": "", "data/2026.json": "", "test_a.py": "import glob\n"}
    ids = ("test_a.py::test[report-2026-11-28.json]", "test_a.py::test[2026]", "test_a.py::test[report-2026-11-27]")
    assert find_in(tmp_path, files, *ids) == list(ids[1:])


def test_a_source_that_the_patches_do_not_give_holds_nothing(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"test_a.py": "YEAR = 2026\n"})
    tree = TreeSource(repository=GitRepository(repo.path), base=base, patches=(b"no patch",))
    assert list(find_dated_tests(["test_a.py::test[2026]"], {DAY}, tree)) == ["test_a.py::test[2026]"]


def make_run(variant: RunVariant, started: datetime, **statuses: OutcomeStatus) -> EvaluationRun:
    outcomes = {f"test_a.py::test[{name}]": Outcome(status=status) for name, status in statuses.items()}
    exec_result = ExecResult(exit_code=0, output="", killed_by=None, seconds=1.0, files={})
    result = EvaluationResult(
        exec_result=exec_result,
        report=EvaluationReport(outcomes=outcomes, uncollected={}),
        test_seconds=1.0,
        started=started.timestamp(),
        script_sha256="",
        log="",
        is_applied=True,
        canary_status="right",
    )
    return EvaluationRun(record=make_test_run(variant=variant), result=result)


def test_lists_leave_dated_tests_out_and_name_them_by_the_day_of_the_runs(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"test_a.py": ""})
    tree = TreeSource(repository=GitRepository(repo.path), base=base, patches=())
    names = ("adds", "2019-07-04", "year_2020", "2026-11-28")
    failed = dict.fromkeys(names, OutcomeStatus.FAILED) | {"year_2020": OutcomeStatus.PASSED}
    passed = dict.fromkeys(names, OutcomeStatus.PASSED)
    start = datetime(2019, 7, 4, 12, tzinfo=UTC)  # the clock of the container, whatever day it is here
    before, after = make_run(RunVariant.TEST_ONLY, start, **failed), make_run(RunVariant.GOLD, start, **passed)
    lists = make_undated_lists([before, before], [after, after], tree)
    assert [test for test, _ in lists.fail_to_pass] == ["test_a.py::test[2026-11-28]", "test_a.py::test[adds]"]
    assert lists.pass_to_pass == ()
    assert {flaky.test: flaky.date for flaky in lists.flaky} == {
        "test_a.py::test[2019-07-04]": "2019-07-04",
        "test_a.py::test[year_2020]": "the year 2020",
    }
    assert lists.flaky_fail_to_pass == ("test_a.py::test[2019-07-04]",)
    described = (
        "its id holds 2019-07-04, a date of the run, which its source does not; test-only: failed 2; gold: passed 2"
    )
    assert lists.flaky[0].describe_counts() == described
