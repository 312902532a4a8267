"""The text of `cargo test`: binaries, their tests, doc tests, with whatever else was printed between."""

from __future__ import annotations

import os
import re

from . import xunit
from .core import lines, number

_RUNNING = re.compile(
    r"^\s*Running (?:unittests )?(?:(?P<source>[^\s()]+\.rs) )?\(?(?P<binary>\S*?/deps/\S+?)\)?(?: .*)?$"
)
_DOCTESTS = re.compile(r"^\s*Doc-tests (\S+)")
_TEST = re.compile(r"^test (?P<name>.+?) \.\.\. ?(?P<end>.*)$")
_BEHIND = re.compile(r"test ([\w:]+) \.\.\. (ok|FAILED)$")
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
_PATH_ATTRIBUTE = r"#\[path\s*=\s*\"([^\"]+)\"\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?mod\s+%s\s*;"
_STATUS = {"ok": "passed", "FAILED": "failed"}


def read(left, tree, results):
    """Unit tests by module path, integration tests by file, doc tests by the file that holds them."""
    crates = Crates(tree)
    for _name, content in left:
        run = _Run(crates, results)
        for line in lines(content):
            run.take(line)
        run.finish()
        _compile_errors(content, crates, results)


def nextest(left, tree, results):
    """JUnit of cargo-nextest, whose suites are binaries: `crate`, `crate::tests-target`, `crate::bin/name`."""
    crates = Crates(tree)
    for _name, content in left:
        root = xunit.parse(content)
        for case in root.all("testcase") if root is not None else ():
            package, _, target = case.get("classname").partition("::")
            kind, _, name = target.rpartition("/")
            wanted = ("lib", "") if not target else ("bin", name) if kind == "bin" else ("test", name)
            source = crates.target(package, *wanted) or crates.target(package, "bin", package)
            status, message = xunit.result(case)
            file = crates.module_file(source, case.get("name")) if source else case.get("classname")
            results.add(file, case.get("name"), status, message, number(case.get("time")), again=True)


class _Run:
    """One output, line by line."""

    def __init__(self, crates, results):
        self.crates = crates
        self.results = results
        self.root = self.package = ""  # source file and folder of the binary that runs
        self.is_doc = False
        self.tests = {}  # name -> [status, message] of the binary that runs
        self.counts = {}
        self.names = {}  # what the binary calls a test -> its name here
        self.open = None
        self.messages = None  # the test whose output is being shown
        self.failures = False
        self.is_empty = False  # the binary says that it has no test

    def take(self, line):
        """One line."""
        running, doc = _RUNNING.match(line), _DOCTESTS.match(line)
        if running or doc:
            self.finish()
            self.is_doc = doc is not None
            self.root, self.package = self.crates.doc(doc[1]) if doc else self._binary(running)
        elif line.startswith("running ") and line.endswith((" test", " tests")) and not self.open:
            self.failures = False
            self.is_empty = line == "running 0 tests"
        elif line == "failures:":
            self.failures = True
        elif self.failures:
            self._failure(line)
        else:
            self._test(line)

    def _binary(self, running):
        binary = re.sub(r"-[0-9a-f]{16}(?:\.exe)?$", "", running["binary"].rpartition("/")[2])
        return self.crates.binary(running["source"] or "", binary, self.package)

    def _test(self, line):
        test = _TEST.match(line)
        if test:
            self._not_ended()
            self.open = test["name"].removesuffix(" - should panic")
            end = _END.search(" " + test["end"])
            if end:
                self._end(end["status"])
        elif self.open:  # its output stood between name and end
            end = _BARE_END.match(line) or _END.search(line) if line.endswith(("ok", "FAILED")) else None
            if end:
                self._end(end["status"])
        elif line.endswith((" ... ok", " ... FAILED")) and self.root:  # behind what a test wrote without a new line
            behind = _BEHIND.search(line)
            if behind:
                self.open = behind[1]
                self._end(behind[2])

    def _end(self, status):
        word = status.split(",")[0].split(":")[0]
        said = _STATUS.get(word, "passed" if word == "bench" else "skipped")
        self._set(self.open, said, status.partition(", ")[2])
        self.open = None

    def _set(self, name, status, message):
        base = name if not self.is_doc else _doc_name(name)
        count = self.counts[base] = self.counts.get(base, 0) + 1
        free = base if count == 1 else "%s #%d" % (base, count)
        self.tests[free] = [status, message]
        self.names[name] = free

    def _not_ended(self):
        if self.open:
            self._set(self.open, "error", "the test did not end")
            self.open = None

    def _failure(self, line):
        """A line of the section that shows what failed tests said."""
        shown = _MESSAGE.match(line)
        if shown:
            self.messages = self.names.get(shown[1], "")
        elif self.messages in self.tests and line.strip() and not self.tests[self.messages][1].endswith("\0"):
            test = self.tests[self.messages]
            panicked = _PANICKED.match(line)
            old = panicked and re.match(r"^'(.*)', \S+:\d+:\d+$", panicked[1])
            if old:
                test[1] = old[1] + "\0"
            elif test[1] == "panicked":
                test[1] = line.strip() + "\0"
            elif panicked:
                test[1] = "panicked"
            elif not test[1]:
                test[1] = line.strip()

    def finish(self):
        """The binary has ended."""
        self._not_ended()
        if self.is_empty and not self.tests and "tests/" in self.root:
            self.results.uncollected(self.root, "none of its tests is for this platform", skipped=True)
        for name, (status, message) in self.tests.items():
            why = message.rstrip("\0") if status != "passed" else ""
            if self.is_doc:
                inside, _, item = name.partition(" - ")
                self.results.add(self.crates.in_package(inside, self.package), "doc " + item, status, why, again=True)
            else:
                self.results.add(self.crates.module_file(self.root, name), name, status, why, again=True)
        self.tests, self.names, self.counts, self.failures, self.messages = {}, {}, {}, False, None
        self.is_empty = False


