"""`go test -json`: events of packages, tests and builds, with plain lines of older releases between them."""

from __future__ import annotations

import json
import re

from .core import lines

_MODULE = re.compile(r"^[ \t]*module\s+\"?([^\s\"]+)", re.MULTILINE)
_FUNCTION = re.compile(r"^func\s+((?:Test|Example|Fuzz|Benchmark)\w*)\s*\(", re.MULTILINE)
_PLAIN = re.compile(r"^FAIL\s+(\S+)\s+\[(build|setup) failed\]")
_PACKAGE = re.compile(r"^# (\S+)")
_ERROR = re.compile(r"^(?:vet: )?(\S+\.go):\d+(?::\d+)?: (.*)$")
_NOISE = re.compile(r"^\s*(=== |--- |PASS\b|FAIL\b|ok\s|\?\s|exit status|coverage:|goroutine )")
_CONSTRAINT = re.compile(r"^//go:build (.+)$", re.MULTILINE)
_HERE = frozenset(("linux", "amd64", "unix", "cgo", "gc"))
_ELSEWHERE = frozenset(("windows", "darwin", "freebsd", "netbsd", "openbsd", "solaris", "plan9", "js", "wasm", "arm64"))
_ENDS = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def read(left, tree, results):
    """Tests in the files whose functions they are; files of packages that do not build are uncollected."""
    packages = Packages(tree)
    for _name, content in left:
        run = _Run()
        for line in lines_of_events(content):
            run.take(line)
        run.tell(packages, results)


def lines_of_events(content):
    """Lines, not cut: an event's output may be long, and the event is JSON."""
    for line in content.split(b"\n"):
        yield line if len(line) < 4_000_000 else b""


class _Run:
    """One output."""

    def __init__(self):
        self.tests = {}  # (package, test) -> [status or None, message, seconds]
        self.broken = {}  # package -> message
        self.said = {}  # package -> first telling line outside of its tests
        self.errors = {}  # what was built -> {file as the compiler names it: message}
        self.building = ""
        self.is_events = False

    def take(self, line):
        """One line."""
        event = _event(line)
        if event is None:
            if line.strip():
                self._plain(next(lines(line)))
            return
        self.is_events = True
        action, package, test = event["Action"], event.get("Package", ""), event.get("Test", "")
        output = event.get("Output", "")
        if action == "build-output":
            self._plain(output)
        elif action == "output":
            self._output(package, test, output)
        elif action == "run" and test:
            self.tests.setdefault((package, test), [None, "", 0.0])
        elif action in _ENDS and test:
            self._end(package, test, _ENDS[action], event.get("Elapsed", 0))
        elif action == "fail":
            self.broken.setdefault(package, "")
            if event.get("FailedBuild"):
                self.broken[package] = "build failed"

    def _end(self, package, test, status, seconds):
        old = self.tests.setdefault((package, test), [None, "", 0.0])
        if old[0] != "failed":  # run more than once: the worst
            old[0] = status
        old[2] += seconds if isinstance(seconds, (int, float)) else 0

    def _output(self, package, test, output):
        if _PLAIN.match(output):
            self._plain(output)
        elif output.startswith("panic: test timed out"):
            self.said[package] = output.strip()
        elif test:
            kept = self.tests.setdefault((package, test), [None, "", 0.0])
            if not kept[1] and not _NOISE.match(output):
                kept[1] = output.strip()[:500]
        elif not _NOISE.match(output) and output.strip():
            self.said.setdefault(package, output.strip()[:500])

    def _plain(self, line):
        """A line of the compiler or of a go command that says nothing of tests in JSON."""
        package, error, failed = _PACKAGE.match(line), _ERROR.match(line), _PLAIN.match(line)
        if package:
            self.building = package[1]
        elif error:
            self.errors.setdefault(self.building, {}).setdefault(error[1], error[2])
        elif failed:
            self.broken[failed[1]] = failed[2] + " failed"

    def tell(self, packages, results):
        """Hand over what was taken in."""
        if not self.is_events:
            return
        with_tests = {package for package, _ in self.tests}
        for (package, test), (status, message, seconds) in self.tests.items():
            why = message if status != "passed" else ""
            if status is None:
                why = self.said.get(package, "") or message or "the test did not end"
            results.add(packages.file(package, test), test, status or "error", why, seconds, again=True)
        for package, why in self.broken.items():
            if why or package not in with_tests:
                self._uncollected(package, why or self.said.get(package, "the test binary failed"), packages, results)

    def _uncollected(self, package, why, packages, results):
        """All test files of a package that did not build."""
        errors = {}
        for built, found in self.errors.items():
            if built.removesuffix("_test").removesuffix(".test") == package:
                errors.update(found)
        message = next(iter(errors.values()), why)
        for file in packages.test_files(package):
            own = [text for path, text in errors.items() if path.endswith(file.rpartition("/")[2])]
            results.uncollected(file, "%s: %s" % (why, own[0] if own else message) if message != why else why)


