"""Meson's JUnit XML, mapped to the sources of the programs and scripts by Meson's own lists of tests and targets."""

from __future__ import annotations

import re

from . import xunit
from .core import iterate_lines, parse_number
from .cxx import CxxSources
from .javascript import parse_json, select_objects

_NUMBER = re.compile(r"^\d+ +(?:- +)?(?=\S)")
"""Number before the name of a test of TAP, which changes when a test is added before it."""


_END = re.compile(
    r"^\s*\d+/\d+ (?P<name>\S.*?)\s+(?P<end>FAIL|ERROR|TIMEOUT)\s+[\d.]+s(?:\s+.*?\b(?P<signal>SIG[A-Z]+))?"
)
"""Line of the log about a program; the report has no signals, and no failure of a program that ran out of time."""


def convert_meson(outputs, tree, results):
    """Convert `testlog*.junit.xml`, with `intro-tests.json` and `intro-targets.json`.

    A program that reports an exit status is a test; of one that writes TAP or a report of GoogleTest each test is.
    """
    ends = _read_ends(content for name, content in outputs if name.endswith(".txt"))
    roots = [xunit.parse_xml(content) for name, content in outputs if name.endswith(".xml")]
    tests = MesonTests(tree, dict(outputs))
    for root in roots:
        for case in root.find_all("testcase") if root is not None else ():
            if case.get("status") == "notrun" or case.get("result") == "suppressed":
                continue
            file, name = tests.identify_case(case)
            status, message = xunit.parse_status(case)
            end, signal = ends.get(case.get("name"), ("", None))
            if end == "TIMEOUT" and status == "passed":
                status, message = "error", "out of time"
            # `assert` ends a program by the signal of `abort`.
            seconds, by_assertion = parse_number(case.get("time")), signal in (None, "SIGABRT")
            results.add(file, name, status, message, seconds, by_assertion=by_assertion)


def _read_ends(texts):
    """Return name of a test, with its project and without -> how its program ended, and the signal or None."""
    matches = [match for content in texts for line in iterate_lines(content) if (match := _END.match(line))]
    ends = {match["name"].rpartition(" / ")[2]: (match["end"], match["signal"]) for match in matches}
    return ends | {match["name"]: (match["end"], match["signal"]) for match in matches}


class MesonTests:
    """Map from rows of the report to files of the tree."""

    def __init__(self, tree, outputs):
        self.tree = tree
        self.sources = CxxSources(tree)
        programs = self._read_programs(outputs.get("intro-targets.json", b""))
        self.files = {}  # name of a test -> [(its project, file or empty)]
        self.counts = {}  # (name, project) -> rows
        for test in select_objects(parse_json(outputs.get("intro-tests.json", b""))):
            suites, command = test.get("suite"), test.get("cmd")
            project = str(suites[0]).partition(":")[0] if isinstance(suites, list) and suites else ""
            words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
            files = (programs.get(word) or (tree.find_file(word) if "/" in word else "") for word in words)
            name = xunit.replace_unprintable(str(test.get("name")))
            self.files.setdefault(name, []).append((project, next(filter(None, files), "")))

    def _read_programs(self, content):
        """Return program -> its source in the tree: of several, the one of its name, or one named as a test."""
        programs = {}
        for target in select_objects(parse_json(content)):
            groups = select_objects(target.get("target_sources"))
            words = [word for group in groups for word in _list_texts(group.get("sources"))]
            paths = [path for path in map(self.tree.find_file, words) if path]
            for program in _list_texts(target.get("filename")):
                stem = xunit.file_stem(program)
                ranked = sorted(
                    paths, key=lambda path, stem=stem: (xunit.file_stem(path) != stem, "test" not in path.lower())
                )
                programs[program] = ranked[0] if ranked else ""
        return programs

    def identify_case(self, case):
        """Return (file, name) of a row."""
        suites = [suite.get("name") for suite in case.iterate_ancestors() if suite.tag == "testsuite"]
        suite, name = suites[0] if suites else "", case.get("name")
        self.counts[name, suite] = self.counts.get((name, suite), 0) + 1
        if (file := self._find_file(name, suite, self.counts[name, suite])) is not None:
            return file or xunit.choose_substitute(suite, suites), name
        owner = self._find_owner(suite)
        if owner is None:
            return xunit.identify_case(case, self.tree)
        project = suite[: suite.rfind("." + owner)]
        file = self._find_file(owner, project) or self.files[owner][0][1]
        if case.get("classname") != suite:  # GoogleTest
            test = case.get("classname") + "." + name
            return self.sources.find_google_test(case.get("classname"), name) or file or owner, test
        return file or project or owner, owner + " > " + _NUMBER.sub("", name)

    def _find_file(self, name, project, number=1):
        """Return the file of a project's test; empty where it is unknown, and None where there is no such test.

        Several folders may have a test of that name: `number` counts them.
        """
        wanted = _normalize_project(project)
        files = [file for other, file in self.files.get(name, ()) if _normalize_project(other) == wanted]
        return files[min(number, len(files)) - 1] if files else None

    def _find_owner(self, suite):
        """Return the test whose program reports the tests of a suite: `PROJECT.TEST` or `PROJECT.TEST.SUITE`."""
        owners = [name for name in self.files if name and ("." + name + ".") in suite + "."]
        return max(owners, key=len) if owners else None


def _list_texts(value):
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def _normalize_project(name):
    """Return the name of a project as Meson's list of tests has it."""
    return name.replace(" ", "_").replace(":", "_")