def _doc_name(name):
    """A doc test's name without its line, which moves with every edit above it: `src/lib.rs - add`."""
    match = _DOC_NAME.match(name)
    return "%s - %s%s" % (match["file"], match["item"] or "(file)", match["rest"]) if match else name


def _compile_errors(content, crates, results):
    """Test targets that did not compile; a library that does not stands for its own unit tests."""
    message, first, place = "", "", ""
    for line in lines(content):
        error, arrow, gave_up = _COMPILE.match(line), _ARROW.match(line), _COULD_NOT.match(line)
        if gave_up:
            package, kind, target = gave_up[1], gave_up[2], gave_up[3] or ""
            file = crates.target(package, kind, target) or place
            if file:
                results.uncollected(file, first or "could not compile")
            first = place = ""
        elif error:
            message = error[1]
        elif arrow and not first and message:
            first, place = message, arrow[1]


class Crates:
    """The tree's packages: where their binaries' sources lie."""

    def __init__(self, tree):
        self.tree = tree
        self.packages = {}  # name -> folder
        self.targets = {}  # crate name, as binaries are called -> folder
        for path in tree.named("Cargo.toml"):
            folder = path.rpartition("/")[0]
            for section, name in _names(tree.text(path)):
                if section == "package":
                    self.packages.setdefault(name, folder)
                self.targets.setdefault(name.replace("-", "_"), folder)

    def in_package(self, source, package):
        """`source`, which cargo names from the package's folder or the workspace's."""
        inside = package + "/" + source if package else source
        return inside if self.tree.has(inside) else self.tree.found(source) or inside

    def binary(self, source, name, current):
        """(source file, package folder) of a binary; `current` is the package that ran before it."""
        folder = self.targets.get(name)
        if not source:  # before cargo 1.56
            return self._old_binary(name, folder if folder is not None else current)
        if folder is not None and self.tree.has(_join(folder, source)):
            return _join(folder, source), folder
        for place in (current, ""):
            if self.tree.has(_join(place, source)):
                return _join(place, source), place
        fitting = [one for one in sorted(set(self.packages.values())) if self.tree.has(_join(one, source))]
        return (_join(fitting[0], source), fitting[0]) if fitting else (source, current)

    def _old_binary(self, name, folder):
        places = ("src/lib.rs", "src/main.rs", "src/bin/%s.rs" % name) if name in self.targets else ()
        for source in (*places, "tests/%s.rs" % name, "tests/%s/main.rs" % name, "src/bin/%s.rs" % name):
            if self.tree.has(_join(folder, source)):
                return _join(folder, source), folder
        return self.tree.found("tests/%s.rs" % name) or name, folder

    def doc(self, name):
        """(source file, package folder) of the crate whose doc tests run."""
        folder = self.targets.get(name.replace("-", "_"), "")
        return _join(folder, "src/lib.rs"), folder

    def target(self, package, kind, name):
        """Source file of a target as cargo's last word on it names it; empty when it cannot be told."""
        folder = self.packages.get(package, "")
        places = {"lib": ["src/lib.rs"], "bin": ["src/bin/%s.rs" % name, "src/bin/%s/main.rs" % name, "src/main.rs"]}
        tests = ["tests/%s.rs" % name, "tests/%s/main.rs" % name]
        fitting = [path for path in places.get(kind, tests) if self.tree.has(_join(folder, path))]
        return _join(folder, fitting[0]) if fitting else ""

    def module_file(self, root, name):
        """File of the innermost module of `a::b::tests::c` that has a file of its own, in the crate of file `root`."""
        folder, _, file = root.rpartition("/")
        is_test = file not in ("lib.rs", "main.rs", "mod.rs")
        place, found = folder, root
        for part in name.split("::")[:-1]:
            named = re.search(_PATH_ATTRIBUTE % re.escape(part), self.tree.text(found))
            if named:  # `#[path = "by-name/x.rs"] mod x;`
                there = os.path.normpath(_join(found.rpartition("/")[0], named[1]))
                if self.tree.has(there):
                    found, place = there, there.rpartition("/")[0]
                    continue
            nested = [_join(place, part)]
            if is_test and place == folder:
                nested.append(_join(_join(place, file[:-3]), part))
            fitting = [end for one in nested for end in (one + ".rs", one + "/mod.rs") if self.tree.has(end)]
            if not fitting:
                break
            found = fitting[0]
            place = found[: -len("/mod.rs")] if found.endswith("/mod.rs") else found[: -len(".rs")]
        return found


def _join(folder, path):
    return folder + "/" + path if folder else path


def _names(text):
    """(section, name) of the packages and targets that a Cargo.toml names."""
    sections = list(_SECTION.finditer(text))
    for place, section in enumerate(sections):
        end = sections[place + 1].start() if place + 1 < len(sections) else len(text)
        match = _PACKAGE_NAME.search(text, section.end(), end)
        if match and section[1] in ("package", "lib", "bin", "project"):
            yield section[1], match[1]
