"""`go test -json`: events of packages, tests and builds, mixed with plain lines of older releases."""

from __future__ import annotations

import json
import re

from .core import ORDER, iterate_lines

_MODULE = re.compile(r"^[ \t]*module\s+\"?([^\s\"]+)", re.MULTILINE)
_FUNCTION = re.compile(r"^func\s+((?:Test|Example|Fuzz|Benchmark)\w*)\s*\(", re.MULTILINE)
_PLAIN = re.compile(r"^FAIL\s+(\S+)\s+\[(build|setup) failed\]")
_PACKAGE = re.compile(r"^# (\S+)")
_ERROR = re.compile(r"^(?:vet: )?(\S+\.go):\d+(?::\d+)?: (.*)$")
_NOISE = re.compile(r"^\s*(=== |--- |PASS\b|FAIL\b|ok\s|\?\s|exit status|coverage:|goroutine )")
# Lines of the test binary behind printed text without a line feed: before Go 1.20 they make no events.
_HIDDEN_RUN = re.compile(r"(?!=== RUN).+=== RUN +(\S+)$")
_HIDDEN_END = re.compile(r"(?!(?: {4})*--- ).+--- (PASS|FAIL|SKIP): (\S+) \((\d+\.\d+)s\)$")
_MAX_UNENDED = 8_000
_CONSTRAINT = re.compile(r"^//go:build (.+)$", re.MULTILINE)
_SATISFIED_TAGS = frozenset(("linux", "amd64", "unix", "cgo", "gc"))
_OTHER_PLATFORMS = frozenset(
    ("windows", "darwin", "freebsd", "netbsd", "openbsd", "solaris", "plan9", "js", "wasm", "arm64")
)
_PANIC = re.compile(r"(?:panic|fatal error): |\s+\S+\.go:\d+: test panicked: ")
"""Begins the output of a test that ends by a panic: of Go itself, and of suites of testify."""
_STATUS_BY_ACTION = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def convert_gotest(outputs, tree, results):
    """Convert tests into the files that declare them; files of packages that do not build are uncollected.

    An output in a folder of OUT_DIR is of the module in that folder of the tree, if there is one: several modules may
    have one path.
    """
    for name, content in outputs:
        run = _GoTestOutput()
        for line in split_events(content):
            run.parse_line(line)
        run.add_results(GoPackages(tree, name.rpartition("/")[0]), results)


def split_events(content):
    """Yield lines of full length: an event's output may be long, and a cut event is not JSON."""
    for line in content.split(b"\n"):
        yield line if len(line) < 4_000_000 else b""


