"""TAP 12 to 14: one TAP file for each test file, or one output with all files or subtests in sequence."""

from __future__ import annotations

import re

from .core import iterate_lines, names_exception, parse_number

_POINT = re.compile(r"^(not )?ok\b(?:\s+(\d+)\b)?(\s*-(?=\s|$))?\s*(.*)$")
_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*(?:skip\S*)?\s*(.*))?$", re.IGNORECASE)
# A directive is a `#` behind a blank, a blank, and the whole word. Perl's reader needs no blank before the word; what
# Test::More prints has `\\#` in titles. Titles of tape are not escaped, but its own directives are in upper case.
_DIRECTIVE = re.compile(r"(?:^|\s)#\s+(skip|todo)\b[:.]?\s*(.*)$", re.IGNORECASE)
_PERL_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(skip|todo)\b[:.]?\s*(.*)$", re.IGNORECASE)
_TAPE_DIRECTIVE = re.compile(r"(?:^| )# (SKIP|TODO)(?: (.*))?$")
_PERL_FILE = re.compile(r"\.(?:t|pl)$")
_TIME = re.compile(r"(?:^|\s)# ?(?:time=(\d+(?:\.\d+)?) ?(ms|s)?|\(?(\d+(?:\.\d+)?) ?(ms|s)\)?)$")
_SUBTEST = re.compile(r"^# Subtest:?\s*(.*)$")
_PROVE = re.compile(r"^(\S.*?) \.{2,}\s*(?:(ok|Dubious|skipped|Failed|No subtests).*)?$")
_BAIL = re.compile(r"^Bail out!\s*(.*)$")
_YAML = re.compile(r"^(?:message|error):\s*(.*)$")
_FACT = re.compile(r"^(?:expected|actual|wanted|found|got):\s*\S")
_CAUSE = re.compile(r"^(?:name|type): ['\"]?(?P<name>[\w.]+)")
_CAUGHT = re.compile(r"^(?:tapCaught|failureType: '(?!testCodeFailure))")
"""Begins the lines of YAML in which node-tap and node report an exception, or a failure of subtests, hooks or time."""
_SUMMARY = re.compile(
    r"^#\s*(?:(?:tests|suites|pass|fail|cancelled|skip|skipped|todo|time|duration_ms)[\s=:]\s*\d[\d.]*\s*(?:ms|s)?"
    r"|failed \d+ of \d+ tests?|Looks like .*|ok)$"
)
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
        else:
            stream.end_line(content.endswith(b"\n"))
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

    def __init__(self, number, status, name, message, seconds):
        self.number = number
        self.status = status
        self.name = name
        self.message = message
        self.facts = []
        self.expects_message = False  # the message is in the next line
        self.seconds = seconds
        self.is_exception = False  # by its YAML
        self.children = []

    def has_failed_assertion(self):
        """Return whether the point failed by an assertion: where subtests failed, by one of theirs."""
        failed = [child for child in self.children if child.status == "failed"]
        return any(child.has_failed_assertion() for child in failed) if failed else not self.is_exception


def _select_points(points, plan):
    """Return the points of a level that are test results; other lines of that form are output.

    As many as planned are all results. Else output has no number or one beyond the plan; where it has the number of a
    result, both count as errors.
    """
    if len(points) == plan:
        return points
    numbered = [point for point in points if point.number is not None]
    plain = [point for point in points if point.number is None]
    if not numbered or len(plain) == plan:
        return plain
    counts = {}
    for point in numbered:
        counts[point.number] = counts.get(point.number, 0) + 1
    kept = [point for point in numbered if plan is None or point.number <= plan or not plan]
    for point in kept:
        if counts[point.number] > 1:
            point.status, point.message = "error", "several lines have the number %d" % point.number
    return kept


