"""TAP 12 to 14: one TAP file for each test file, or one output with all files or subtests in sequence."""

from __future__ import annotations

import re

from .core import iterate_lines, parse_number

_POINT = re.compile(r"^(not )?ok\b(?:\s+(\d+))?(?:\s+-|\s*-\s)?\s*(.*)$")
_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*(?:skip\S*)?\s*(.*))?$", re.IGNORECASE)
_DIRECTIVE = re.compile(r"(?<!\\)#\s*(skip|todo)\S*\s*(.*)$", re.IGNORECASE)
_TIME = re.compile(r"(?<!\\)# ?(?:time=|\()?(\d+(?:\.\d+)?) ?(ms|s)?\)?$")
_SUBTEST = re.compile(r"^# Subtest:?\s*(.*)$")
_PROVE = re.compile(r"^(\S.*?) \.{2,}\s*(?:(ok|Dubious|skipped|Failed|No subtests).*)?$")
_BAIL = re.compile(r"^Bail out!\s*(.*)$")
_YAML = re.compile(r"^(?:message|error):\s*(.*)$")
_FACT = re.compile(r"^(?:expected|actual|wanted|found|got):\s*\S")
_SUMMARY = re.compile(r"^#\s*(tests|pass|fail|ok|skip|todo|failed|time|Looks|duration_ms|suites|cancelled)\b")
_JS = re.compile(r"\.[cm]?[jt]sx?$")
_FIELD = re.compile(r"^duration_ms:\s*([\d.]+)")
_PROVE_END = re.compile(r"^(Test Summary Report|All tests successful|Files=\d+|Result: )")


def convert_tap(outputs, tree, results):
    """Convert every file that holds TAP."""
    _convert_streams(_TapStream, outputs, tree, results)


def convert_ava(outputs, tree, results):
    """Convert every file that holds TAP of ava."""
    _convert_streams(_AvaStream, outputs, tree, results)


def _convert_streams(stream_class, outputs, tree, results):
    for name, content in outputs:
        stream = stream_class(_find_test_file(name, tree), tree, results)
        for line in iterate_lines(content):
            if not stream.parse_line(line):
                break
        stream.finish()


def _find_test_file(name, tree):
    """Return the test file whose TAP is named `name`, such as `t/a.t` or `test/a.js.tap`; empty when there is none."""
    for path in (name, re.sub(r"\.(tap|txt|out)$", "", name)):
        if tree.has_file(path):
            return path
    inside = tree.make_relative("/" + name)  # prove ran with an absolute path
    return inside if inside and tree.has_file(inside) else ""


class _TapPoint:
    """One test point."""

    def __init__(self, status, name, message, seconds):
        self.status = status
        self.names = [name]
        self.message = message
        self.facts = []
        self.expects_message = False  # the message is in the next line
        self.seconds = seconds
        self.is_parent = False


