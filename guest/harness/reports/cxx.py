"""ctest, GoogleTest and Catch2: tests of executables, mapped to sources by macro, executable and CMakeLists.txt."""

from __future__ import annotations

import re

from . import xunit
from .core import is_exit_of_assertion, iterate_lines, parse_number
from .javascript import parse_json, select_objects

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
    r"^\s*\d+/\d+ Test\s+#\d+: (?P<name>.+?) \.{2,}\s*"
    r"(?P<end>(?:[A-Z][\w ]*)?\*{3}.*?|Passed|[A-Z][\w ]*?)\s+(?P<seconds>[\d.]+) sec"
)


_CRASH = re.compile(
    r"seg(?:v|fault|mentation)|illegal|numerical|other_fault|exception: other|bus error|SIG(?!ABRT)[A-Z]{3}|^timeout",
    re.IGNORECASE,
)
"""Reason of ctest for a program that a signal or the time ended; that of `abort` is how `assert` ends a program."""
_THROWN = re.compile(r"^(?:unknown file|(?:Unknown )?C\+\+ exception|SEH exception)\b")
"""Begins GoogleTest's message of an exception in a test."""


class CxxSources:
    """Map from tests and executables to their source files."""

    def __init__(self, tree):
        self.tree = tree
        self.google = {}  # (suite, test) -> files
        self.catch = {}  # name -> file
        self.stems = {}  # stem -> files
        self.commands = {}  # ctest's name -> [(source of its executable, CMakeLists.txt that adds it)]
        self.has_google_reports = False
        self.programs = {}  # ctest's name -> names of the programs in its command
        self.reported = {}  # program with a report of GoogleTest -> whether a test failed in it
        self.paths = [path for path in tree.files if _SOURCE.search(path) and "/CMakeFiles/" not in path]
        for path in self.paths[:20_000]:
            self.stems.setdefault(xunit.file_stem(path), []).append(path)
            text = tree.read_text(path)
            for match in _GOOGLE.finditer(text):
                self.google.setdefault((match[1], match[2]), []).append(path)
            for match in _CATCH.finditer(text):
                name = match[1].replace('\\"', '"')
                self.catch.setdefault("Scenario: " + name if "SCENARIO" in match[0] else name, path)

    def find_google_test(self, suite, test, program=""):
        """Return the file of `TEST(suite, test)`, also for `Inst/suite.test/0`; empty when there is none.

        Of several files it is the one named as the program, or the first.
        """
        test = test.split("/")[0].split("<")[0]
        names = [part for part in suite.split("/") if not part.isdigit()]
        for name in reversed(names or [suite]):
            found = self.google.get((name, test)) or self.google.get((name, "DISABLED_" + test))
            if found:
                return next((path for path in found if program and xunit.file_stem(path) == program), found[0])
        return ""

    def find_ctest_source(self, name, number=1):
        """Return the file of a test of ctest: the test's, the executable's, or the CMakeLists.txt that adds it.

        Several folders may have a test of that name: `number` counts them.
        """
        suite, dot, test = name.rpartition(".")
        tested, adder = (self.commands.get(name, [])[number - 1 :] or [("", "")])[0]
        if dot and self.find_google_test(suite, test):
            return self.find_google_test(suite, test)
        return self.catch.get(name) or tested or self._find_by_stem(name) or adder or "CMakeLists.txt"

    def is_reported_elsewhere(self, name, status):
        """Return whether ctest's test `name` is in a report of GoogleTest, as a test or as a program."""
        suite, dot, test = name.rpartition(".")
        if self.has_google_reports and dot and self.find_google_test(suite, test):
            return True
        ends = [self.reported[one] for one in self.programs.get(name, ()) if one in self.reported]
        return any(failed or status == "passed" for failed in ends)  # a program may fail although its tests pass

    def _find_by_stem(self, name):
        paths = self.stems.get(xunit.file_stem(name), []) if name else []
        return min(paths, key=lambda path: ("test" not in path.lower(), len(path), path)) if paths else ""

    def read_test_list(self, document):
        """Read the output of `ctest --show-only=json-v1`."""
        graph = document.get("backtraceGraph")
        graph = graph if isinstance(graph, dict) else {}
        nodes, files = graph.get("nodes"), graph.get("files")
        for test in select_objects(document.get("tests")):
            command = test.get("command")
            words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
            try:
                adder = self.tree.make_relative(files[nodes[test["backtrace"]]["file"]])
            except (TypeError, KeyError, IndexError, AttributeError):
                adder = ""
            name = xunit.replace_unprintable(str(test.get("name")))
            self.commands.setdefault(name, []).append((self._find_executable_source(words), adder))
            self.programs.setdefault(name, set()).update(word.rpartition("/")[2] for word in words)

    def register_report(self, file, root):
        """Register `file` (`PROGRAM.xml`, `PROGRAM_1.xml`) as a report of GoogleTest."""
        stem = re.sub(r"\.xml$", "", file.rpartition("/")[2])
        failed = any(xunit.parse_status(case)[0] in ("failed", "error") for case in root.find_all("testcase"))
        for program in {stem, re.sub(r"_\d+$", "", stem)}:
            self.reported[program] = self.reported.get(program, False) or failed

    def _find_executable_source(self, words):
        """Return the source of a command: of its first word, or of the script or program that an interpreter runs."""
        for word in words:
            source = self._find_by_stem(word.rpartition("/")[2]) or self.tree.find_file(word)
            if source:
                return source
        return ""


