"""The grader in bundles: it parses reports like mergemill and detects forged results in the task's container."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from backends.services import Services
from evaluation.reports import junit
from exporters.task_files import build_grader_files, read_guest_modules
from guest.verifier import grade
from taskdb.records import Task
from tests.bundle_reports import read_in_bundle
from tests.containers import make_environment_image, make_services, run_in_container
from tests.exporters.tasks import BASE, FAIL_TO_PASS, PASS_TO_PASS, WORDS_RIGHT, make_task, make_task_with_image
from verifiers.grade import grade as grade_at_home

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
    assert read_in_bundle(OUTCOMES, KNOWN) == expected
    assert len(expected) == 11


@pytest.mark.parametrize("content", [b"", b"<a", b"<!DOCTYPE a><a/>", b'<?xml version="1.0" encoding="no"?><a/>'])
def test_content_that_is_no_report_has_no_tests(content: bytes) -> None:
    assert read_in_bundle(content, KNOWN) is None


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
    result = run_in_container(
        services,
        task.image,
        ["bash", "-c", f"{put}python3 -I -S /grader/grade.py --lines {shlex.quote('/lines')}"],
        files=files,
        collect=["/lines"],
    )
    return result.exit_code, result.files.get("/lines", b"").decode(), result.output


def _lines(status: str, tests: tuple[str, ...]) -> str:
    return "".join(f"{status} {test}\n" for test in tests)


@pytest.mark.docker
def test_the_gold_solution_passes_all_listed_tests(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    code, lines, output = _grade(services, make_task_with_image(services, tmp_path, evaluations=2), WORDS_RIGHT)
    assert (code, lines) == (0, _lines("PASSED", FAIL_TO_PASS + PASS_TO_PASS)), output


TWICE = """\
def pytest_generate_tests(metafunc):
    metafunc.fixturenames.append("repeat")
    metafunc.parametrize("repeat", [1, 2], ids="{}-2".format)
"""
"""Repeats each test, the canaries among them, as `pytest --count 2` does."""


def _make_repeated_task(services: Services, folder: Path) -> Task:
    """Return a task in whose tree every test is reported twice, as `NAME[1-2]` and `NAME[2-2]`."""
    image = make_environment_image(services, BASE | {"conftest.py": TWICE})
    task = make_task(services, folder, image=image)

    def repeat(test: str) -> list[str]:
        name, _, values = test.partition("[")
        return [f"{name}[{number}-2-{values}" if values else f"{name}[{number}-2]" for number in (1, 2)]

    controls = json.loads(services.artifacts.get(task.blind_controls or "")) | {"evaluations": 2}
    for block in controls["blocks"]:
        block["tests"] = [name for test in block["tests"] for name in repeat(test)]
        for value in (value for site in block["sites"] for value in site["values"]):
            value["fails"] = {name: kind for test, kind in value["fails"].items() for name in repeat(test)}
    return task.model_copy(
        update={
            "FAIL_TO_PASS": tuple((name, kind) for test, kind in task.FAIL_TO_PASS for name in repeat(test)),
            "PASS_TO_PASS": tuple(name for test in task.PASS_TO_PASS for name in repeat(test)),
            "blind_controls": services.artifacts.put(json.dumps(controls).encode()),
            "evaluations": 2,
        }
    )


@pytest.mark.docker
def test_tests_that_are_reported_twice_pass_at_home_and_in_the_bundle(tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=300)
    task = _make_repeated_task(services, tmp_path)
    assert len(task.FAIL_TO_PASS) == 2 * len(FAIL_TO_PASS)
    score = grade_at_home(task, services, services.artifacts.get(task.gold_patch))
    assert (score.value, score.tampering) == (1.0, ()), score
    code, lines, output = _grade(services, task, WORDS_RIGHT)
    listed = (*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS)
    assert (code, lines) == (0, _lines("PASSED", listed)), output


@pytest.mark.docker
def test_an_empty_submission_fails_the_fail_to_pass_tests(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    code, lines, output = _grade(services, make_task_with_image(services, tmp_path, evaluations=2), None)
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


PREPARE = """
mkdir -p /opt/cache/sub/deeper /opt/cache/empty /opt/open /opt/hidden /opt/outside
echo kept > /opt/outside/a
echo one > /opt/cache/sub/a; echo two > /opt/cache/sub/deeper/b; echo three > "/opt/cache/new
line"; ln -s sub/a /opt/cache/link; mkfifo /opt/cache/pipe
chown -R -h 1000:1000 /opt/cache; echo four > /opt/open/root; chmod 777 /opt/open
echo five | tee /opt/lock > /lock; chmod 666 /opt/lock /lock
echo six > /opt/hidden/x; chmod 666 /opt/hidden/x; chmod 700 /opt/hidden
touch -d 2001-02-03 /opt/cache/sub/a /opt/cache/sub
"""
CHANGES = {
    "content of the same length and time": "echo ONE > /opt/cache/sub/a; touch -d 2001-02-03 /opt/cache/sub/a",
    "new files": "echo x > /opt/cache/sub/new; echo x > /opt/open/-rf; echo x > /tmp/x; echo x > /testbed/x",
    "deleted": "rm -rf /opt/cache/sub /opt/cache/new* /opt/cache/link /opt/cache/pipe /opt/open/root",
    "folder to link": "rm -rf /opt/cache/sub; ln -s /opt/outside /opt/cache/sub",
    "file to folder": "rm /opt/cache/sub/a; mkdir -p /opt/cache/sub/a/b",
    "folder to file": "rm -r /opt/cache/sub; echo x > /opt/cache/sub",
    "link to file": "rm /opt/cache/link; echo x > /opt/cache/link",
    "modes and times": "chmod 700 /opt/cache/sub /opt/cache; chmod 777 /opt/cache/sub/a; touch /opt/cache/sub/deeper",
    "moved": "mv /opt/cache/sub/deeper /opt/cache/empty/; mv /opt/cache/empty /opt/cache/sub/",
    "a file of root": "echo seven | tee -a /opt/lock > /lock",
    "a tower": 'cd /opt/cache; python3 -c \'import os\nfor _ in range(2000): os.mkdir("deep"); os.chdir("deep")\'',
}
COMPARE = """
import json, os, subprocess, sys
sys.path.insert(0, "/grader")
import grade