class _TapStream:
    """Parser of one TAP stream, line by line; four columns of indentation are one level."""

    names_files = False  # whether titles may begin with their file even where the TAP file is named after a test file

    def __init__(self, file, tree, results):
        self.file = file
        self.has_file_name = bool(file)
        self.js = None
        self.is_tape = False  # comments are the titles of its tests
        self.tree = tree
        self.results = results
        self.pending = {}  # level -> points whose parent has not ended
        self.numbers = {}  # level -> number of points
        self.plan = None
        self.last = None
        self.heading = ""  # the comment before a point, as tape has them
        self.titles = {}  # level -> `# Subtest: title`
        self.has_tap = self.skipped_all = False
        self.bail = None
        self.is_prove = False

    def parse_line(self, line):
        """Parse one line; return False when the rest is output of prove itself."""
        inner = line.lstrip(" ")
        level = (len(line) - len(inner)) // 4
        if self._is_next_file(line):
            return True
        if _PROVE_END.match(line) and self.has_tap:
            return False
        point, plan, bail = _POINT.match(inner), _PLAN.match(inner), _BAIL.match(inner)
        if plan:
            self._parse_plan(level, plan)
        elif point and not (self.last and line.startswith("  ") and len(line) - len(inner) - 4 * level == 2):
            self._parse_point(level, point)
        elif bail:
            self.bail = bail[1] or "bailed out"
        else:
            self._parse_other(level, inner)
        return True

    def _is_next_file(self, line):
        """Return whether the line is the heading of `prove -v` above a file's TAP."""
        prove = _PROVE.match(line) if not self.has_file_name else None
        file = self.tree.find_file(prove[1]) if prove else ""
        if file:
            self.finish()
            self.__init__(file, self.tree, self.results)
            self.has_file_name, self.is_prove = False, True
            if prove[2] == "skipped":
                self.skipped_all, self.bail = True, "skipped"
        return bool(file)

    def _parse_plan(self, level, plan):
        self.has_tap = True
        if level == 0:
            self.plan = int(plan[1][:9])
            if self.plan == 0 and not self.pending.get(0):
                self.skipped_all = True
                self.bail = plan[2] or "skipped"

    def _parse_other(self, level, line):
        subtest = _SUBTEST.match(line)
        if subtest:
            self.titles[level] = subtest[1].strip()
            self.is_tape = False
        elif line.startswith("TAP version"):
            self.is_tape = not level
        elif _SUMMARY.match(line):
            self.last = None
        elif line.startswith("#") and not level and self.is_tape:
            self.heading, self.last = line[1:].strip(), None
        elif self.last is not None:
            self._parse_diagnostic(self.last, line)

    @staticmethod
    def _parse_diagnostic(point, line):
        """Parse a line below a point: YAML or a comment."""
        message, duration = _YAML.match(line), _FIELD.match(line)
        if duration:
            point.seconds = parse_number(duration[1]) / 1000
        elif point.status == "failed" and not point.message:
            if message:
                point.message = message[1].strip("|>-' \"")
                point.expects_message = not point.message
            elif point.expects_message or (line.startswith("#") and line.strip("# ")):
                point.message = line.strip("# ")
            elif _FACT.match(line):
                point.facts.append(line.strip())

    def _parse_point(self, level, match):
        self.has_tap = True
        self.numbers[level] = self.numbers.get(level, 0) + 1
        text = match[3]
        directive = _DIRECTIVE.search(text)
        reason, word = "", ""
        if directive:
            text, word, reason = text[: directive.start()], directive[1].lower(), directive[2]
        text, seconds = _strip_time(text)
        status = "failed" if match[1] else "passed"
        if word == "skip":
            status = "skipped"
        elif word == "todo":
            status = "xfailed" if match[1] else "passed"
        name = re.sub(r"\\(.)", r"\1", re.sub(r"\s*\{$", "", text)).strip()
        name = name or self.titles.pop(level, "") or "(test %d)" % self.numbers[level]
        self.titles.pop(level, None)
        if not level and self.heading not in ("", name):
            name = self.heading + " > " + name
        self.last = _TapPoint(status, name, reason, seconds)
        children = self.pending.pop(level + 1, [])
        self.numbers.pop(level + 1, None)
        if children:
            self.last.is_parent = True
            for child in children:
                child.names.insert(0, name)
        self.pending.setdefault(level, []).extend([*children, self.last])

    def finish(self):
        """Add all points to the results; the output has ended."""
        for level in sorted(self.pending, reverse=True):
            title = self.titles.get(level - 1) if level else None
            for point in self.pending[level]:  # a level above 0 is truncated: its parent is missing
                if title:
                    point.names.insert(0, title)
                self._add_result(point)
        file = self.file or "tests"
        if self.skipped_all and not self.pending:
            self.results.add_uncollected(file, self.bail, skipped=True)
        elif (self.has_file_name or self.is_prove) and not self.has_tap:
            self.results.add_uncollected(file, "no TAP output")
        elif self.bail is not None:
            self.results.add(file, "(bailed out)", "error", self.bail)
        elif self.file and self.has_tap and self.plan is None:
            self.results.add(file, "(plan)", "error", "the output has no plan")
        elif self.file and self.has_tap and self.plan != self.numbers.get(0, 0):
            count = self.numbers.get(0, 0)
            self.results.add(file, "(plan)", "error", "%d tests planned, %d run" % (self.plan, count))
        self.pending = {}

    def _add_result(self, point):
        """Add a point to the results; an outermost subtest or prefix that is a file's path gives the file."""
        names, file = point.names, self.file
        if self.names_files or not file:
            file, names = self._split_file(names)
            if file and not names:
                if point.status == "failed" and not point.is_parent:
                    self.results.add_uncollected(file, point.message or "the file failed")
                return
        message = "" if point.status == "passed" else point.message or ", ".join(point.facts)
        self.results.add(file or self.file or "tests", " > ".join(names), point.status, message, point.seconds)

    def _split_file(self, names):
        """Return (file or empty, other names); the first name may be a file in the output of node-tap, node and ava."""
        first = re.sub(r" exited with a non-zero exit code.*$", "", names[0])
        file = self.tree.find_file(first) if "/" in first or "." in first else ""
        if file:
            return file, names[1:]
        titles = names[0].split(" \u203a ")
        for place in range(len(titles) - 1, 0, -1):  # ava: the path below the tests' folder, without suffix
            ends = "/".join(titles[:place])
            if len(self._index_javascript().get(ends, [])) == 1:
                return self._index_javascript()[ends][0], [" > ".join(titles[place:])]
        return "", names

    def _index_javascript(self):
        """Return ava's possible name -> paths of JavaScript test files."""
        if self.js is None:
            self.js = {}
            for path in [path for path in self.tree.files if _JS.search(path) and "test" in path.lower()]:
                parts = re.sub(r"(\.(test|spec))?\.\w+$", "", path).split("/")
                for start in range(len(parts)):
                    self.js.setdefault("/".join(parts[start:]), []).append(path)
        return self.js


class _AvaStream(_TapStream):
    """TAP of ava: comments are log output; a title begins with its file as soon as several files run."""

    names_files = True

    def _parse_other(self, level, line):
        if not line.startswith("#"):
            super()._parse_other(level, line)


def _strip_time(text):
    match = _TIME.search(text.rstrip())
    if not match:
        return text, 0.0
    return text[: match.start()].rstrip(), parse_number(match[1]) / (1 if match[2] == "s" else 1000)
