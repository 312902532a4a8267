"""XML of `swift test --xunit-output` and of Swift Testing, mapped to files by type; errors and skips from the text."""

from __future__ import annotations

import re

from . import xunit
from .core import find_compiler_errors, iterate_lines, parse_number
from .declarations import DeclaredTypes

_DECLARATION = re.compile(r"\b(?:class|struct|enum|actor|extension)\s+([A-Za-z_][\w.]*)")
_EVENT = re.compile(
    r"Test Case '(?:\w+\.)*(?P<type>\w+)\.(?P<name>\w+)' (?:(?P<start>started) at |(?P<end>passed|failed|skipped) \()"
)
_CRASH = re.compile(r"\bFatal error\b.*")
# /t/Tests/ATests/ATests.swift:9: error: ATests.testA : XCTAssertEqual failed: ("1") is not equal to ("2")
_REASON = re.compile(r"^.*:\d+: (?:error: )?(?:\w+\.)*(?P<type>\w+)\.(?P<name>\w+) : (?P<message>.+)$")
_COMPILER = re.compile(r"^(?P<file>/[^:]+\.swift):\d+:\d+: error: (?P<message>.+)$")
_THROWN = re.compile(r"(?:failed: )?(?:caught|threw) error\b|Fatal error\b|failed$", re.IGNORECASE)
"""Begins a reason that is none of an assertion, or is XCTest's word for the failure of a process without a reason."""
_TEST_FILE = re.compile(r"(^|/)(Tests?|[^/]*Tests)/")


def convert_swift(outputs, tree, results):
    """Convert reports by type, and compiler errors of test files."""
    types = DeclaredTypes(tree, ".swift", _DECLARATION)
    printed = PrintedResults()
    documents = []
    for _place, content in outputs:
        root = xunit.parse_xml(content)
        if root is None:
            printed.read(content)
            _add_compiler_errors(content, tree, results)
        else:
            documents.append(root)
    for root in documents:
        for case in root.find_all("testcase"):
            _convert_case(case, types, results, printed)


def _add_compiler_errors(content, tree, results):
    for file, message in find_compiler_errors(content, _COMPILER, tree):
        if _TEST_FILE.search(file):
            results.add_uncollected(file, message, printed=True)


def _convert_case(case, types, results, printed):
    module, *names = case.get("classname").split(".")
    name = case.get("name")
    function = name.partition("(")[0]
    file = types.find(names[0], function, module) if names else _find_function(types, function, module)
    status, message = xunit.parse_status(case)
    if "(" not in name:  # of XCTest, whose names have no parentheses
        status, message = printed.refine((names[-1] if names else "", name), status, message)
    seconds, by_assertion = parse_number(case.get("time")), not _THROWN.match(message)
    results.add(file or module, "/".join([*names, name]), status, message, seconds, by_assertion=by_assertion)


def _find_function(types, function, module):
    """Return the file of a test of Swift Testing that is no member of a type."""
    pattern = re.compile(r"^(?:\S.*)?\bfunc\s+`?%s\b" % re.escape(function), re.MULTILINE)
    texts = ((path, types.tree.read_text(path)) for path in types.list_sources())
    found = [path for path, text in texts if "@Test" in text and pattern.search(text)]
    return min(found, key=lambda path: ("/%s/" % module not in "/" + path, len(path), path), default="")


class PrintedResults:
    """What XCTest prints about its tests: the XML has no more than the exit status of their processes."""

    def __init__(self):
        self.ends = {}
        self.reasons = {}

    def read(self, content):
        """Read the text of tests."""
        current = None
        for line in iterate_lines(content):
            for match in _EVENT.finditer(line):
                current = (match["type"], match["name"])
                if match["end"]:
                    self.ends.setdefault(current, set()).add(match["end"])
            match = _REASON.match(line)
            if match:
                self.reasons.setdefault((match["type"], match["name"]), match["message"])
            match = _CRASH.search(line)
            if match and current:
                self.reasons.setdefault(current, match[0])

    def refine(self, test, status, message):
        """Return (status, message) of a test, given those of the XML.

        A test that skips itself ends with status 0, and so does a program that leaves before its test has ended.
        """
        ends = self.ends.get(test, ())
        if status != "passed":
            return status, self.reasons.get(test, message)
        if "skipped" in ends:
            return "skipped", self.reasons.get(test, "")
        return ("passed", "") if "passed" in ends else ("error", "the program left before the test had ended")
