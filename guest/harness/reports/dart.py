"""JSON reports of `dart test`: events of suites, groups and tests."""

from __future__ import annotations

import json

from .core import parse_number
from .javascript import find_path

_STATUS = {"success": "passed", "failure": "failed", "error": "error"}


def convert_dart(outputs, tree, results):
    """Convert the events of each report; a file that cannot be loaded is uncollected.

    A report in a folder of OUT_DIR is of the package in that folder of the tree: paths start there. A test that runs on
    several platforms is one test.
    """
    for name, content in outputs:
        folder = name.rpartition("/")[0]
        report = _DartReport(tree, folder)
        for line in content.split(b"\n"):
            if line.startswith(b"{") and len(line) < 4_000_000:
                report.read_event(line, results)


class _DartReport:
    """The state of one report."""

    def __init__(self, tree, folder):
        self.tree = tree
        self.folder = folder
        self.suites = {}  # id -> (file, platform, name of the test that loads it)
        self.tests = {}  # id -> (file, name, identity, begin)
        self.loading = set()  # ids of tests that load a file
        self.messages = {}  # id -> first error
        self.seen = {}  # (file, platform, name) -> number of tests

    def read_event(self, line, results):
        """Read a line; one that is not an event is ignored."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "suite" and isinstance(event.get("suite"), dict):
            self._add_suite(event["suite"])
        elif kind == "testStart" and isinstance(event.get("test"), dict):
            self._start_test(event["test"], event)
        elif kind == "error":
            self.messages.setdefault(_make_key(event.get("testID")), str(event.get("error", "")))
        elif kind == "testDone":
            self._end_test(event, results)

    def _add_suite(self, suite):
        path = suite.get("path") if isinstance(suite.get("path"), str) else ""
        inside = self.folder + "/" + path if self.folder else path
        file = inside if self.tree.has_file(inside) else find_path(path, self.tree)
        self.suites[_make_key(suite.get("id"))] = (file, str(suite.get("platform")), "loading " + path)

    def _start_test(self, test, event):
        file, platform, loading = self.suites.get(_make_key(test.get("suiteID")), ("tests", "", ""))
        number, name = _make_key(test.get("id")), str(test.get("name", ""))
        if name == loading:
            self.loading.add(number)
        key = (file, platform, name)
        self.seen[key] = self.seen.get(key, 0) + 1
        begin = parse_number(event.get("time"))
        self.tests[number] = (file, name, (file, name, self.seen[key]), begin)

    def _end_test(self, event, results):
        number = _make_key(event.get("testID"))
        if number not in self.tests or event.get("result") not in _STATUS:
            return
        file, name, identity, begin = self.tests[number]
        status, message = _STATUS[event["result"]], self.messages.get(number, "")
        if number in self.loading:
            if status != "passed":
                results.add_uncollected(file, message)
        elif event.get("hidden") is not True:
            status = "skipped" if event.get("skipped") is True else status
            seconds = max(0.0, parse_number(event.get("time")) - begin) / 1000
            results.add(file, name, status, message, seconds, identity=identity)


def _make_key(number):
    """Return an id that can be a key, whatever the report has in its place."""
    return number if isinstance(number, int) else None
