"""ctest, GoogleTest and Catch2: tests of executables, looked for in the sources by macro, executable and CMakeLists."""

from __future__ import annotations

import re

from . import xunit
from .core import lines, number
from .javascript import load, rows

_SOURCE = re.compile(r"\.(c|cc|cpp|cxx|c\+\+|cu|m|mm)$", re.IGNORECASE)
_GOOGLE = re.compile(
    r"^[ \t]*(?:TYPED_)?(?:TEST(?:_F|_P)?|TYPED_TEST(?:_P)?)\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE
)
_CATCH = re.compile(
    r"^[ \t]*(?:TEMPLATE_|CATCH_)?(?:TEST_CASE|SCENARIO)\w*\s*\(\s*(?:\w+\s*,\s*)?"
    r'"((?:[^"\\]|\\.)*)"',
    re.MULTILINE,
)
_TEXT = re.compile(
    r"^\s*\d+/\d+ Test\s+#\d+: (?P<name>.+?) \.{2,}\s*(?P<end>\*{3}.*?|Passed|[A-Z][\w ]*?)\s+(?P<seconds>[\d.]+) sec"
)


class Sources:
    """Where tests are written."""

    def __init__(self, tree):
        self.tree = tree
        self.google = {}  # (suite, test) -> file
        self.catch = {}  # name -> file
        self.stems = {}  # stem -> files
        self.commands = {}  # ctest's name -> (source of what it runs, the CMakeLists.txt that adds it)
        self.by_themselves = False  # whether GoogleTest's own reports are there
        self.programs = {}  # ctest's name -> names of the programs in its command
        self.reported = {}  # program that left a report of GoogleTest -> whether a test failed in it
        self.paths = [path for path in tree.files if _SOURCE.search(path) and "/CMakeFiles/" not in path]
        for path in self.paths[:20_000]:
            self.stems.setdefault(xunit.stem(path), []).append(path)
            text = tree.text(path)
            for match in _GOOGLE.finditer(text):
                self.google.setdefault((match[1], match[2]), path)
            for match in _CATCH.finditer(text):
                name = match[1].replace('\\"', '"')
                self.catch.setdefault("Scenario: " + name if "SCENARIO" in match[0] else name, path)

    def of_google(self, suite, test):
        """File of `TEST(suite, test)`, also of `Inst/suite.test/0`; empty when there is none."""
        test = test.split("/")[0].split("<")[0]
        names = [part for part in suite.split("/") if not part.isdigit()]
        for name in reversed(names or [suite]):
            found = self.google.get((name, test)) or self.google.get((name, "DISABLED_" + test))
            if found:
                return found
        return ""

    def of_ctest(self, name):
        """File of what ctest calls `name`: a test of GoogleTest or Catch2, an executable, or who added it."""
        suite, dot, test = name.rpartition(".")
        tested, adder = self.commands.get(name, ("", ""))
        if dot and self.of_google(suite, test):
            return self.of_google(suite, test)
        return self.catch.get(name) or tested or self._by_stem(name) or adder or "CMakeLists.txt"

    def is_told_elsewhere(self, name, status):
        """Whether what ctest calls `name` is a test or a program of GoogleTest, whose own report tells of it."""
        suite, dot, test = name.rpartition(".")
        if self.by_themselves and dot and self.of_google(suite, test):
            return True
        ends = [self.reported[one] for one in self.programs.get(name, ()) if one in self.reported]
        return any(failed or status == "passed" for failed in ends)  # a program may fail though no test of it does

    def _by_stem(self, name):
        paths = self.stems.get(xunit.stem(name), []) if name else []
        return min(paths, key=lambda path: ("test" not in path.lower(), len(path), path)) if paths else ""

    def learn(self, document):
        """Take in what `ctest --show-only=json-v1` says."""
        graph = document.get("backtraceGraph")
        graph = graph if isinstance(graph, dict) else {}
        nodes, files = graph.get("nodes"), graph.get("files")
        for test in rows(document.get("tests")):
            command = test.get("command")
            words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
            try:
                adder = self.tree.relative(files[nodes[test["backtrace"]]["file"]])
            except (TypeError, KeyError, IndexError, AttributeError):
                adder = ""
            self.commands[str(test.get("name"))] = (self._executable(words), adder)
            self.programs[str(test.get("name"))] = {word.rpartition("/")[2] for word in words}

    def take_report(self, file, root):
        """Take in that `file` (`PROGRAM.xml`, `PROGRAM_1.xml`) is a report of GoogleTest."""
        stem = re.sub(r"\.xml$", "", file.rpartition("/")[2])
        failed = any(xunit.result(case)[0] in ("failed", "error") for case in root.all("testcase"))
        for program in {stem, re.sub(r"_\d+$", "", stem)}:
            self.reported[program] = self.reported.get(program, False) or failed

    def _executable(self, words):
        """Source of what a command runs: of its first word, or of the script or program given to an interpreter."""
        for word in words:
            source = self._by_stem(word.rpartition("/")[2]) or self.tree.found(word)
            if source:
                return source
        return ""


