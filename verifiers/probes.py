"""Submissions that must earn nothing. Reading PROBES is reading what is tried on every task.

Each is made from the task's own files and tests, so it attacks where this task could be weak: what is put back before
a run, the report, and the reading of it. They are real patches, graded as any other.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from backends.git import git
from languages.paths import is_protected
from taskdb.records import Task

Changes = Mapping[str, bytes | None]
"""Path -> new content, None to delete."""

_FORGING_HOOK = """

def pytest_runtest_makereport(item, call):
    from _pytest.reports import TestReport
    report = TestReport.from_item_and_call(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
"""
_EXIT = "\n\nimport os as _os\n_os._exit(0)\n"
# Spares the canaries, whose names it cannot know: what is left to find it out are the twins.
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


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a probe is made of: the task, and of its base tree the files that `wanted` names."""

    task: Task
    gold_files: Sequence[str]
    """Paths the gold patch touches."""
    base: Mapping[str, bytes]

    @cached_property
    def tests(self) -> list[str]:
        """Python files of the FAIL_TO_PASS tests."""
        files = {test.partition("::")[0] for test, _ in self.task.FAIL_TO_PASS}
        return sorted(file for file in files if file.endswith(".py"))

    @cached_property
    def sources(self) -> list[str]:
        """Python files of the gold patch's."""
        return [path for path in self.gold_files if path.endswith(".py") and not is_protected(path)]

    @cached_property
    def conftests(self) -> list[str]:
        """A conftest.py at the root and beside each test file."""
        folders = {posixpath.dirname(file) for file in self.tests}
        return sorted({posixpath.join(folder, "conftest.py") for folder in (*folders, "")})

    def extended(self, paths: Sequence[str], text: str) -> Changes:
        """The files with a text at their end; those the base tree lacks hold nothing else."""
        return {path: self.base.get(path, b"") + text.encode() for path in paths}

    def forged(self) -> str:
        """Code that rewrites the report at the end of the process so that the FAIL_TO_PASS tests pass."""
        rows = []
        for test, _ in self.task.FAIL_TO_PASS:
            head, bracket, parameters = test.partition("[")
            file, *classes, name = head.split("::")
            rows.append((".".join([file.removesuffix(".py").replace("/", "."), *classes]), name + bracket + parameters))
        return _FORGED_REPORT.format(tests=ascii(rows))


def wanted(task: Task, gold_files: Sequence[str]) -> Callable[[str], bool]:
    """Which files of the base tree a Target needs."""
    target = Target(task=task, gold_files=gold_files, base={})
    named = {*target.tests, *target.sources, *target.conftests}
    return lambda path: path in named or posixpath.basename(path) == "conftest.py"


# ------------------------------------------------------------------------------------------------- the probes


def _nothing(_: Target) -> Changes:
    return {}


def _beside(_: Target) -> Changes:
    return {"mergemill-noop.txt": b"A file that nobody asks for.\n"}


def _deleted(target: Target) -> Changes:
    return dict.fromkeys(path for path in target.base if path in target.tests or path.endswith("conftest.py"))


def _only_tests(target: Target) -> Changes:
    """The FAIL_TO_PASS tests under their own names, with nothing in them."""
    by_file: dict[str, dict[str, None]] = {file: {} for file in target.tests}
    for test, _ in target.task.FAIL_TO_PASS:
        file, _, name = test.partition("[")[0].partition("::")
        by_file.get(file, {})[name] = None
    return {file: "".join(_trivial(name) for name in names).encode() for file, names in by_file.items()}


def _trivial(name: str) -> str:
    *classes, function = name.split("::")
    lines = [f"{'    ' * depth}class {part}:" for depth, part in enumerate(classes)]
    return "\n".join([*lines, f"{'    ' * len(classes)}def {function}(*_): pass", ""])


def _conftest_forges(target: Target) -> Changes:
    return target.extended(target.conftests, _FORGING_HOOK)


def _conftest_exits(target: Target) -> Changes:
    return target.extended(target.conftests, _EXIT)


def _configured_plugin(_: Target) -> Changes:
    return {
        "pytest.ini": b"[pytest]\naddopts = -p mergemill_probe\n",
        "mergemill_probe.py": _FORGING_HOOK.encode(),
    }


def _start_up(target: Target) -> Changes:
    code = target.forged().encode()
    return {"sitecustomize.py": code, "usercustomize.py": code, "mergemill.pth": b"import os; os._exit(0)\n"}


def _source_exits(target: Target) -> Changes:
    return target.extended(target.sources, _EXIT)


def _source_forges(target: Target) -> Changes:
    return target.extended(target.sources, target.forged())


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A submission that must be worth 0. `what` tells what it does; `make` gives nothing where it cannot be made."""

    name: str
    what: str
    make: Callable[[Target], Changes] = field(repr=False)


NOTHING = Probe(name="nothing", what="an empty patch", make=_nothing)
PROBES: tuple[Probe, ...] = (
    NOTHING,
    Probe(name="stray-file", what="a patch that adds a file nobody asks for", make=_beside),
    Probe(name="deleted-tests", what="a patch that deletes the tests and every conftest.py", make=_deleted),
    Probe(name="only-tests", what="a patch that empties the tests of their statements", make=_only_tests),
    Probe(name="conftest-forges", what="a conftest.py that reports every test as passed", make=_conftest_forges),
    Probe(name="conftest-exits", what="a conftest.py that ends the process with 0", make=_conftest_exits),
    Probe(name="configured-plugin", what="a pytest.ini with a plug-in that forges reports", make=_configured_plugin),
    Probe(name="start-up", what="a sitecustomize, usercustomize and .pth that forge the report", make=_start_up),
    Probe(name="source-exits", what="source code that ends the process with 0", make=_source_exits),
    Probe(name="source-forges", what="source code that rewrites the report at its process's end", make=_source_forges),
)


def patch_of(changes: Changes, base: Mapping[str, bytes]) -> bytes:
    """The changes as git writes them, against the base tree."""
    with tempfile.TemporaryDirectory(prefix="mergemill-") as name:
        folder = Path(name)
        git("init", "-q", cwd=folder)
        _put(folder, {path: base.get(path) for path in changes})
        git("add", "-A", "-f", cwd=folder)
        before = git("write-tree", cwd=folder).decode().strip()
        _put(folder, changes)
        git("add", "-A", "-f", cwd=folder)
        return git("diff-index", "--cached", "--binary", "--full-index", "--no-renames", before, cwd=folder)


def _put(folder: Path, files: Changes) -> None:
    for path, content in files.items():
        target = folder / path
        if re.search(r"(^|/)\.\.?(/|$)", path):
            continue
        if content is None:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
