"""The grader in bundles: it parses reports like mergemill and detects forged results in the task's container."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from backends.services import Services
from evaluation.reports import junit
from exporters.container import grade
from exporters.task_files import build_grader_files
from taskdb.records import Task
from tests.containers import make_services
from tests.exporters.tasks import FAIL_TO_PASS, PASS_TO_PASS, WORDS_RIGHT, make_task_with_image

KNOWN = ("tests/test_a.py", "tests/sub/test_a.py", "test_b.py", "pkg/tests/test_c.py", "README.rst")
CASES = """
<testcase classname="tests.test_a" name="one" time="0.1"/>
<testcase classname="tests.test_a.TestX.Inner" name="two[a b]"><failure message="no"/></testcase>
<testcase classname="tests.sub.test_a" name="three"><skipped type="pytest.xfail" message=""/></testcase>
<testcase classname="test_b" name="four"><skipped type="pytest.skip" message="why"/></testcase>
<testcase classname="test_b" name="five"/>
<testcase classname="test_b" name="five"><error message="teardown"/></testcase>
<testcase classname="" name="tests.test_gone"><error message="collection failure">gone</error></testcase>
<testcase classname="tests.test_c.TestY" name="six" file="tests/test_c.py"/>
<testcase classname="TestZ" name="seven" file="pkg/tests/test_c.py"/>
<testcase classname="nowhere.at_all" name="eight"/>
<testcase classname="README.rst" name="README.rst" file="README.rst"/>
<testcase classname="test_b" name="nine"><skipped message="xfail-marked test passes unexpectedly"/></testcase>
<testcase classname="test_b" name="ten"><failure>\n\n</failure></testcase>
"""
OUTCOMES = f"<testsuites><testsuite>{CASES}</testsuite></testsuites>".encode()


def test_the_grader_reads_reports_as_mergemill_does() -> None:
    expected = {test: outcome.status.value for test, outcome in junit.parse_junit(OUTCOMES, KNOWN).outcomes.items()}
    assert grade.parse_outcomes(OUTCOMES, KNOWN) == expected
    assert len(expected) == 11


@pytest.mark.parametrize("content", [b"", b"<a", b"<!DOCTYPE a><a/>", b'<?xml version="1.0" encoding="no"?><a/>'])
def test_content_that_is_no_report_has_no_tests(content: bytes) -> None:
    assert grade.parse_outcomes(content, KNOWN) == {}


def test_lines_that_a_harness_would_parse_are_changed_in_the_output() -> None:
    output = grade.OutputBuffer()
    output.head = b">>>>> Start Test Output\nPASSED a.py::t\n"
    assert not any(line.startswith(("PASSED", ">>>>>")) for line in output.to_text().splitlines())
    assert ">>>>> " not in output.to_text()


def _grade(services: Services, task: Task, solution: str | None) -> tuple[int, str, str]:
    """Grade with words.py replaced by `solution`; return exit code, written lines and output."""
    files = {f"/grader/{name}": content for name, content in build_grader_files(task, services).items()}
    if solution is not None:
        files["/solution.py"] = solution.encode()
    put = "cp /solution.py /testbed/words.py; " if solution is not None else ""
    result = services.sandbox.run(
        task.image,
        ["bash", "-c", f"{put}python3 -I -S /grader/grade.py --lines {shlex.quote('/lines')}"],
        limits=services.test_limits(),
        files=files,
        collect=["/lines"],
    )
    return result.exit_code, result.files.get("/lines", b"").decode(), result.output


def _lines(status: str, tests: tuple[str, ...]) -> str:
    return "".join(f"{status} {test}\n" for test in tests)


@pytest.mark.docker
def test_the_gold_solution_passes_all_listed_tests(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    code, lines, output = _grade(services, make_task_with_image(services, tmp_path), WORDS_RIGHT)
    assert (code, lines) == (0, _lines("PASSED", FAIL_TO_PASS + PASS_TO_PASS)), output


@pytest.mark.docker
def test_an_empty_submission_fails_the_fail_to_pass_tests(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    code, lines, output = _grade(services, make_task_with_image(services, tmp_path), None)
    assert (code, lines) == (1, _lines("FAILED", FAIL_TO_PASS) + _lines("PASSED", PASS_TO_PASS)), output


LISTED = FAIL_TO_PASS + PASS_TO_PASS
REWRITTEN = """\
import _pytest.runner
old = _pytest.runner.TestReport.from_item_and_call
def forged(item, call):
    if {whose!r} in item.nodeid:
        call.excinfo = None
    return old(item, call)
_pytest.runner.TestReport.from_item_and_call = staticmethod(forged)
def count(words):
    return 4
"""
EQUAL = """\
class E(int):
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__
def count(words):
    return E(0)
"""
FORGERIES = {
    "lines printed, then a quiet exit": f"import os\nos.write(1, {_lines('PASSED', LISTED).encode()!r})\nos._exit(0)\n",
    "every outcome rewritten": REWRITTEN.format(whose=""),
    "the listed outcomes rewritten": REWRITTEN.format(whose="test_words"),
    "equal to everything": EQUAL,
}


@pytest.mark.docker
@pytest.mark.parametrize("how", FORGERIES)
def test_forged_results_pass_no_test(how: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    code, lines, output = _grade(services, make_task_with_image(services, tmp_path), FORGERIES[how])
    assert code == 1, output
    assert "PASSED" not in lines, output


@pytest.mark.docker
def test_a_script_that_fails_is_an_infrastructure_error_without_a_score(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task_with_image(services, tmp_path)
    script = services.artifacts.put(b"echo trouble\nexit 97\n")
    code, lines, output = _grade(services, task.model_copy(update={"eval_script": script}), WORDS_RIGHT)
    assert (code, lines) == (97, "")
    assert "MERGEMILL_INFRASTRUCTURE_ERROR" in output
