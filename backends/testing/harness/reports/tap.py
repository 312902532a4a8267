"""TAP 12 to 14: one file of TAP for each test file, or one output in which files or subtests follow one another."""

from __future__ import annotations

import re

from .core import lines, number

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


def read(left, tree, results):
    """Every file that holds TAP."""
    _read(_Stream, left, tree, results)


def ava(left, tree, results):
    """Every file that holds TAP of ava."""
    _read(_Ava, left, tree, results)


def _read(kind, left, tree, results):
    for name, content in left:
        stream = kind(_file_of(name, tree), tree, results)
        for line in lines(content):
            if not stream.take(line):
                break
        stream.finish()


def _file_of(name, tree):
    """The test file whose TAP is called `name`: `t/a.t`, or `test/a.js.tap`; empty when it is no file's."""
    for path in (name, re.sub(r"\.(tap|txt|out)$", "", name)):
        if tree.has(path):
            return path
    whole = tree.relative("/" + name)  # prove was given an absolute path
    return whole if whole and tree.has(whole) else ""


class _Point:
    """A test point."""

    def __init__(self, status, name, message, seconds):
        self.status = status
        self.names = [name]
        self.message = message
        self.facts = []
        self.awaited = False  # a message in the next line
        self.seconds = seconds
        self.is_parent = False


class _Stream:
    """TAP as it comes; four columns of indentation are a level."""

    names_files = False  # whether titles may begin with their file even where the TAP is called as a file

    def __init__(self, file, tree, results):
        self.file = file
        self.given = bool(file)
        self.js = None
        self.is_tape = False  # comments are its tests' titles
        self.tree = tree
        self.results = results
        self.waiting = {}  # level -> points whose parent has not ended
        self.numbers = {}  # level -> points seen
        self.plan = None
        self.last = None
        self.heading = ""  # the comment before a point, as tape has them
        self.titles = {}  # level -> `# Subtest: title`
        self.seen = self.skipped_all = False
        self.bail = None
        self.is_proved = False

    def take(self, line):
        """One line; False when what follows is prove's own."""
        inner = line.lstrip(" ")
        level = (len(line) - len(inner)) // 4
        if self._is_next_file(line):
            return True
        if _PROVE_END.match(line) and self.seen:
            return False
        point, plan, bail = _POINT.match(inner), _PLAN.match(inner), _BAIL.match(inner)
        if plan:
            self._plan(level, plan)
        elif point and not (self.last and line.startswith("  ") and len(line) - len(inner) - 4 * level == 2):
            self._point(level, point)
        elif bail:
            self.bail = bail[1] or "bailed out"
        else:
            self._other(level, inner)
        return True

    def _is_next_file(self, line):
        """Whether it is the heading of `prove -v` above a file's TAP."""
        prove = _PROVE.match(line) if not self.given else None
        file = self.tree.found(prove[1]) if prove else ""
        if file:
            self.finish()
            self.__init__(file, self.tree, self.results)
            self.given, self.is_proved = False, True
            if prove[2] == "skipped":
                self.skipped_all, self.bail = True, "skipped"
        return bool(file)

    def _plan(self, level, plan):
        self.seen = True
        if level == 0:
            self.plan = int(plan[1][:9])
            if self.plan == 0 and not self.waiting.get(0):
                self.skipped_all = True
                self.bail = plan[2] or "skipped"

    def _other(self, level, line):
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
            self._diagnostic(self.last, line)

    @staticmethod
    def _diagnostic(point, line):
        """A line below a point: YAML, or comments."""
        said, took = _YAML.match(line), _FIELD.match(line)
        if took:
            point.seconds = number(took[1]) / 1000
        elif point.status == "failed" and not point.message:
            if said:
                point.message = said[1].strip("|>-' \"")
                point.awaited = not point.message
            elif point.awaited or (line.startswith("#") and line.strip("# ")):
                point.message = line.strip("# ")
            elif _FACT.match(line):
                point.facts.append(line.strip())

    def _point(self, level, match):
        self.seen = True
        self.numbers[level] = self.numbers.get(level, 0) + 1
        text = match[3]
        directive = _DIRECTIVE.search(text)
        reason, word = "", ""
        if directive:
            text, word, reason = text[: directive.start()], directive[1].lower(), directive[2]
        text, seconds = _without_time(text)
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
        self.last = _Point(status, name, reason, seconds)
        children = self.waiting.pop(level + 1, [])
        self.numbers.pop(level + 1, None)
        if children:
            self.last.is_parent = True
            for child in children:
                child.names.insert(0, name)
        self.waiting.setdefault(level, []).extend([*children, self.last])

    def finish(self):
        """The output has ended."""
        for level in sorted(self.waiting, reverse=True):
            title = self.titles.get(level - 1) if level else None
            for point in self.waiting[level]:  # a level above 0 is torn: its parent never came
                if title:
                    point.names.insert(0, title)
                self._tell(point)
        file = self.file or "tests"
        if self.skipped_all and not self.waiting:
            self.results.uncollected(file, self.bail, skipped=True)
        elif (self.given or self.is_proved) and not self.seen:
            self.results.uncollected(file, "there is no TAP")
        elif self.bail is not None:
            self.results.add(file, "(bailed out)", "error", self.bail)
        elif self.file and self.seen and self.plan is None:
            self.results.add(file, "(plan)", "error", "it ended without a plan")
        elif self.file and self.seen and self.plan != self.numbers.get(0, 0):
            count = self.numbers.get(0, 0)
            self.results.add(file, "(plan)", "error", "%d tests planned, %d run" % (self.plan, count))
        self.waiting = {}

    def _tell(self, point):
        """Hand over a point; an outermost subtest or prefix that is a file's path is the file."""
        names, file = point.names, self.file
        if self.names_files or not file:
            file, names = self._file_named(names)
            if file and not names:
                if point.status == "failed" and not point.is_parent:
                    self.results.uncollected(file, point.message or "the file failed")
                return
        message = "" if point.status == "passed" else point.message or ", ".join(point.facts)
        self.results.add(file or self.file or "tests", " > ".join(names), point.status, message, point.seconds)

    def _file_named(self, names):
        """(file or empty, the names behind) of names whose first may be a file: node-tap's, node's and ava's."""
        first = re.sub(r" exited with a non-zero exit code.*$", "", names[0])
        file = self.tree.found(first) if "/" in first or "." in first else ""
        if file:
            return file, names[1:]
        titles = names[0].split(" \u203a ")
        for place in range(len(titles) - 1, 0, -1):  # ava: the path below the tests' folder, without its ending
            ends = "/".join(titles[:place])
            if len(self._js().get(ends, [])) == 1:
                return self._js()[ends][0], [" > ".join(titles[place:])]
        return "", names

    def _js(self):
        """{what ava may call it: paths} of JavaScript files that look like tests."""
        if self.js is None:
            self.js = {}
            for path in [path for path in self.tree.files if _JS.search(path) and "test" in path.lower()]:
                parts = re.sub(r"(\.(test|spec))?\.\w+$", "", path).split("/")
                for start in range(len(parts)):
                    self.js.setdefault("/".join(parts[start:]), []).append(path)
        return self.js


class _Ava(_Stream):
    """Comments are what the tests log; a title begins with its file as soon as several files run."""

    names_files = True

    def _other(self, level, line):
        if not line.startswith("#"):
            super()._other(level, line)


def _without_time(text):
    match = _TIME.search(text.rstrip())
    if not match:
        return text, 0.0
    return text[: match.start()].rstrip(), number(match[1]) / (1 if match[2] == "s" else 1000)