class _GoTestOutput:
    """Events of one output."""

    def __init__(self):
        self.tests = {}  # (package, test) -> [status or None, message, seconds]
        self.panicked = set()  # (package, test)
        self.begun = set()  # packages with a test that began
        self.broken = {}  # package -> message
        self.messages = {}  # package -> first relevant line outside of its tests
        self.errors = {}  # what was built -> {file as the compiler names it: message}
        self.building = ""
        self.unended = {}  # package -> text printed since its last line feed
        self.last_ends = {}  # package -> {test: (status, seconds)} of hidden ends behind which nothing came
        self.hidden_ends = {}  # (package, test) -> (status, seconds) of hidden ends behind which the binary went on
        self.passed = set()  # packages that passed
        self.completed = set()  # packages whose binary ended by itself, and not by an exit within a test
        self.is_events = False
        self.is_framed = (
            False  # since Go 1.20 the binary marks its lines, so that printed ones cannot be taken for them
        )

    def parse_line(self, line):
        """Parse one line."""
        event = _parse_event(line)
        if event is None:
            if line.strip():
                self._parse_plain_line(next(iterate_lines(line)))
            return
        self.is_events = True
        action, package, test = event["Action"], event.get("Package", ""), event.get("Test", "")
        output = event.get("Output", "")
        if action == "build-output":
            self._parse_plain_line(output)
        elif action == "start":
            self.is_framed = True
        elif action == "output":
            self._parse_output(package, test, output)
        elif action == "run" and test:
            self._begin(package, test)
        elif action in _STATUS_BY_ACTION and test:
            self._set_status(package, test, _STATUS_BY_ACTION[action], event.get("Elapsed", 0))
        elif action in ("pass", "fail"):
            self._end_package(package, action, bool(event.get("FailedBuild")))

    def _end_package(self, package, action, is_unbuilt):
        if action == "pass":
            self.passed.add(package)
        else:
            self.broken.setdefault(package, "")
            if is_unbuilt:
                self.broken[package] = "build failed"

    def _begin(self, package, test):
        """Begin a test. Whatever was reported of its package before the first one was only printed."""
        self._confirm_ends(package)
        if package not in self.begun:
            self.begun.add(package)
            self.tests = {key: found for key, found in self.tests.items() if key[0] != package}
        self.tests.setdefault((package, test), [None, "", 0.0])

    def _set_status(self, package, test, status, seconds):
        old = self.tests.setdefault((package, test), [None, "", 0.0])
        if old[0] is None or ORDER.index(status) > ORDER.index(old[0]):  # of several runs the worst
            old[0] = status
        old[2] += seconds if isinstance(seconds, (int, float)) else 0

    def _parse_output(self, package, test, output):
        if not self.is_framed and self._parse_hidden_line(package, test, output):
            return
        failed = _PLAIN.match(output)
        if failed and not test and failed[1] == package:
            self._parse_plain_line(output)
        elif output.startswith("panic: test timed out"):
            self.messages[package] = output.strip()
        elif test:
            kept = self.tests.setdefault((package, test), [None, "", 0.0])
            if _PANIC.match(output):
                self.panicked.add((package, test))
            if not kept[1] and not _NOISE.match(output):
                kept[1] = output.strip()[:500]
        elif not _NOISE.match(output) and output.strip():
            self.messages.setdefault(package, output.strip()[:500])

    def _parse_hidden_line(self, package, test, output):
        """Parse output for a line of the binary behind printed text; return whether it ends with one."""
        line = (self.unended.get(package, "") + output)[-_MAX_UNENDED:]
        self.unended[package] = "" if line.endswith("\n") else line
        ends = self.last_ends.setdefault(package, {})
        if not line.startswith(" "):  # logs and ends of subtests are indented below the end of a test
            ends.pop(test, None)
        if line in ("PASS\n", "FAIL\n") and not test:
            self.completed.add(package)
            self._confirm_ends(package)
        if not line.endswith("\n"):
            return False
        run, end = _HIDDEN_RUN.match(line[:-1]), _HIDDEN_END.match(line[:-1])
        if run:
            self._confirm_ends(package)
            self.tests.setdefault((package, run[1]), [None, "", 0.0])
        elif end:
            ends[end[2]] = (_STATUS_BY_ACTION[end[1].lower()], float(end[3]))
        return bool(run or end)

    def _confirm_ends(self, package):
        """Keep the hidden ends of a package: the binary went on, so they are more than the last words of a test."""
        ends = self.last_ends.pop(package, {})
        self.hidden_ends.update({(package, test): end for test, end in ends.items()})

    def _find_hidden_end(self, package, test):
        """Return (status or None, seconds) of a test without an event of its end.

        A test whose package passed did not fail; where it failed, the line with which the test's output ends counts.
        """
        if self.is_framed:
            return None, 0.0
        status, seconds = self.hidden_ends.get((package, test), (None, 0.0))
        if package in self.passed and package in self.completed and "/" not in test:
            status = "passed" if status in (None, "failed") else status
        return status, seconds

    def _parse_plain_line(self, line):
        """Parse a plain line of the compiler or of a go command."""
        package, error, failed = _PACKAGE.match(line), _ERROR.match(line), _PLAIN.match(line)
        if package:
            self.building = package[1]
        elif error:
            self.errors.setdefault(self.building, {}).setdefault(error[1], error[2])
        elif failed:
            self.broken[failed[1]] = failed[2] + " failed"

    def add_results(self, packages, results):
        """Add the tests and broken packages to the results."""
        if not self.is_events:
            return
        with_tests = {package for package, _ in self.tests}
        for (package, test), (reported, message, measured) in self.tests.items():
            status, seconds = self._find_hidden_end(package, test) if reported is None else (reported, measured)
            detail = message if status != "passed" else ""
            if status is None:
                detail = self.messages.get(package, "") or message or "the test did not end"
            if not self.is_framed and packages.is_undeclared(package, test):
                continue
            file = packages.find_file(package, test)
            by_assertion = not self._has_panicked(package, test)
            results.add(
                file,
                test,
                status or "error",
                detail,
                seconds,
                identity=(file, package, test),
                by_assertion=by_assertion,
            )
        for package, why in self.broken.items():
            if package not in with_tests:
                self._add_uncollected(
                    package, why or self.messages.get(package, "the test binary failed"), packages, results
                )

    def _has_panicked(self, package, test):
        """Return whether a test or one of its subtests ended by a panic, which is no failure that a test reports."""
        names = [name for place, name in self.panicked if place == package]
        return any(name == test or name.startswith(test + "/") for name in names)

    def _add_uncollected(self, package, why, packages, results):
        """Add all test files of a package that did not build."""
        errors = {}
        for built, found in self.errors.items():
            if built.removesuffix("_test").removesuffix(".test") == package:
                errors.update(found)
        message = next(iter(errors.values()), why)
        for file in packages.find_test_files(package):
            own = [text for path, text in errors.items() if path.endswith(file.rpartition("/")[2])]
            results.add_uncollected(file, "%s: %s" % (why, own[0] if own else message) if message != why else why)


