"""XML of `swift test --xunit-output` and of Swift Testing, mapped to files by type; errors and skips from the text."""

from __future__ import annotations

import re

from . import xunit
from .core import iterate_lines, parse_number
from .declarations import DeclaredTypes

_DECLARATION = re.compile(r"\b(?:class|struct|enum|actor|extension)\s+([A-Za-z_][\w.]*)")
_STARTED = re.compile(r"Test Case '(?:\w+\.)*(?P<type>\w+)\.(?P<name>\w+)' started at ")
_CRASH = re.compile(r"\bFatal error\b.*")
_SKIPPED = re.compile(r"Test Case '(?:\w+\.)*(?P<type>\w+)\.(?P<name>\w+)' skipped \(")
# /t/Tests/ATests/ATests.swift:9: error: ATests.testA : XCTAssertEqual failed: ("1") is not equal to ("2")
_REASON = re.compile(r"^.*:\d+: (?:error: )?(?:\w+\.)*(?P<type>\w+)\.(?P<name>\w+) : (?P<message>.+)$")
_COMPILER = re.compile(r"^(?P<file>/[^:]+\.swift):\d+:\d+: error: (?P<message>.+)$")
_TEST_FILE = re.compile(r"(^|/)(Tests?|[^/]*Tests)/")


def convert_swift(outputs, tree, results):
    """Convert reports by type. XCTest reports a test that skips itself as one that passed; only its text shows it."""
    types = DeclaredTypes(tree, ".swift", _DECLARATION)
    skipped, reasons = set(), {}
    documents = []
    for _place, content in outputs:
        root = xunit.parse_xml(content)
        if root is None:
            _read_text(content, tree, results, skipped, reasons)
        else:
            documents.append(root)
    for root in documents:
        for case in root.find_all("testcase"):
            _convert_case(case, types, results, skipped, reasons)


def _convert_case(case, types, results, skipped, reasons):
    module, *names = case.get("classname").split(".")
    name = case.get("name")
    function = name.partition("(")[0]
    file = types.find(names[0], function, module) if names else _find_function(types, function, module)
    status, message = xunit.parse_status(case)
    key = (names[-1] if names else "", name)
    message = reasons.get(key, message)
    if status == "passed":
        status, message = ("skipped", message) if key in skipped else (status, "")
    results.add(file or module, "/".join([*names, name]), status, message, parse_number(case.get("time")))


def _find_function(types, function, module):
    """Return the file of a test of Swift Testing that is no member of a type."""
    pattern = re.compile(r"^(?:\S.*)?\bfunc\s+`?%s\b" % re.escape(function), re.MULTILINE)
    texts = ((path, types.tree.read_text(path)) for path in types.list_sources())
    found = [path for path, text in texts if "@Test" in text and pattern.search(text)]
    return min(found, key=lambda path: ("/%s/" % module not in "/" + path, len(path), path), default="")


def _read_text(content, tree, results, skipped, reasons):
    current = None
    for line in iterate_lines(content):
        match = _COMPILER.match(line)
        if match:
            file = tree.make_relative(match["file"])
            if file and _TEST_FILE.search(file):
                results.add_uncollected(file, match["message"], printed=True)
        for match in _SKIPPED.finditer(line):
            skipped.add((match["type"], match["name"]))
        match = _STARTED.search(line)
        if match:
            current = (match["type"], match["name"])
        match = _REASON.match(line)
        if match:
            reasons.setdefault((match["type"], match["name"]), match["message"])
        match = _CRASH.search(line)
        if match and current:
            reasons.setdefault(current, match[0])