class _TapStream:
    """Parser of one TAP stream, line by line; four columns of indentation are one level."""

    names_files = False  # whether titles may begin with their file even where the TAP file is named after a test file
    select_points = staticmethod(_select_points)

    def __init__(self, file, tree, results):
        self.file = file
        self.has_file_name = bool(file)
        self.js = None
        self.is_tape = False  # comments are the titles of its tests
        self.is_raw = None  # whether titles are printed as they are, as tape does; the first point decides
        self.has_header = False
        self.tree = tree
        self.results = results
        self.pending = {}  # level -> points whose parent has not ended
        self.counts = {}  # level -> number of points
        self.plans = {}  # level -> number of points planned
        self.buffered = {}  # level -> point whose subtests follow in braces, as node-tap writes them
        self.last = None
        self.block = None  # indentation of the YAML block being read
        self.is_point = False  # whether the last line is a test point
        self.heading = ""  # the comment before a point, as tape has them
        self.unclear_heading = ""  # `Subtest: title`, which a test of tape may have for its title
        self.titles = {}  # level -> `# Subtest: title`
        self.has_tap = self.skipped_all = False
        self.bail = None
        self.is_prove = False

    def parse_line(self, line):
        """Parse one line; return False when the rest is output of prove itself."""
        inner = line.lstrip(" ")
        indentation = len(line) - len(inner)
        level = indentation // 4
        if self._is_in_block(indentation, inner):
            self._parse_diagnostic(self.last, inner)
            return True
        if self._is_next_file(line):
            return True
        if _PROVE_END.match(line) and self.has_tap and self.is_prove:
            return False
        point, plan, bail = _POINT.match(inner), _PLAN.match(inner), _BAIL.match(line)
        if self._is_next_stream(line, plan):
            self.finish()
            self.__init__(self.file, self.tree, self.results)
        self.is_point = False
        if plan:
            self._parse_plan(level, plan)
        elif point and not (self.last and indentation % 4 == 2):
            self._parse_point(level, point)
        elif inner == "}" and level in self.buffered:
            self._add_children(self.buffered.pop(level), level)
        elif bail:
            self.bail = bail[1] or "bailed out"
        else:
            self._parse_other(level, inner)
        return True

    def end_line(self, is_complete):
        """End the output; a test point in a line without an end is an error, as a directive may be missing."""
        if self.is_point and not is_complete:
            self.last.status, self.last.message = "error", "the output ends in this line"

    def _is_in_block(self, indentation, inner):
        """Return whether the line is part of a YAML block, which is two columns further in than its point."""
        if self.block is None:
            starts = inner == "---" and self.last is not None and indentation % 4 == 2
            self.block = indentation if starts else None
            return starts
        is_inside = not inner or indentation >= self.block
        if not is_inside or (inner == "..." and indentation == self.block):
            self.block = None
        return is_inside

    def _is_next_stream(self, line, plan):
        """Return whether the line starts the TAP of another process in an output that is of no single file."""
        starts = line.startswith("TAP version") or (plan and not line.startswith(" "))
        return bool(starts and not self.file and self.counts.get(0) and self.counts[0] == self.plans.get(0))

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
        self.plans[level] = int(plan[1][:9])
        if level == 0 and self.plans[0] == 0 and not self.pending.get(0):
            self.skipped_all = True
            self.bail = plan[2] or "skipped"

    def _parse_other(self, level, line):
        subtest = _SUBTEST.match(line)
        if subtest:
            self.titles[level] = subtest[1].strip()
            if level or not self.is_tape:
                self.is_tape = False
            else:
                self.unclear_heading, self.last = line[1:].strip(), None
        elif line.startswith("TAP version"):
            self.is_tape, self.has_header = not level, True
        elif _SUMMARY.match(line) and not (self.is_tape and 0 not in self.plans):  # tape sums up below the plan
            self.last = None
        elif line.startswith("#") and not level and self.is_tape:
            self.heading, self.last = line[1:].strip(), None
        elif self.last is not None:
            self._parse_diagnostic(self.last, line)

    @staticmethod
    def _parse_diagnostic(point, line):
        """Parse a line below a point: YAML or a comment."""
        message, duration, cause = _YAML.match(line), _FIELD.match(line), _CAUSE.match(line)
        if _CAUGHT.match(line) or (cause and names_exception(cause["name"])):
            point.is_exception = True
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
        self.has_tap = self.is_point = True
        self.counts[level] = self.counts.get(level, 0) + 1
        number = int(match[2][:9]) if match[2] else None
        if not level:
            self._decide_headings(match)
        text = match[4] if not self.is_raw else (match[3] or "").strip() + " " + match[4]
        text, word, reason, seconds, is_buffered = self._split_description(text)
        status = "failed" if match[1] else "passed"
        if word == "skip":
            status = "skipped"
        elif word == "todo":
            status = "xfailed" if match[1] else "passed"
        name = text.strip()
        name = name or self.titles.pop(level, "") or "(test %d)" % (number or self.counts[level])
        self.titles.pop(level, None)
        if not level and self.heading not in ("", name):
            name = self.heading + " > " + name
        self.last = _TapPoint(number, status, name, reason, seconds)
        self._add_children(self.last, level)
        if is_buffered:
            self.buffered[level] = self.last
        self.pending.setdefault(level, []).append(self.last)

    def _decide_headings(self, match):
        """Decide from a point of the lowest level how titles are printed, and whether a comment is its heading."""
        is_subtest = self.unclear_heading and (match[3] or self.pending.get(1))
        if is_subtest:
            self.is_tape, self.heading = False, ""
        elif self.unclear_heading:
            self.heading = self.unclear_heading
            self.titles.pop(0, None)
        self.unclear_heading = ""
        if self.is_raw is None:
            self.is_raw = self.is_tape and 0 not in self.plans and not match[3]

    def _split_description(self, text):
        """Return (title, directive in lower case or empty, its reason, seconds, whether subtests follow in braces)."""
        if self.is_raw:
            directive = _TAPE_DIRECTIVE.search(text)
            return (*_split_directive(text, directive), 0.0, False)
        text, is_buffered = _strip_brace(text)
        pattern = _PERL_DIRECTIVE if self.is_prove or _PERL_FILE.search(self.file) else _DIRECTIVE
        text, word, reason = _split_directive(text, pattern.search(text))
        text, is_opened = _strip_brace(text)  # Test2 prints the brace before a directive
        text, seconds = _strip_time(text)
        return _unescape(text, self.has_header), word, reason, seconds, is_buffered or is_opened

    def _add_children(self, point, level):
        if level + 1 in self.plans:  # indented points without a plan are output
            point.children += self.select_points(self.pending.get(level + 1, []), self.plans[level + 1])
        self._close_levels(level + 1)

    def _close_levels(self, lowest):
        for kept in (self.pending, self.plans, self.counts, self.buffered):
            for level in [level for level in kept if level >= lowest]:
                del kept[level]

    def finish(self):
        """Add all points to the results; the output has ended."""
        plan = self.plans.get(0)
        points = self.select_points(self.pending.get(0, []), plan)
        if plan is None or len(points) != plan:  # it is truncated: parents are missing
            for level in sorted((level for level in self.pending if level), reverse=True):
                title = self.titles.get(level - 1)
                for point in self.select_points(self.pending[level], self.plans.get(level)):
                    self._add_results(point, [title] if title else [])
        for point in points:
            self._add_results(point, [])
        file = self.file or "tests"
        if self.skipped_all and not self.pending:
            self.results.add_uncollected(file, self.bail, skipped=True)
        elif (self.has_file_name or self.is_prove) and not self.has_tap:
            self.results.add_uncollected(file, "no TAP output")
        elif self.bail is not None:
            self.results.add(file, "(bailed out)", "error", self.bail)
        elif self.file and self.has_tap and plan is None:
            self.results.add(file, "(plan)", "error", "the output has no plan")
        elif self.file and self.has_tap and plan != len(points):
            self.results.add(file, "(plan)", "error", "%d tests planned, %d run" % (plan, len(points)))
        self.pending = {}

    def _add_results(self, point, titles):
        """Add a point, after its subtests, to the results."""
        names = [*titles, point.name]
        for child in point.children:
            self._add_results(child, names)
        self._add_result(point, names)

    def _add_result(self, point, names):
        """Add a point to the results; an outermost subtest or prefix that is a file's path gives the file."""
        file = self.file
        if self.names_files or not file:
            file, names = self._split_file(names)
            if file and not names:
                if point.status == "failed" and not point.children:
                    self.results.add_uncollected(file, point.message or "the file failed")
                return
        message = "" if point.status == "passed" else point.message or ", ".join(point.facts)
        by_assertion = point.has_failed_assertion()
        file = file or self.file or "tests"
        self.results.add(file, " > ".join(names), point.status, message, point.seconds, by_assertion=by_assertion)

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
    """TAP of ava: comments are log output; a title begins with its file as soon as several files run.

    What tests print is not in it, and its plan leaves out files that crashed.
    """

    names_files = True

    @staticmethod
    def select_points(points, _plan):
        return points

    def _parse_other(self, level, line):
        if not line.startswith("#"):
            super()._parse_other(level, line)


def _split_directive(text, match):
    """Return (title, directive in lower case or empty, its reason)."""
    return (text[: match.start()], match[1].lower(), match[2] or "") if match else (text, "", "")


def _strip_brace(text):
    """Return (text without the brace that opens subtests, whether it had one)."""
    stripped = text.rstrip()
    is_opened = stripped.endswith(" {")
    return (stripped[:-2], True) if is_opened else (text, False)


def _strip_time(text):
    match = _TIME.search(text.rstrip())
    if not match:
        return text, 0.0
    return text[: match.start()].rstrip(), parse_number(match[1] or match[3]) / (
        1 if "s" in (match[2], match[4]) else 1000
    )


def _unescape(text, always):
    """Return a title as its test has it.

    Test::More escapes backslashes only in titles with a `#`, and in those that end with a backslash; writers of TAP 13
    and 14 do in each.
    """
    text = text.rstrip()
    if always or "\\#" in text or text.endswith("\\\\"):
        return re.sub(r"\\([\\#])", r"\1", text)
    return text