def ctest(left, tree, results):
    """JUnit of cmake >= 3.21, Test.xml of older ones, or the text of `ctest`; the first kind that is there.

    Where GTEST_OUTPUT made GoogleTest write reports beside, their tests take the place of ctest's rows of the same.
    """
    where = Sources(tree)
    google, roots, texts = _sorted(left, where)
    where.by_themselves = bool(google)
    for case in (case for root in roots for case in root.all("testcase")):
        _ctest_case(case, where, results)
    if not results:
        for test in (test for root in roots for node in root.all("Testing") for test in node.nodes):
            _ctest_xml(test, where, results)
    if not results:
        for content in texts:
            _ctest_text(content, where, results)
    for root in google:
        _google_cases(root, where, results)


def _sorted(left, where):
    """(reports of GoogleTest, other XML, texts) of what was left; `where` learns from JSON."""
    google, roots, texts = [], [], []
    for name, content in left:
        document = load(content) if content.lstrip().startswith(b"{") else None
        root = xunit.parse(content)
        if isinstance(document, dict):
            where.learn(document)
        elif root is None:
            texts.append(content)
        elif root.get("name") == "AllTests":
            google.append(root)
            where.take_report(name, root)
        else:
            roots.append(root)
    return google, roots, texts


def _ctest_case(case, where, results):
    name, (status, message) = case.get("name"), xunit.result(case)
    if case.get("status") == "notrun":
        status = "error" if "NOT_RUN" in message.upper() or not message.startswith("SKIP") else "skipped"
        status = "skipped" if message.startswith(("SKIP", "Disabled")) else status
    elif case.get("status") == "disabled":
        status = "skipped"
    if not where.is_told_elsewhere(name, status):
        results.add(where.of_ctest(name), name, status, message, number(case.get("time")), again=True)


def _ctest_xml(test, where, results):
    name = test.first("Name")
    if test.tag != "Test" or name is None:
        return
    values = {node.get("name"): node.first("Value") for node in test.all("NamedMeasurement")}
    codes = [values.get("Exit Code"), values.get("Completion Status")]
    seconds = values.get("Execution Time")
    said = next((code.text for code in codes if code is not None), "")
    status = {"passed": "passed", "failed": "failed"}.get(test.get("Status"), "error")
    if said == "Timeout":
        status = "error"
    elif status == "error" and said.startswith(("SKIP", "Disabled")):
        status = "skipped"
    took = number(seconds.text) if seconds is not None else 0.0
    if not where.is_told_elsewhere(name.text, status):
        results.add(where.of_ctest(name.text), name.text, status, said if status != "passed" else "", took, again=True)


def _ctest_text(content, where, results):
    for line in lines(content):
        match = _TEXT.match(line)
        if not match:
            continue
        name, end = match["name"], match["end"].strip("*").strip()
        status = "passed" if end == "Passed" else "failed" if end.startswith("Failed") else "error"
        if end.startswith(("Skipped", "Not Run (Disabled)")):
            status = "skipped"
        if not where.is_told_elsewhere(name, status):
            message = end if status != "passed" else ""
            results.add(where.of_ctest(name), name, status, message, number(match["seconds"]), again=True)


def googletest(left, tree, results):
    """XML of --gtest_output; a test that only another process of the same executable ran is left to its report."""
    where = Sources(tree)
    for _name, content in left:
        root = xunit.parse(content)
        if root is not None:
            _google_cases(root, where, results)


def _google_cases(root, where, results):
    for case in root.all("testcase"):
        suite, test = case.get("classname"), case.get("name")
        disabled = test.startswith("DISABLED_") or suite.startswith("DISABLED_")
        unrun = case.get("result") == "suppressed" or case.get("status") == "notrun"
        if unrun and not disabled:
            continue
        status, message = xunit.result(case)
        message = re.sub(r"^\S+:\d+\s*\n", "", message)
        if unrun or case.get("result") == "skipped":
            status = "skipped"
        file = where.tree.found(case.get("file")) if case.get("file") else ""
        file = file or where.of_google(suite, test) or suite
        results.add(file, suite + "." + test, status, message, number(case.get("time")), again=True)


def catch2(left, tree, results):
    """XML of `-r xml` (names files) and `-r junit` (does not)."""
    where = Sources(tree)
    for _name, content in left:
        root = xunit.parse(content)
        if root is None:
            continue
        for case in root.all("TestCase"):
            _catch_case(case, where, tree, results)
        for case in root.all("testcase"):
            name = case.get("name").split("/")[0]
            status, message = xunit.result(case)
            file = where.catch.get(name) or case.get("classname").partition(".")[0]
            results.add(file, name, status, message, number(case.get("time")), again=True)


def _catch_case(case, where, tree, results):
    name, overall = case.get("name"), case.first("OverallResult")
    file = tree.found(case.get("filename")) or where.catch.get(name) or case.get("filename")
    skips = number(overall.get("skips", "0")) if overall is not None else 0
    status = "error" if overall is None else "passed" if overall.get("success") == "true" else "failed"
    if status == "passed" and skips:
        status = "skipped"
    message = "" if overall is not None else "the test did not end"
    if status == "failed":
        failing = next((node for node in case.all("Expression") if node.get("success") == "false"), None)
        texts = [failing.first("Original"), failing.first("Expanded")] if failing is not None else []
        texts = texts or [next(case.all(tag), None) for tag in ("Failure", "Exception", "FatalErrorCondition")]
        message = " -> ".join(node.text.strip() for node in texts if node is not None)
    seconds = number(overall.get("durationInSeconds")) if overall is not None else 0.0
    results.add(file, name, status, message, seconds, again=True)
