"""JUnit reports of real runners and of hostile code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.reports import junit
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus
from guest.reports.junit import UnreadableReportError
from tests.bundle_reports import read_in_bundle
from tests.plain_pytest import WITHOUT_PLUGINS

SUITE = r"""
import pytest
from nowhere_but_here import *

@pytest.fixture
def broken_after():
    yield
    raise RuntimeError("late")

@pytest.fixture
def broken_before():
    raise RuntimeError("early")

def test_passes(): pass
def test_fails(): assert 1 == 2
def test_errors(): raise KeyError("x")
def test_setup(broken_before): pass
def test_teardown(broken_after): pass
def test_skips(): pytest.skip("not here")
@pytest.mark.xfail
def test_xfails(): assert 0
@pytest.mark.xfail(strict=True)
def test_xpasses(): pass
@pytest.mark.parametrize("x", ["a b", "c::d", "ü", "\x1b", "[y]", "x.y/z"])
def test_names(x): pass
class TestOuter:
    class TestInner:
        def test_deep(self): pass
"""


def run_pytest(folder: Path, *arguments: str) -> bytes:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--junitxml=out.xml",
        "-o",
        "junit_family=xunit1",
    ]
    subprocess.run(
        [*command, "--continue-on-collection-errors", *arguments],
        cwd=folder,
        env=os.environ | WITHOUT_PLUGINS,
        capture_output=True,
        check=False,
    )
    return (folder / "out.xml").read_bytes()


def statuses(report: EvaluationReport) -> dict[str, str]:
    return {test.partition("::")[2]: outcome.status.value for test, outcome in report.outcomes.items()}


def test_every_status_of_a_test_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "sub.dir").mkdir()
    (tmp_path / "nowhere_but_here.py").write_text("")
    (tmp_path / "sub.dir/test_a.py").write_text(SUITE)
    (tmp_path / "sub.dir/test_b.py").write_text("import not_there_at_all\n")
    content = run_pytest(tmp_path, "-p", "no:xdist", "--rootdir=.", "-o", "pythonpath=.")
    report = junit.parse_junit(content, ["sub.dir/test_a.py", "sub.dir/test_b.py", "nowhere_but_here.py"])
    assert report.list_files() == {"sub.dir/test_a.py"}
    assert list(report.uncollected) == ["sub.dir/test_b.py"]
    names = {f"test_names[{x}]": "passed" for x in ("a b", "c::d", r"\xfc", r"\x1b", "[y]", "x.y/z")}
    assert statuses(report) == names | {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_errors": "failed",
        "test_setup": "error",
        "test_teardown": "error",
        "test_skips": "skipped",
        "test_xfails": "xfailed",
        "test_xpasses": "failed",
        "TestOuter::TestInner::test_deep": "passed",
    }
    assert report.outcomes["sub.dir/test_a.py::test_fails"].message == "assert 1 == 2"
    assert report.outcomes["sub.dir/test_a.py::test_errors"].message == "KeyError: 'x'"


def test_a_root_inside_the_tree_gives_the_same_ids(tmp_path: Path) -> None:
    (tmp_path / "deep/tests").mkdir(parents=True)
    (tmp_path / "deep/tests/test_a.py").write_text("class TestX:\n    def test_it(self): pass\n")
    content = run_pytest(tmp_path, "-p", "no:xdist", "--rootdir=deep/tests", "deep/tests/test_a.py")
    report = junit.parse_junit(content, ["deep/tests/test_a.py", "other/tests/test_b.py"])
    assert list(report.outcomes) == ["deep/tests/test_a.py::TestX::test_it"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<testsuite><testcase",
        b'<!DOCTYPE x [<!ENTITY a "aaaaaaaa">]><testsuite/>',
        b"\x00\xff",
        b'<?xml version="1.0" encoding="nonsense"?><testsuite/>',
    ],
)
def test_content_that_is_no_report_is_rejected(content: bytes) -> None:
    with pytest.raises(UnreadableReportError):
        junit.parse_junit(content, [])


def test_the_worst_status_of_two_rows_of_a_test_is_kept() -> None:
    row = '<testcase classname="test_a" name="test_x" time="0.5">{}</testcase>'
    content = "<testsuite>" + row.format('<error message="x"/>') + row.format("") + "</testsuite>"
    outcome = junit.parse_junit(content.encode(), ["test_a.py"]).outcomes["test_a.py::test_x"]
    assert (outcome.status, outcome.seconds) == (OutcomeStatus.ERROR, 1.0)


def test_an_xpass_of_old_pytest_is_a_pass() -> None:
    content = (
        b'<testsuite><testcase classname="test_a" name="t">'
        b'<skipped message="xfail-marked test passes unexpectedly"/></testcase></testsuite>'
    )
    assert junit.parse_junit(content, ["test_a.py"]).outcomes["test_a.py::t"].status is OutcomeStatus.PASSED


ADDRESSES = """
import pytest

class Thing: pass
def plain(): pass

@pytest.mark.parametrize("x", [Thing(), Thing(), plain], ids=repr)
def test_objects(x): assert x is plain

@pytest.mark.parametrize("x", [0xdeadbeef], ids=hex)
def test_constants(x): pass

@pytest.fixture
def broken_after():
    yield
    raise RuntimeError("late")

@pytest.mark.parametrize("x", [Thing(), Thing()], ids=repr)
def test_teardown(x, broken_after): pass
"""


def test_ids_with_addresses_are_the_same_in_every_run_and_one_for_each_test(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(ADDRESSES)
    runs = [run_pytest(tmp_path, "-p", "no:xdist", "--rootdir=.") for _ in range(2)]
    reports = [statuses(junit.parse_junit(content, ["test_a.py"])) for content in runs]
    assert [read_in_bundle(content, ["test_a.py"]) for content in runs] == [
        {f"test_a.py::{test}": status for test, status in report.items()} for report in reports
    ]
    objects = {f"test_objects[<test_a.Thing object at 0x\u2026>]{end}": "failed" for end in ("", " #2")}
    torn = {f"test_teardown[<test_a.Thing object at 0x\u2026>]{end}": "error" for end in ("", " #2")}
    plain = {"test_objects[<function plain at 0x\u2026>]": "passed", "test_constants[0xdeadbeef]": "passed"}
    assert reports == [objects | torn | plain] * 2


def test_two_files_of_one_dotted_path_have_tests_of_their_own(tmp_path: Path) -> None:
    files = ["a.b/test_c.py", "a/b/test_c.py"]
    rows = "".join(f'<testcase classname="a.b.test_c" file="{file}" name="test_x"/>' for file in files)
    content = f"<testsuite>{rows}</testsuite>".encode()
    assert list(junit.parse_junit(content, files).outcomes) == [f"{file}::test_x" for file in files]
    assert list(read_in_bundle(content, files) or ()) == [f"{file}::test_x" for file in files]


def test_the_row_that_pytest_adds_when_it_is_interrupted_is_no_file() -> None:
    rows = '<testcase classname="test_a" name="test_a" file="test_a.py" line="0" time="0.0" /><testcase time="0.0" />'
    report = junit.parse_junit(f"<testsuites><testsuite>{rows}</testsuite></testsuites>".encode(), {"test_a.py"})
    assert list(report.outcomes) == ["test_a.py::test_a"]
    assert report.uncollected == {}