def convert_ctest(outputs, tree, results):
    """Convert JUnit of cmake >= 3.21, else Test.xml of older versions, else the text of `ctest`.

    Tests in reports that GoogleTest wrote (GTEST_OUTPUT) replace ctest's rows of the same tests.
    """
    sources = CxxSources(tree)
    logs = [content for name, content in outputs if name.endswith(".log")]
    google, roots, texts = _sort_reports([output for output in outputs if not output[0].endswith(".log")], sources)
    sources.has_google_reports = bool(google)
    rows = [_read_ctest_case(case) for root in roots for case in root.find_all("testcase")]
    if not rows:
        tests = (test for root in roots for node in root.find_all("Testing") for test in node.nodes)
        rows = [_read_ctest_xml(test) for test in tests if test.tag == "Test" and test.find_child("Name")]
    if not roots and not sources.commands:
        rows = [row for content in texts for row in _iterate_ctest_text(content)]
    # Its JUnit has no reason of a failure; its log has, in which programs print, too, so that no result is read there.
    printed = {name: end for content in logs for name, _, end, _ in _iterate_ctest_text(content) if end}
    counts = {}
    for name, status, message, seconds in rows:
        counts[name] = counts.get(name, 0) + 1
        if not sources.is_reported_elsewhere(name, status):
            file = sources.find_ctest_source(name, counts[name])
            by_assertion = not _CRASH.search(message or printed.get(name, ""))
            results.add(file, name, status, message, seconds, by_assertion=by_assertion)
    for program, root in google:
        _convert_google_cases(root, program, sources, results)


def _sort_reports(outputs, sources):
    """Return (reports of GoogleTest, other XML, texts) of the outputs; `sources` reads the JSON."""
    google, roots, texts = [], [], []
    for name, content in outputs:
        document = parse_json(content) if content.lstrip().startswith(b"{") else None
        root = xunit.parse_xml(content)
        if isinstance(document, dict):
            sources.read_test_list(document)
        elif root is None:
            texts.append(content)
        elif root.get("name") == "AllTests":
            google.append((_find_program(name), root))
            sources.register_report(name, root)
        else:
            roots.append(root)
    return google, roots, texts


def _find_program(file):
    """Return `PROGRAM` of `PROGRAM.xml` or `PROGRAM_1.xml`, as GoogleTest names its reports."""
    return re.sub(r"(_\d+)?\.xml$", "", file.rpartition("/")[2])


def _read_ctest_case(case):
    """Return (name, status, message, seconds)."""
    name, (status, message) = case.get("name"), xunit.parse_status(case)
    if case.get("status") == "notrun":
        status = "error" if "NOT_RUN" in message.upper() or not message.startswith("SKIP") else "skipped"
        status = "skipped" if message.startswith(("SKIP", "Disabled")) else status
    elif case.get("status") == "disabled":
        status = "skipped"
    return name, status, message, parse_number(case.get("time"))


def _read_ctest_xml(test):
    """Return (name, status, message, seconds)."""
    values = {node.get("name"): node.find_child("Value") for node in test.find_all("NamedMeasurement")}
    codes = [values.get("Exit Code"), values.get("Completion Status")]
    seconds = values.get("Execution Time")
    code_text = next((code.text for code in codes if code is not None), "")
    status = {"passed": "passed", "failed": "failed"}.get(test.get("Status"), "error")
    if code_text == "Timeout":
        status = "error"
    elif status == "error" and code_text.startswith(("SKIP", "Disabled")):
        status = "skipped"
    duration = parse_number(seconds.text) if seconds is not None else 0.0
    return test.find_child("Name").text, status, code_text if status != "passed" else "", duration


def _iterate_ctest_text(content):
    """Yield (name, status, message, seconds) of every test."""
    for line in iterate_lines(content):
        match = _TEXT.match(line)
        if not match:
            continue
        name, end = match["name"], match["end"].strip("*").strip()
        status = "passed" if end == "Passed" else "failed" if end.startswith("Failed") else "error"
        if end.startswith(("Skipped", "Not Run (Disabled)")):
            status = "skipped"
        yield name, status, end if status != "passed" else "", parse_number(match["seconds"])


