"""TRX of `dotnet test`, mapped to files by class; compiler errors from the build's text."""

from __future__ import annotations

import re

from . import xunit
from .core import find_compiler_errors, names_exception
from .declarations import DeclaredTypes

_DECLARATION = re.compile(r"\b(?:class|struct|record)\s+(?:(?:class|struct)\s+)?([A-Za-z_]\w*)")
_OUTCOMES = {
    "Passed": "passed",
    "PassedButRunAborted": "passed",
    "Warning": "passed",
    "Failed": "failed",
    "NotExecuted": "skipped",
    "NotRunnable": "skipped",
    "Inconclusive": "skipped",
    "Pending": "skipped",
    "Disconnected": "error",
    "Timeout": "error",
    "Aborted": "error",
    "Error": "error",
    "InProgress": "error",
}
"""Outcome of a result -> status; a result without an outcome is an error."""
_DURATION = re.compile(r"^(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?)$")
# /t/tests/ATests.cs(3,8): error CS0246: The type or namespace name 'Gone' could not be found [/t/tests/A.csproj]
_COMPILER = re.compile(r"^\s*(?P<file>/[^(]+\.cs)\(\d+,\d+\): error \w+: (?P<message>.+?)(?: \[[^\]]*\])?$")
_THROWN = re.compile(r"Test method \S+ threw exception")
"""Begins MSTest's message of an exception other than those of its assertions."""
_TEST_FILE = re.compile(r"(?i)(^|/)[^/]*tests?([./][^/]*)*/|tests?\.cs$")


def convert_trx(outputs, tree, results):
    """Convert TRX files, and compiler errors of test files."""
    types = DeclaredTypes(tree, ".cs", _DECLARATION)
    for _place, content in outputs:
        root = xunit.parse_xml(content)
        if root is None:
            _add_compiler_errors(content, tree, results)
            continue
        methods = {test.get("id"): test for test in root.find_all("UnitTest")}
        for result in root.find_all("UnitTestResult"):
            if result.find_child("InnerResults") is None:  # else the rows of data are results themselves
                _convert_result(result, methods.get(result.get("testId")), types, results)


def _convert_result(result, test, types, results):
    method = test.find_child("TestMethod") if test is not None else None
    qualified = method.get("className") if method is not None else ""
    qualified = qualified.partition(",")[0]  # old adapters append the assembly
    namespace, class_name = _split_class(qualified)
    name = result.get("testName")
    for prefix in (qualified + ".", class_name + "."):
        name = name.removeprefix(prefix) if qualified else name
    function = method.get("name").rpartition(".")[2].partition("(")[0] if method is not None else ""
    storage = test.get("storage").replace("\\", "/") if test is not None else ""
    folder = storage.partition("/bin/")[0].rpartition("/")[2]
    outer = re.split(r"[+(<`]", class_name)[0]
    file = types.find(outer, function, folder, namespace) if outer else ""
    status = _OUTCOMES.get(result.get("outcome"), "error")
    message = next((node.text for node in result.find_all("Message") if node.text.strip()), "")
    full_name = "%s.%s" % (class_name, name) if class_name else name
    message = "" if status == "passed" else message
    seconds = _parse_duration(result.get("duration"))
    by_assertion = not names_exception(message) and not _THROWN.match(message.strip())
    results.add(file or qualified or "tests", full_name, status, message, seconds, by_assertion=by_assertion)


def _split_class(qualified):
    """Return (namespace, class) of `A.B.CTests+Inner` and of a fixture with arguments, `A.B.CTests(1.5)`."""
    plain = qualified.partition("(")[0]
    namespace, _, _ = plain.rpartition(".")
    return namespace, qualified[len(namespace) :].lstrip(".") if namespace else qualified


def _parse_duration(text):
    match = _DURATION.match(text)
    return 3600 * int(match["hours"]) + 60 * int(match["minutes"]) + float(match["seconds"]) if match else 0.0


def _add_compiler_errors(content, tree, results):
    for file, message in find_compiler_errors(content, _COMPILER, tree):
        if _TEST_FILE.search(file):
            results.add_uncollected(file, message, printed=True)