def _event(line):
    """The event of a line of `go test -json`, or None."""
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


class Packages:
    """Finds folders of packages and files of test functions."""

    def __init__(self, tree):
        self.tree = tree
        self.modules = []  # (module path, folder), the longest first
        self.functions = {}
        self.folders = {}
        for path in tree.named("go.mod"):
            match = _MODULE.search(tree.text(path))
            if match:
                self.modules.append((match[1], path.rpartition("/")[0]))
        self.modules.sort(key=lambda pair: -len(pair[0]))

    def folder(self, package):
        """Folder of a package from the tree's root; the package itself when no go.mod tells."""
        if package not in self.folders:
            self.folders[package] = self._folder(package)
        return self.folders[package]

    def _folder(self, package):
        for module, folder in self.modules:
            if package == module or package.startswith(module + "/"):
                return "/".join(part for part in (folder, package[len(module) + 1 :]) if part)
        parts = package.split("/")
        for start in range(len(parts)):  # GOPATH days: the longest tail that holds Go files
            tail = "/".join(parts[start:]) + "/"
            if any(path.startswith(tail) and path.endswith(".go") for path in self.tree.files):
                return tail[:-1]
        return "" if not self.modules else package

    def test_files(self, package):
        """Its files of tests."""
        folder = self.folder(package)
        return [p for p in self.tree.files if p.endswith("_test.go") and p.rpartition("/")[0] == folder]

    def file(self, package, test):
        """The file that declares the test's function; the package's folder when none does."""
        if package not in self.functions:
            found = self.functions[package] = {}
            files = self.test_files(package)
            for path in sorted(files, key=lambda path: not compiled(path, self.tree.text(path))):
                for match in _FUNCTION.finditer(self.tree.text(path)):
                    found.setdefault(match[1], path)
        return self.functions[package].get(test.split("/")[0]) or self.folder(package) or package


def compiled(path, text):
    """Whether name and `//go:build` let a recent Go take a file in on Linux; tags are not known here."""
    words = path.rpartition("/")[2][: -len("_test.go")].split("_")[1:]
    if any(word in _ELSEWHERE for word in words[-2:]):
        return False
    match = _CONSTRAINT.search(re.split(r"^package\s", text, maxsplit=1, flags=re.MULTILINE)[0])
    return not match or _any(re.findall(r"&&|\|\||[!()]|[\w.]+", match[1]))


def _any(words):
    met = _all(words)
    while words[:1] == ["||"]:
        del words[0]
        met = _all(words) or met
    return met


def _all(words):
    met = _one(words)
    while words[:1] == ["&&"]:
        del words[0]
        met = _one(words) and met
    return met


def _one(words):
    word = words.pop(0) if words else ""
    if word == "!":
        return not _one(words)
    if word == "(":
        met = _any(words)
        del words[:1]
        return met
    return word in _HERE or word.startswith("go1.")