CHANGED = ("/opt/cache", "/opt/open", "/opt/lock", "/opt/outside", "/lock")

def describe():
    found = {path: os.stat(path).st_mode for path in ("/", "/opt")}
    for folder in (*CHANGED, "/testbed", "/home/mergemill", "/tmp"):
        for path in grade.read_entries_below(folder):
            entry = os.lstat(path)
            is_link, is_file = os.path.islink(path), os.path.isfile(path)
            content = os.readlink(path) if is_link else open(path, "rb").read().hex() if is_file else ""
            time = 0 if path == "/tmp" else entry.st_mtime_ns
            found[path] = [entry.st_mode, entry.st_uid, entry.st_gid, content, time]
    return found

subprocess.check_call(["bash", "-c", json.load(open("/prepare.json"))])
before = describe()
state = grade.WritableState("/testbed", "/backup")
left = {}
for name, script in json.load(open("/changes.json")).items():
    user = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]
    subprocess.call([*user, "bash", "-c", script], stderr=subprocess.DEVNULL)
    changed = name == "a tower" or describe() != before  # whose paths are too long to look at
    state.restore()
    after = describe()
    left[name] = [changed, [path for path in {*before, *after} if before.get(path) != after.get(path)]]
print("RESULT" + json.dumps({"left": left, "saved": sorted(p for p in state.saved if p.count("/") == 2)}))
"""


@pytest.mark.docker
def test_a_later_run_finds_nothing_that_an_earlier_one_has_written(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    result = services.sandbox.run(
        make_task_with_image(services, tmp_path).image,
        ["python3", "/compare.py"],
        limits=services.test_limits(),
        files={
            "/grader/grade.py": Path(grade.__file__).read_bytes(),
            **{f"/grader/{path}": content for path, content in read_guest_modules().items()},
            "/compare.py": COMPARE.encode(),
            "/prepare.json": json.dumps(PREPARE).encode(),
            "/changes.json": json.dumps(CHANGES).encode(),
        },
    )
    assert "RESULT" in result.output, result.output
    body = json.loads(result.output.partition("RESULT")[2])
    assert body["left"] == {name: [True, []] for name in CHANGES}, result.output
    assert {"/opt/cache", "/opt/open", "/opt/lock", "/home/mergemill"} <= set(body["saved"])
    assert not {"/opt/hidden", "/opt/outside"} & set(body["saved"])


def test_the_time_for_all_runs_grows_with_the_evaluations(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    for evaluations in (1, 12):
        files = build_grader_files(task.model_copy(update={"evaluations": evaluations}), services)
        data = json.loads(files["task.json"])
        assert data["deadline"] > evaluations * data["seconds"]