def convert_cases(outputs, tree, results):
    """Convert XML of Catch2 and doctest, written by `case_runner.py`, and the report of ctest about other tests.

    A program that failed although its report has no failed case is a test of ctest's name.
    """
    sources, rows, others = CxxSources(tree), {}, []
    reports = []
    for name, content in outputs:
        root = xunit.parse_xml(content) if name.endswith(".cases.xml") else None
        if root is not None:
            reports.append((name, root))
        elif name == "programs.jsonl":
            rows = {row["report"]: row for row in _read_program_rows(content)}
        else:
            others.append((name, content))
    failed = {name: _convert_program_cases(root, sources, tree, results) for name, root in reports}
    for document in (parse_json(content) for name, content in others if name == "tests.json"):
        if isinstance(document, dict):
            sources.read_test_list(document)
    for name, row in rows.items():
        if row["code"] and not failed.get(name):
            message = "exit status %d" % row["code"]
            file, by_assertion = sources.find_ctest_source(row["test"]), is_exit_of_assertion(row["code"])
            results.add(file, row["test"], "failed", message, 0.0, by_assertion=by_assertion)
    convert_ctest(others, tree, results)


def _read_program_rows(content):
    documents = (parse_json(line) for line in content.split(b"\n"))
    for row in (one for one in documents if isinstance(one, dict)):
        if isinstance(row.get("report"), str) and isinstance(row.get("test"), str) and isinstance(row.get("code"), int):
            yield row


def _convert_program_cases(root, sources, tree, results):
    """Convert the cases of one program; return whether one failed."""
    has_failed = False
    for case in root.find_all("TestCase"):
        status = _convert_catch_case(case, sources, tree, results)
        has_failed = has_failed or status in ("failed", "error")
    return has_failed


def convert_googletest(outputs, tree, results):
    """Convert XML of --gtest_output; a test that another process of the same executable ran is in that report."""
    sources = CxxSources(tree)
    for name, content in outputs:
        root = xunit.parse_xml(content)
        if root is not None:
            _convert_google_cases(root, _find_program(name), sources, results)


def _convert_google_cases(root, program, sources, results):
    for case in root.find_all("testcase"):
        suite, test = case.get("classname"), case.get("name")
        disabled = test.startswith("DISABLED_") or suite.startswith("DISABLED_")
        unrun = case.get("result") == "suppressed" or case.get("status") == "notrun"
        if unrun and not disabled:
            continue
        status, message = xunit.parse_status(case)
        message = re.sub(r"^\S+:\d+\s*\n", "", message)
        if unrun or case.get("result") == "skipped":
            status = "skipped"
        file = sources.tree.find_file(case.get("file")) if case.get("file") else ""
        file = file or sources.find_google_test(suite, test, program) or suite
        name, seconds, by_assertion = suite + "." + test, parse_number(case.get("time")), not _THROWN.match(message)
        results.add(file, name, status, message, seconds, identity=(file, name), by_assertion=by_assertion)


def convert_catch2(outputs, tree, results):
    """Convert XML of `-r xml` (with files) and `-r junit` (without)."""
    sources = CxxSources(tree)
    for _name, content in outputs:
        root = xunit.parse_xml(content)
        if root is None:
            continue
        for case in root.find_all("TestCase"):
            _convert_catch_case(case, sources, tree, results)
        for case in root.find_all("testcase"):
            name = _strip_sections(case.get("name"), sources)
            status, message = xunit.parse_status(case)
            file = sources.catch.get(name) or case.get("classname").partition(".")[0]
            seconds = parse_number(case.get("time"))
            results.add(file, name, status, message, seconds, identity=(file, name))


def _strip_sections(name, sources):
    """Return the test's name of `test/section/inner section`; a test's name may contain a slash, too."""
    parts = name.split("/")
    names = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((one for one in names if one in sources.catch or one.split(" - ")[0] in sources.catch), name)


def _convert_catch_case(case, sources, tree, results):
    name, overall = case.get("name"), case.find_child("OverallResult") or case.find_child("OverallResultsAsserts")
    file = tree.find_file(case.get("filename")) or sources.catch.get(name) or case.get("filename")
    status = _read_case_status(case, overall)
    message, by_assertion = "the test did not end" if status == "error" else "", True
    if status == "failed":
        failing = next((node for node in case.find_all("Expression") if node.get("success") == "false"), None)
        texts = [failing.find_child("Original"), failing.find_child("Expanded")] if failing is not None else []
        # An expression that throws has its exception below it.
        around = failing if failing is not None else case
        by_assertion = not any(next(around.find_all(tag), None) for tag in ("Exception", "FatalErrorCondition"))
        texts = texts or [next(case.find_all(tag), None) for tag in ("Failure", "Exception", "FatalErrorCondition")]
        message = " -> ".join(node.text.strip() for node in texts if node is not None)
    seconds = overall.get("durationInSeconds") or overall.get("duration") if overall is not None else ""
    seconds = parse_number(seconds)
    results.add(file, name, status, message, seconds, identity=(file, name), by_assertion=by_assertion)
    return status


def _read_case_status(case, overall):
    """Return the status of a case of Catch2 or doctest, given the node with its overall result."""
    if case.get("skipped") == "true":
        return "skipped"
    if overall is None:
        return "error"
    success = overall.get("success") or overall.get("test_case_success")
    if success:
        passed = success == "true"
    else:  # doctest before 2.4.7
        passed = parse_number(overall.get("failures")) <= parse_number(overall.get("expected_failures", "0"))
        passed = passed and not any(case.find_all("Exception"))
    if not passed:
        return "failed"
    return "skipped" if parse_number(overall.get("skips", "0")) else "passed"
