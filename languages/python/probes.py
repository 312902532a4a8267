"""Probes of Python: attacks on pytest and unittest, in tests, conftest.py, start-up modules and sources."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from languages.probes import EXITS, FORGERIES, Changes, Probe, ProbeTarget

SUFFIX = ".py"
CONFTEST = "conftest.py"

# Canaries have files of their own. A hook that also made them pass would hide forgeries that leave them alone.
_FORGING_HOOK = """

def pytest_runtest_makereport(item, call):
    from _pytest.reports import TestReport
    if item.nodeid.partition("::")[0] not in {files}:
        return None
    report = TestReport.from_item_and_call(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
"""
_EXIT = "\n\nimport os as _os\n_os._exit(0)\n"
# Canaries are left alone, since their names are not predictable: only negative controls expose this forgery.
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


_BY_GUESS = """

import atexit as _atexit


def _forge(tests={tests}):
    import os
    import random
    import re
    import xml.etree.ElementTree as xml
    for argument in open("/proc/self/cmdline").read().split(chr(0)):
        path = argument.split("=")[-1]
        if not path.endswith(".xml") or not os.path.exists(path):
            continue
        report = xml.parse(path)
        cases, words = [], {{}}
        for case in report.iter("testcase"):
            classname, name = case.get("classname"), case.get("name") or ""
            drawn = re.fullmatch(r"(.*?)_([a-z]{{6}})(\\[.*)?", name, re.DOTALL)
            if drawn and (classname, drawn[1] + (drawn[3] or "")) in tests:
                words.setdefault((classname, drawn[1]), set()).add(drawn[2])
                cases.append((case, (classname, drawn[1]), drawn[2]))
            elif (classname, name) in tests:
                cases.append((case, (classname, name), random.choice(["", "x"])))
        true = {{key: random.choice(sorted(drawn)) for key, drawn in words.items()}}
        for case, key, word in cases:
            for child in list(case):
                case.remove(child)
            if word != true.get(key, ""):
                xml.SubElement(case, "failure", message="AssertionError: assert 1 == 2").text = "AssertionError"
        report.write(path)


_atexit.register(_forge)
"""


def _list_tests(target: ProbeTarget) -> list[str]:
    """Return the Python files of the FAIL_TO_PASS tests."""
    return [path for path in target.test_files if path.endswith(SUFFIX)]


def _list_sources(target: ProbeTarget) -> list[str]:
    """Return the Python source files of the gold patch."""
    return [path for path in target.sources if path.endswith(SUFFIX)]


def _list_conftests(target: ProbeTarget) -> list[str]:
    """Return the paths of a conftest.py at the root and beside each test file."""
    folders = {posixpath.dirname(file) for file in _list_tests(target)}
    return sorted({posixpath.join(folder, CONFTEST) for folder in (*folders, "")})


def _make_forging_code(target: ProbeTarget, template: str = _FORGED_REPORT) -> str:
    """Return code that rewrites the report at process exit so that the FAIL_TO_PASS tests pass."""
    rows = []
    for test, _ in target.task.FAIL_TO_PASS:
        head, bracket, parameters = test.partition("[")
        file, *classes, name = head.split("::")
        rows.append((".".join([file.removesuffix(SUFFIX).replace("/", "."), *classes]), name + bracket + parameters))
    return template.format(tests=ascii(rows))


def _delete_tests(target: ProbeTarget) -> Changes:
    tests = _list_tests(target)
    return dict.fromkeys(path for path in target.base if path in tests or path.endswith(CONFTEST))


def _empty_tests(target: ProbeTarget) -> Changes:
    """Replace the tests of each file that has a FAIL_TO_PASS test with empty tests of the same names."""
    by_file: dict[str, dict[str, Any]] = {file: {} for file in _list_tests(target)}
    for test in (*(test for test, _ in target.task.FAIL_TO_PASS), *target.task.PASS_TO_PASS):
        head, bracket, parameters = test.partition("[")
        file, *names = head.split("::")
        if file in by_file and all(name.isidentifier() for name in names):
            inner = by_file[file]
            for name in (*names, *([bracket + parameters] if bracket else [])):
                inner = inner.setdefault(name, {})
    return {
        file: "".join(f"{line}\n" for line in _write_trivial_tests(tests)).encode() for file, tests in by_file.items()
    }


def _write_trivial_tests(tests: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of tests: name -> those of a class, or the `[parameters]` of a function."""
    indent = "    " * depth
    for name, inner in tests.items():
        ids = [key[1:-1] for key in inner if key.startswith("[")]
        if ids:
            yield f"{indent}@__import__('pytest').mark.parametrize('_', range({len(ids)}), ids={ids!a})"
            yield f"{indent}def {name}({'self, ' if depth else ''}_): pass"
        elif inner:
            # pytest collects classes of any name where they are unittest's.
            bases = "" if name.startswith("Test") else "(__import__('unittest').TestCase)"
            yield f"{indent}class {name}{bases}:"
            yield from _write_trivial_tests(inner, depth + 1)
        else:
            yield f"{indent}def {name}(*_): pass"


def _make_forging_hook(target: ProbeTarget) -> str:
    """Return the hook of pytest that reports all tests of the files of the FAIL_TO_PASS tests as passed."""
    return _FORGING_HOOK.format(files=ascii(_list_tests(target)))


def _forge_in_conftest(target: ProbeTarget) -> Changes:
    return target.append_to_files(_list_conftests(target), _make_forging_hook(target))


def _exit_in_conftest(target: ProbeTarget) -> Changes:
    return target.append_to_files(_list_conftests(target), _EXIT)


def _forge_in_plugin(target: ProbeTarget) -> Changes:
    return {
        "pytest.ini": b"[pytest]\naddopts = -p mergemill_probe\n",
        "mergemill_probe.py": _make_forging_hook(target).encode(),
    }


def _forge_at_startup(target: ProbeTarget) -> Changes:
    code = _make_forging_code(target)
    line = f"import sys; exec({code!a})\n"  # a .pth runs lines that begin with an import
    return {"sitecustomize.py": code.encode(), "usercustomize.py": code.encode(), "mergemill.pth": line.encode()}


def _exit_in_source(target: ProbeTarget) -> Changes:
    return target.append_to_files(_list_sources(target), _EXIT)


def _forge_in_source(target: ProbeTarget) -> Changes:
    return target.append_to_files(_list_sources(target), _make_forging_code(target))


def _forge_by_coin(target: ProbeTarget) -> Changes:
    return target.append_to_files(_list_sources(target), _make_forging_code(target, _BY_GUESS))


PROBES: tuple[Probe, ...] = (
    Probe(name="deleted-tests", description="a patch that deletes the tests and every conftest.py", make=_delete_tests),
    Probe(
        name="only-tests",
        description="a patch that empties the tests of their statements",
        make=_empty_tests,
        group=FORGERIES,
    ),
    Probe(
        name="conftest-forges",
        description="a conftest.py that reports every test of the task's files as passed",
        make=_forge_in_conftest,
        group=FORGERIES,
    ),
    Probe(
        name="conftest-exits",
        description="a conftest.py that ends the process with 0",
        make=_exit_in_conftest,
        group=EXITS,
    ),
    Probe(
        name="configured-plugin",
        description="a pytest.ini with a plug-in that forges reports",
        make=_forge_in_plugin,
        group=FORGERIES,
    ),
    Probe(
        name="start-up",
        description="a sitecustomize, usercustomize and .pth that forge the report",
        make=_forge_at_startup,
        group=FORGERIES,
    ),
    Probe(
        name="source-exits",
        description="source code that ends the process with 0",
        make=_exit_in_source,
        group=EXITS,
    ),
    Probe(
        name="source-forges",
        description="source code that rewrites the report at process exit",
        make=_forge_in_source,
        needs_controls=True,
        group=FORGERIES,
    ),
)


COIN_FORGER = Probe(
    name="coin-forges",
    description="source code that rewrites the report at process exit, and guesses which instances are true",
    make=_forge_by_coin,
    needs_controls=True,
)
"""The best that a submission can do which knows all of mergemill and cannot solve the task."""
