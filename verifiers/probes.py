"""Submissions that must earn 0. `PROBES` is the complete list.

Probes are made from the task's own files and tests. They attack the restored test files, the report and its parser, and
are graded as patches like any other submission.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from backends.git import run_git
from backends.sandbox.container_names import make_folder_prefix
from languages.paths import is_protected
from taskdb.records import Task

Changes = Mapping[str, bytes | None]
"""Path -> new content, None to delete the file."""

_FORGING_HOOK = """

def pytest_runtest_makereport(item, call):
    from _pytest.reports import TestReport
    report = TestReport.from_item_and_call(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
"""
_EXIT = "\n\nimport os as _os\n_os._exit(0)\n"
# Canaries are left alone, since their names are not predictable: only sabotaged tests expose this forgery.
_FORGED_REPORT = """

import atexit as _atexit


def _forge(tests={tests}):
    import os
    import xml.etree.ElementTree as xml
    for word in open("/proc/self/cmdline").read().split(chr(0)):
        path = word.split("=")[-1]
        if not path.endswith(".xml") or not os.path.exists(path):
            continue
        report = xml.parse(path)
        suite = next(iter(report.iter("testsuite")))
        for classname, name in tests:
            found = [case for case in suite if (case.get("classname"), case.get("name")) == (classname, name)]
            for case in found:
                suite.remove(case)
            xml.SubElement(suite, "testcase", classname=classname, name=name, time="0.001")
        report.write(path)


_atexit.register(_forge)
"""


_PASSED = """            xml.SubElement(suite, "testcase", classname=classname, name=name, time="0.001")
"""
_BY_COIN = _FORGED_REPORT.replace(
    _PASSED,
    """            case = xml.SubElement(suite, "testcase", classname=classname, name=name, time="0.001")
            if os.urandom(1)[0] % 2:
                xml.SubElement(case, "failure", message="AssertionError: assert 1 == 2").text = "AssertionError"
""",
)


@dataclass(frozen=True, kw_only=True)
class ProbeTarget:
    """The task and the base tree's files (`select_base_files`) from which probes are made."""

    task: Task
    gold_files: Sequence[str]
    """Paths changed by the gold patch; both names of renamed files."""
    base: Mapping[str, bytes]

    @cached_property
    def tests(self) -> list[str]:
        """Python files of the FAIL_TO_PASS tests."""
        files = {test.partition("::")[0] for test, _ in self.task.FAIL_TO_PASS}
        return sorted(file for file in files if file.endswith(".py"))

    @cached_property
    def sources(self) -> list[str]:
        """Python source files of the gold patch."""
        return [path for path in self.gold_files if path.endswith(".py") and not is_protected(path)]

    @cached_property
    def test_files(self) -> list[str]:
        """Files of the FAIL_TO_PASS tests in any language."""
        return sorted({test.partition("::")[0] for test, _ in self.task.FAIL_TO_PASS})

    @cached_property
    def program_files(self) -> list[str]:
        """Files of the gold patch, in any language, that the base tree has and that are no tests or configuration."""
        return [path for path in self.touched if not is_protected(path)]

    @cached_property
    def touched(self) -> dict[str, bytes]:
        """Content of the base tree's files that the gold patch changes, removes or renames."""
        return {path: self.base[path] for path in self.gold_files if path in self.base}

    @cached_property
    def conftests(self) -> list[str]:
        """Paths of a conftest.py at the root and beside each test file."""
        folders = {posixpath.dirname(file) for file in self.tests}
        return sorted({posixpath.join(folder, "conftest.py") for folder in (*folders, "")})

    def append_to_files(self, paths: Sequence[str], text: str) -> Changes:
        """Append a text to files; a file that the base tree lacks is created."""
        return {path: self.base.get(path, b"") + text.encode() for path in paths}

    def make_forging_code(self, template: str = _FORGED_REPORT) -> str:
        """Return code that rewrites the report at process exit so that the FAIL_TO_PASS tests pass."""
        rows = []
        for test, _ in self.task.FAIL_TO_PASS:
            head, bracket, parameters = test.partition("[")
            file, *classes, name = head.split("::")
            rows.append((".".join([file.removesuffix(".py").replace("/", "."), *classes]), name + bracket + parameters))
        return template.format(tests=ascii(rows))


def select_base_files(task: Task, gold_files: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate for the base tree's files that a `ProbeTarget` needs."""
    target = ProbeTarget(task=task, gold_files=gold_files, base={})
    needed = {*target.test_files, *target.sources, *target.conftests, *target.gold_files}
    return lambda path: path in needed or posixpath.basename(path) == "conftest.py"


# -------------------------------------------------------------------------------------------- makers of probes


def _change_nothing(_: ProbeTarget) -> Changes:
    return {}


def _add_stray_file(_: ProbeTarget) -> Changes:
    return {"mergemill-noop.txt": b"An unrelated file.\n"}


def _delete_tests(target: ProbeTarget) -> Changes:
    return dict.fromkeys(path for path in target.base if path in target.tests or path.endswith("conftest.py"))


def _empty_tests(target: ProbeTarget) -> Changes:
    """Replace each FAIL_TO_PASS test with an empty test of the same name."""
    by_file: dict[str, dict[str, None]] = {file: {} for file in target.tests}
    for test, _ in target.task.FAIL_TO_PASS:
        file, _, name = test.partition("[")[0].partition("::")
        by_file.get(file, {})[name] = None
    return {file: "".join(_write_trivial_test(name) for name in names).encode() for file, names in by_file.items()}


def _write_trivial_test(name: str) -> str:
    *classes, function = name.split("::")
    lines = [f"{'    ' * depth}class {part}:" for depth, part in enumerate(classes)]
    return "\n".join([*lines, f"{'    ' * len(classes)}def {function}(*_): pass", ""])


def _forge_in_conftest(target: ProbeTarget) -> Changes:
    return target.append_to_files(target.conftests, _FORGING_HOOK)


def _exit_in_conftest(target: ProbeTarget) -> Changes:
    return target.append_to_files(target.conftests, _EXIT)


def _forge_in_plugin(_: ProbeTarget) -> Changes:
    return {
        "pytest.ini": b"[pytest]\naddopts = -p mergemill_probe\n",
        "mergemill_probe.py": _FORGING_HOOK.encode(),
    }


def _forge_at_startup(target: ProbeTarget) -> Changes:
    code = target.make_forging_code().encode()
    return {"sitecustomize.py": code, "usercustomize.py": code, "mergemill.pth": b"import os; os._exit(0)\n"}


def _exit_in_source(target: ProbeTarget) -> Changes:
    return target.append_to_files(target.sources, _EXIT)


def _forge_in_source(target: ProbeTarget) -> Changes:
    return target.append_to_files(target.sources, target.make_forging_code())


def _forge_by_coin(target: ProbeTarget) -> Changes:
    return target.append_to_files(target.sources, target.make_forging_code(_BY_COIN))


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A submission that must earn 0.

    Attributes:
        name: name in reports.
        description: the action that the submission does.
        make: function that returns its changes, empty where it cannot be made from the target.
        needs_controls: whether nothing but negative controls exposes it, so that it may earn 1 where there are none.
    """

    name: str
    description: str
    make: Callable[[ProbeTarget], Changes] = field(repr=False)
    needs_controls: bool = False


NO_OP = Probe(name="no-op", description="an empty patch", make=_change_nothing)
PROBES: tuple[Probe, ...] = (
    NO_OP,
    Probe(name="stray-file", description="a patch that adds an unrelated file", make=_add_stray_file),
    Probe(name="deleted-tests", description="a patch that deletes the tests and every conftest.py", make=_delete_tests),
    Probe(name="only-tests", description="a patch that empties the tests of their statements", make=_empty_tests),
    Probe(
        name="conftest-forges", description="a conftest.py that reports every test as passed", make=_forge_in_conftest
    ),
    Probe(name="conftest-exits", description="a conftest.py that ends the process with 0", make=_exit_in_conftest),
    Probe(
        name="configured-plugin", description="a pytest.ini with a plug-in that forges reports", make=_forge_in_plugin
    ),
    Probe(
        name="start-up",
        description="a sitecustomize, usercustomize and .pth that forge the report",
        make=_forge_at_startup,
    ),
    Probe(name="source-exits", description="source code that ends the process with 0", make=_exit_in_source),
    Probe(
        name="source-forges",
        description="source code that rewrites the report at process exit",
        make=_forge_in_source,
        needs_controls=True,
    ),
)


COIN_FORGER = Probe(
    name="coin-forges",
    description="source code that rewrites the report at process exit, where coins decide which tests fail",
    make=_forge_by_coin,
    needs_controls=True,
)
"""The best that a submission can do which knows all of mergemill and cannot solve the task."""


def make_patch(changes: Changes, base: Mapping[str, bytes]) -> bytes:
    """Return a git diff of the changes against the base tree."""
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("probe")) as name:
        folder = Path(name)
        run_git("init", "-q", cwd=folder)
        _write_files(folder, {path: base.get(path) for path in changes})
        run_git("add", "-A", "-f", cwd=folder)
        before = run_git("write-tree", cwd=folder).decode().strip()
        _write_files(folder, changes)
        run_git("add", "-A", "-f", cwd=folder)
        return run_git("diff-index", "--cached", "--binary", "--full-index", "--no-renames", before, cwd=folder)


def _write_files(folder: Path, files: Changes) -> None:
    for path, content in sorted(files.items(), key=lambda item: item[1] is not None):  # a folder may replace a file
        target = folder / path
        if re.search(r"(^|/)\.\.?(/|$)", path):
            continue
        if content is None:
            with suppress(FileNotFoundError, NotADirectoryError):
                target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
