"""`cargo test`: results that its binaries log, or else its text, in which they are mixed with other output."""

from __future__ import annotations

import os
import re

from . import xunit
from .core import iterate_lines, parse_number

_RUNNING = re.compile(
    r"^\s*Running (?:unittests )?(?:(?P<source>[^\s()]+\.rs) )?\(?(?P<binary>\S*?/deps/\S+?)\)?(?: .*)?$"
)
_DOCTESTS = re.compile(r"^\s*Doc-tests (\S+)")
_TEST = re.compile(r"^test (?P<name>.+?) \.\.\. ?(?P<end>.*)$")
_TRAILING_TEST = re.compile(r"test ([\w:]+) \.\.\. (ok|FAILED)$")
_END = re.compile(r"(?:^|\s|\.)(?P<status>ok|FAILED|ignored(?:, .*)?|bench:.*)(?: <[\d.]+s>)?$")
_BARE_END = re.compile(r"^(?P<status>ok|FAILED)(?: <[\d.]+s>)?$")
_MESSAGE = re.compile(r"^---- (.+?) (?:stdout|stderr) ----$")
_COMPILE = re.compile(r"^error(?:\[E\d+\])?: (.*)")
_ARROW = re.compile(r"^\s*--> (\S+?\.rs):\d+:\d+")
_COULD_NOT = re.compile(r"^error: could not compile `([^`]+)` \((\w+)(?: \"([^\"]+)\")?(?: test)?\)")
_DOC_NAME = re.compile(r"^(?P<file>\S+\.\w+) - (?P<item>.*?)\s*\(line \d+\)(?P<rest>.*)$")
_PACKAGE_NAME = re.compile(r"^[ \t]*name\s*=\s*[\"']([^\"']+)[\"']", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*\[+([\w.\-]+)\]+[ \t]*$", re.MULTILINE)
_PANICKED = re.compile(r"^thread '.*' (?:\(\d+\) )?panicked at (.*)$")
_LOCATION = re.compile(r"(?P<file>[^\s,]+\.rs):(?P<line>\d+):(?P<column>\d+):?$")
_ASSERTED = re.compile(
    r"(?:snapshot )?assertion\b|Test failed: |\[quickcheck\] TEST FAILED(?! \(runtime)|note: (?:test|panic) did not "
)
"""Begins the message of a macro that asserts, of a property that does not hold, and of an expected panic."""
_ASSERTING_MACRO = re.compile(r"(?:\w+::)*\w*assert\w*!")
_OTHER_FAILURE = re.compile(r"Error: |Test executable failed|Couldn't compile|\[quickcheck\] TEST FAILED")
_PATH_ATTRIBUTE = r"#\[path\s*=\s*\"([^\"]+)\"\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?mod\s+%s\s*;"
_LOGGED = re.compile(r"^(ok|failed|ignored)\b")
_LOG = re.compile(r"(?:^|/)([^/]+)\.(log|unlogged)$")
_STATUS = {"ok": "passed", "FAILED": "failed"}


def convert_cargo(outputs, tree, results):
    """Convert unit tests by module path, integration tests by target and doc tests by the file that holds them."""
    crates = CargoCrates(tree)
    matches = [(_LOG.search(name), content) for name, content in outputs]
    logs = {match[1]: (match[2], content) for match, content in matches if match}
    unseen = set(logs)
    for content in [content for match, content in matches if not match]:
        run = _CargoOutput(crates, results, logs)
        for line in iterate_lines(content):
            run.parse_line(line)
        run.finish()
        unseen -= run.seen
        _add_compile_errors(content, crates, results)
    for binary in sorted(unseen):  # output without a line end may hide the line that names its source
        _CargoOutput(crates, results, logs).add_binary(binary)


def read_log(content):
    """Return test -> status of the file that libtest's `--logfile` writes: `ok NAME`, `failed: REASON NAME`, ..."""
    found, status = {}, None
    for line in content.decode("utf-8", "replace").split("\n")[:-1]:  # the last one is empty or torn
        match = _LOGGED.match(line)
        if match:
            status, name = match[1], ""
        if status:  # a reason may have several lines
            found.pop(name, None)
            name = line.rpartition(" ")[2]
            found[name] = {"ok": "passed", "failed": "failed", "ignored": "skipped"}[status]
    return found


def convert_nextest(outputs, tree, results):
    """Convert JUnit of cargo-nextest, whose suites are binaries: `crate`, `crate::tests-target`, `crate::bin/name`."""
    crates = CargoCrates(tree)
    for _name, content in outputs:
        root = xunit.parse_xml(content)
        for case in root.find_all("testcase") if root is not None else ():
            package, _, target = case.get("classname").partition("::")
            kind, _, name = target.rpartition("/")
            target_key = ("lib", "") if not target else ("bin", name) if kind == "bin" else ("test", name)
            source = crates.find_target(package, *target_key) or crates.find_target(package, "bin", package)
            status, message = xunit.parse_status(case)
            file = crates.find_module_file(source, case.get("name")) if source else case.get("classname")
            name, seconds = case.get("name"), parse_number(case.get("time"))
            by_assertion = _is_failed_assertion(message, crates, package)
            results.add(file, name, status, message, seconds, identity=(file, name), by_assertion=by_assertion)


def _is_failed_assertion(text, crates, package):
    """Return whether the text of a panic with its place is of an assertion."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    panic = next((number for number, line in enumerate(lines) if _PANICKED.match(line)), None)
    if panic is None:
        return is_assertion(lines[0] if lines else "", None, crates, package)
    return is_assertion(" ".join(lines[panic + 1 : panic + 2]), _LOCATION.search(lines[panic]), crates, package)


def is_assertion(message, location, crates, package):
    """Return whether a test failed by an assertion.

    A macro that asserts may have a message of its own: then the source at the place of the panic decides.

    Args:
        message: first line of the message.
        location: match of `_LOCATION` with the place of the panic; None without one.
        crates: packages of the tree.
        package: folder of the test's package.
    """
    if _ASSERTED.match(message):
        return True
    if location is None:
        return not _OTHER_FAILURE.match(message)
    lines = crates.tree.read_text(crates.resolve_in_package(location["file"], package)).split("\n")
    line = lines[int(location["line"]) - 1] if int(location["line"]) <= len(lines) else ""
    return bool(_ASSERTING_MACRO.match(line[max(0, int(location["column"]) - 1) :]))


class _CargoOutput:
    """Parser of one output, line by line.

    With `logs` (name of a binary -> kind and content) statuses of tests are those in the log of their binary. The text
    gives the binaries' sources, the reasons of failures, and tests that a binary began before it died.
    """

    def __init__(self, crates, results, logs):
        self.crates = crates
        self.results = results
        self.logs = logs
        self.seen = set()  # binaries that the text names
        self.binary = ""  # the binary that runs
        self.announced = None  # number of its tests
        self.root = self.package = ""  # source file and folder of the binary that runs
        self.is_doc = False
        self.tests = {}  # name -> [status, message] of the binary that runs
        self.locations = {}  # name -> match of `_LOCATION` with the place of its panic
        self.counts = {}
        self.names = {}  # test name in the binary -> its name in the results
        self.open = None
        self.messages = None  # the test whose output is being read
        self.failures = False

    def parse_line(self, line):
        """Parse one line."""
        running, doc = _RUNNING.match(line), _DOCTESTS.match(line)
        binary = running["binary"].rpartition("/")[2] if running else ""
        if self.logs and (binary not in self.logs or binary in self.seen):
            running = doc = None
        if running or doc:
            self.finish()
            self.is_doc = doc is not None
            self.binary = binary
            self.seen.add(binary)
            self.root, self.package = self.crates.find_doc_source(doc[1]) if doc else self._find_binary(running)
        elif self._announces_tests(line):
            self.failures = False
            self.announced = int(line.split()[1])
        elif line == "failures:":
            self.failures = True
        elif self.failures:
            self._parse_failure(line)
        else:
            self._parse_test(line)

    def _announces_tests(self, line):
        """Return whether the line is `running 3 tests`; with a log it is the first one, others are output."""
        if self.open or not re.fullmatch(r"running \d{1,9} tests?", line):
            return False
        return self.announced is None or not self.logs

    def _find_binary(self, running):
        binary = re.sub(r"-[0-9a-f]{16}(?:\.exe)?$", "", running["binary"].rpartition("/")[2])
        return self.crates.find_binary(running["source"] or "", binary, self.package)

    def _parse_test(self, line):
        test = _TEST.match(line)
        if test:
            self._close_open_test()
            self.open = test["name"].removesuffix(" - should panic")
            end = _END.search(" " + test["end"])
            if end:
                self._set_status(end["status"])
        elif self.open:  # its output was printed between name and result
            end = _BARE_END.match(line) or _END.search(line) if line.endswith(("ok", "FAILED")) else None
            if end:
                self._set_status(end["status"])
        elif line.endswith((" ... ok", " ... FAILED")) and self.root:  # after output of a test without a line break
            behind = _TRAILING_TEST.search(line)
            if behind:
                self.open = behind[1]
                self._set_status(behind[2])

    def _set_status(self, status):
        word = status.split(",")[0].split(":")[0]
        new_status = _STATUS.get(word, "passed" if word == "bench" else "skipped")
        self._record_test(self.open, new_status, status.partition(", ")[2])
        self.open = None

    def _record_test(self, name, status, message):
        base = name if not self.is_doc else _strip_doc_line(name)
        count = self.counts[base] = 1 if self.logs else self.counts.get(base, 0) + 1
        free = base if count == 1 else "%s #%d" % (base, count)
        self.tests[free] = [status, message]
        self.names[name] = free

    def _close_open_test(self):
        if self.open:
            self._record_test(self.open, "error", "the test did not end")
            self.open = None

    def _parse_failure(self, line):
        """Parse a line of the section with the output of failed tests."""
        shown = _MESSAGE.match(line)
        if shown:
            self.messages = self.names.get(shown[1], "")
        elif self.messages in self.tests and line.strip() and not self.tests[self.messages][1].endswith("\0"):
            test = self.tests[self.messages]
            panicked = _PANICKED.match(line)
            old = panicked and re.match(r"^'(.*)', \S+:\d+:\d+$", panicked[1])
            if panicked:
                self.locations.setdefault(self.messages, _LOCATION.search(panicked[1]))
            if old:
                test[1] = old[1] + "\0"
            elif test[1] == "panicked":
                test[1] = line.strip() + "\0"
            elif panicked:
                test[1] = "panicked"
            elif not test[1]:
                test[1] = line.strip()

    def finish(self):
        """Add the binary's tests to the results; its output has ended."""
        self._close_open_test()
        if self.logs:
            self._read_log()
        if self.announced == 0 and not self.tests and "tests/" in self.root:
            self.results.add_uncollected(self.root, "none of its tests is for this platform", skipped=True)
        for test, (status, message) in self.tests.items():
            detail = message.rstrip("\0") if status != "passed" else ""
            if self.is_doc:
                inside, _, item = test.partition(" - ")
                file, name = self.crates.resolve_in_package(inside, self.package), "doc " + item
            else:
                file, name = self.crates.find_module_file(self.root, test), test
            by_assertion = is_assertion(detail, self.locations.get(test), self.crates, self.package)
            self.results.add(file, name, status, detail, identity=(file, name), by_assertion=by_assertion)
        self.tests, self.names, self.counts, self.failures, self.messages = {}, {}, {}, False, None
        self.locations = {}
        self.binary, self.announced = "", None

    def add_binary(self, binary):
        """Add the tests of a binary that the text does not name."""
        self.binary = binary
        self.root, self.package = self.crates.find_binary("", re.sub(r"-[0-9a-f]{16}$", "", binary), "")
        self.finish()

    def _read_log(self):
        """Replace the tests by those in the binary's log, if it uses libtest."""
        kind, content = self.logs.get(self.binary, ("", b""))
        if kind == "unlogged":
            return
        tests, self.tests = self.tests, {}
        if content.lstrip().startswith(b"running "):  # libtest-mimic writes its text there
            for line in iterate_lines(content.partition(b"\nfailures:\n")[0]):
                self._parse_test(line)
            return
        logged = read_log(content)
        for name, status in logged.items():
            self.tests[name] = [status, tests.get(name, ["", ""])[1]]
        if kind and (self.announced or 0) > len(logged):  # it died
            for name, (status, message) in tests.items():
                if status == "error" and name not in logged:
                    self.tests[name] = [status, message]


def _strip_doc_line(name):
    """Return a doc test's name without its line number, which changes with edits above it: `src/lib.rs - add`."""
    match = _DOC_NAME.match(name)
    return "%s - %s%s" % (match["file"], match["item"] or "(file)", match["rest"]) if match else name


def _add_compile_errors(content, crates, results):
    """Add test targets that did not compile; a library that did not compile represents its own unit tests."""
    message, first, source = "", "", ""
    for line in iterate_lines(content):
        error, arrow, failed = _COMPILE.match(line), _ARROW.match(line), _COULD_NOT.match(line)
        if failed:
            package, kind, target = failed[1], failed[2], failed[3] or ""
            file = crates.find_target(package, kind, target) or source
            if file:
                results.add_uncollected(file, first or "could not compile", printed=True)
            first = source = ""
        elif error:
            message = error[1]
        elif arrow and not first and message:
            first, source = message, arrow[1]


class CargoCrates:
    """The tree's packages and the sources of their binaries."""

    def __init__(self, tree):
        self.tree = tree
        self.packages = {}  # name -> folder
        self.targets = {}  # crate name, as in names of binaries -> folder
        for path in tree.find_named("Cargo.toml"):
            folder = path.rpartition("/")[0]
            for section, name in _parse_names(tree.read_text(path)):
                if section == "package":
                    self.packages.setdefault(name, folder)
                self.targets.setdefault(name.replace("-", "_"), folder)

    def resolve_in_package(self, source, package):
        """Return the path of `source`, which is relative to the package's folder or the workspace's."""
        inside = package + "/" + source if package else source
        return inside if self.tree.has_file(inside) else self.tree.find_file(source) or inside

    def find_binary(self, source, name, current):
        """Return (source file, package folder) of a binary; `current` is the package that ran before it."""
        folder = self.targets.get(name)
        if not source:  # before cargo 1.56
            return self._find_old_binary(name, folder if folder is not None else current)
        if folder is not None and self.tree.has_file(_join_path(folder, source)):
            return _join_path(folder, source), folder
        for place in (current, ""):
            if self.tree.has_file(_join_path(place, source)):
                return _join_path(place, source), place
        fitting = [one for one in sorted(set(self.packages.values())) if self.tree.has_file(_join_path(one, source))]
        return (_join_path(fitting[0], source), fitting[0]) if fitting else (source, current)

    def _find_old_binary(self, name, folder):
        places = ("src/lib.rs", "src/main.rs", "src/bin/%s.rs" % name) if name in self.targets else ()
        for source in (*places, "tests/%s.rs" % name, "tests/%s/main.rs" % name, "src/bin/%s.rs" % name):
            if self.tree.has_file(_join_path(folder, source)):
                return _join_path(folder, source), folder
        return self.tree.find_file("tests/%s.rs" % name) or name, folder

    def find_doc_source(self, name):
        """Return (source file, package folder) of the crate whose doc tests run."""
        folder = self.targets.get(name.replace("-", "_"), "")
        return _join_path(folder, "src/lib.rs"), folder

    def find_target(self, package, kind, name):
        """Return the source file of a target by its kind and name in cargo's error; empty when there is none."""
        folder = self.packages.get(package, "")
        places = {"lib": ["src/lib.rs"], "bin": ["src/bin/%s.rs" % name, "src/bin/%s/main.rs" % name, "src/main.rs"]}
        tests = ["tests/%s.rs" % name, "tests/%s/main.rs" % name]
        fitting = [path for path in places.get(kind, tests) if self.tree.has_file(_join_path(folder, path))]
        return _join_path(folder, fitting[0]) if fitting else ""

    def find_module_file(self, root, name):
        """Return the file of the innermost module of `a::b::tests::c` that has its own file, in the crate of `root`."""
        folder, _, file = root.rpartition("/")
        is_test = file not in ("lib.rs", "main.rs", "mod.rs")
        place, found = folder, root
        for part in name.split("::")[:-1]:
            named = re.search(_PATH_ATTRIBUTE % re.escape(part), self.tree.read_text(found))
            if named:  # `#[path = "by-name/x.rs"] mod x;`
                there = os.path.normpath(_join_path(found.rpartition("/")[0], named[1]))
                if self.tree.has_file(there):
                    found, place = there, there.rpartition("/")[0]
                    continue
            nested = [_join_path(place, part)]
            if is_test and place == folder:
                nested.append(_join_path(_join_path(place, file[:-3]), part))
            fitting = [end for one in nested for end in (one + ".rs", one + "/mod.rs") if self.tree.has_file(end)]
            if not fitting:
                break
            found = fitting[0]
            place = found[: -len("/mod.rs")] if found.endswith("/mod.rs") else found[: -len(".rs")]
        return found


def _join_path(folder, path):
    return folder + "/" + path if folder else path


def _parse_names(text):
    """Yield (section, name) of the packages and targets in a Cargo.toml."""
    sections = list(_SECTION.finditer(text))
    for place, section in enumerate(sections):
        end = sections[place + 1].start() if place + 1 < len(sections) else len(text)
        match = _PACKAGE_NAME.search(text, section.end(), end)
        if match and section[1] in ("package", "lib", "bin", "project"):
            yield section[1], match[1]