def _parse_event(line):
    """Return the event of a line of `go test -json`, or None."""
    if not line.startswith(b"{"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("Action"), str):
        return None
    texts = (event.get(key, "") for key in ("Package", "Test", "Output"))
    return event if all(isinstance(text, str) for text in texts) else None


class GoPackages:
    """Folders of the tree's packages and files of their test functions."""

    def __init__(self, tree, own=""):
        self.tree = tree
        self.modules = []  # (module path, folder), the longest path first, of equal ones that in folder `own`
        self.functions = {}
        self.folders = {}
        for path in tree.find_named("go.mod"):
            match = _MODULE.search(tree.read_text(path))
            if match:
                self.modules.append((match[1], path.rpartition("/")[0]))
        self.modules.sort(key=lambda pair: (-len(pair[0]), pair[1] != own))

    def find_folder(self, package):
        """Return the folder of a package from the tree's root; the package's name when no go.mod defines it."""
        if package not in self.folders:
            self.folders[package] = self._find_folder(package)
        return self.folders[package]

    def _find_folder(self, package):
        for module, folder in self.modules:
            if package == module or package.startswith(module + "/"):
                return "/".join(part for part in (folder, package[len(module) + 1 :]) if part)
        parts = package.split("/")
        for start in range(len(parts)):  # without modules: the longest tail that holds Go files
            tail = "/".join(parts[start:]) + "/"
            if any(path.startswith(tail) and path.endswith(".go") for path in self.tree.files):
                return tail[:-1]
        return "" if not self.modules else package

    def find_test_files(self, package):
        """Return the test files of a package."""
        folder = self.find_folder(package)
        return [p for p in self.tree.files if p.endswith("_test.go") and p.rpartition("/")[0] == folder]

    def find_file(self, package, test):
        """Return the file that declares the test's function; the package's folder when none does."""
        return self._find_functions(package).get(test.split("/")[0]) or self.find_folder(package) or package

    def is_undeclared(self, package, test):
        """Return whether the package's test files declare functions, but not that of the test."""
        functions = self._find_functions(package)
        return bool(functions) and test.split("/")[0] not in functions

    def _find_functions(self, package):
        """Return name -> file of the package's test functions."""
        if package not in self.functions:
            found = self.functions[package] = {}
            files = self.find_test_files(package)
            for path in sorted(files, key=lambda path: not is_compiled(path, self.tree.read_text(path))):
                for match in _FUNCTION.finditer(self.tree.read_text(path)):
                    found.setdefault(match[1], path)
        return self.functions[package]


def is_compiled(path, text):
    """Return whether a recent Go on Linux compiles the file, by name and `//go:build`; custom tags are unset."""
    words = path.rpartition("/")[2][: -len("_test.go")].split("_")[1:]
    if any(word in _OTHER_PLATFORMS for word in words[-2:]):
        return False
    match = _CONSTRAINT.search(re.split(r"^package\s", text, maxsplit=1, flags=re.MULTILINE)[0])
    return not match or _parse_or(re.findall(r"&&|\|\||[!()]|[\w.]+", match[1]))


def _parse_or(words):
    met = _parse_and(words)
    while words[:1] == ["||"]:
        del words[0]
        met = _parse_and(words) or met
    return met


def _parse_and(words):
    met = _parse_term(words)
    while words[:1] == ["&&"]:
        del words[0]
        met = _parse_term(words) and met
    return met


def _parse_term(words):
    word = words.pop(0) if words else ""
    if word == "!":
        return not _parse_term(words)
    if word == "(":
        met = _parse_or(words)
        del words[:1]
        return met
    return word in _SATISFIED_TAGS or word.startswith("go1.")
