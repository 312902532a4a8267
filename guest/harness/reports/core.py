"""Parts shared by all formats: the results, the tree that names are mapped to, and the limits on what is read."""

from __future__ import annotations

import os
import re
import stat
import time

MAX_FILES = 20_000
MAX_FILE_BYTES = 128 * 1024 * 1024
MAX_BYTES = 512 * 1024 * 1024
MAX_TESTS = 500_000
MAX_TREE = 400_000
MAX_SOURCE_BYTES = 4 * 1024 * 1024
MAX_NAME = 2_000
MAX_MESSAGE = 500
MAX_LINE = 20_000

ORDER = ("passed", "xfailed", "skipped", "failed", "error")
"""Statuses, from the best to the worst."""

NOT_SOURCES = frozenset((".git", "node_modules", "__pycache__", ".venv", ".tox", ".gradle", "_build", ".hg"))


class ConversionError(Exception):
    """No file can be read as the format (exit code 3)."""


ANSI_CODES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]")
# Parts of a name that differ from run to run, and their replacements.
UNSTABLE_PATTERNS = (
    (re.compile(r" ?[(\[] ?(?:\d+m )?\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds|m|min) ?[)\]]$"), ""),
    (re.compile(r" ?[(\[](?:gw|worker[ -#]?|thread[ -#]?|pid[ :=]?)\d+[)\]]", re.IGNORECASE), ""),
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "0x…"),
    (re.compile(r"(?<=_)0xc0[0-9a-f]{8}\b"), "0x…"),  # a pointer of Go in a subtest's name
    (re.compile(r"(?<=[\w$\]])@[0-9a-f]{5,8}\b(?!\.\w)"), "@…"),
    (re.compile(r"(?:/private)?(?:/var/folders/[\w+/-]+|/(?:var/)?tmp)/[^\s'\"),\]:]+"), "/tmp/…"),  # noqa: S108 - part of a name
    (re.compile(r"\b(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{4,5}\b"), r"\1:…"),
)


def stabilize_name(name, read_source=lambda: ""):
    """Return `name` on one line, without the parts that differ from run to run.

    `read_source` returns the text of the test's file: a timestamp that stands in it is the same in every run.
    """
    name = " ".join(ANSI_CODES.sub("", name[: 4 * MAX_NAME]).split())
    for pattern, replacement in UNSTABLE_PATTERNS:
        name = pattern.sub(replacement, name)
    return make_printable(_TIMESTAMP.sub(lambda match: _replace_current_time(match, read_source), name))[:MAX_NAME]


# Timestamps in the notation of most languages: `2026-01-31T12:00:00.123Z`, `Sat Jan 31 2026 12:00:00 GMT+0000 (...)`.
_TIMESTAMP = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))*"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<word>[A-Z][a-z]{2}) +(?P<date>\d{1,2}) (?P<of>\d{4}) \d\d:\d\d:\d\d"
    r"(?: GMT[+-]\d{4}(?: \([^)]*\))?)?"
)
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _replace_current_time(match, read_source):
    """Return `…` for a timestamp of the day of the run, which differs in every run; keep constants and all others."""
    year, month, day = match["year"] or match["of"], match["month"], match["day"] or match["date"]
    number_of = int(month) if month else _MONTHS.index(match["word"]) if match["word"] in _MONTHS else 0
    days = [time.gmtime(time.time() + shift)[:3] for shift in (-86400, 0, 86400)]  # in any time zone
    is_current = (int(year), number_of, int(day)) in days and match.group() not in read_source()
    return "\u2026" if is_current else match.group()


def make_printable(text):
    """Return the text with `?` for characters that XML cannot hold."""
    if text.isprintable():
        return text
    return "".join(
        c if c in "\t\n" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe" or c > "\uffff" else "?" for c in text
    )


def extract_first_line(text):
    """Return the first line that is not empty, without colour codes."""
    for raw in str(text)[: 8 * MAX_LINE].splitlines():
        line = ANSI_CODES.sub("", raw[:MAX_LINE]).strip()
        if line:
            return make_printable(line)[:MAX_MESSAGE]
    return ""


# Matchers of jest throw a plain `Error: expect(received)...`.
_EXCEPTION = re.compile(
    r"^(?:Uncaught )?(?P<name>[\w.$\\/]*(?:Error|Exception|Throwable))(?: \[\w+\])?(?=[\s:]|$)"
    r"(?!: (?:expect|assert)[(.])"
)
_OF_ASSERTION = re.compile(
    r"Assert|Expectation|ComparisonFail|ConditionNotSatisfied|MultipleFailures"
    r"|^(?:org\.scalatest|org\.spockframework|org\.specs2|org\.opentest4j|munit|Xunit\.Sdk)\."
)


def names_exception(text):
    """Return whether a text begins with the name of an exception, other than those that assertions raise."""
    match = _EXCEPTION.match(text.strip())
    return bool(match) and not _OF_ASSERTION.search(match["name"])


NOT_OF_ASSERTIONS = frozenset((124, 126, 127, 132, 135, 136, 137, 139, 143))
"""Exit statuses of a program that was not found, ran out of time, or was ended by a signal that is not of `abort`."""


def is_exit_of_assertion(code):
    """Return whether a program may have ended with that status by a check of its own, as `assert` does by SIGABRT."""
    return (128 - code if code < 0 else code) not in NOT_OF_ASSERTIONS


def parse_number(value):
    """Return the value as a number of seconds; 0.0 if it is none."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if 0 <= seconds < 1e9 else 0.0


class ConvertedResults:
    """Status of every test, in the order of the report."""

    def __init__(self, tree):
        self.tree = tree
        self.tests = {}
        self.files = {}
        self.counts = {}
        self.ids = set()
        self.keys = {}  # identity -> key in `tests`

    def add(self, file, name, status, message="", seconds=0.0, *, identity=None, by_assertion=None):
        """Add one test.

        Args:
            file: path from the tree's root, or a substitute where the file is unknown.
            name: the rest of its id, as reported by the framework.
            status: one of ORDER.
            message: reason why it did not pass.
            seconds: its duration.
            identity: rows of equal identity are one test, whose worst status is kept. All others are different tests:
                where their names are equal, or differ only in what `stabilize_name` removes, later ones get a number.
            by_assertion: whether a failed test failed by an assertion; None where the framework reports exceptions as
                errors, so that `failed` has no other cause.
        """
        is_assertion = by_assertion is not False
        if len(self.tests) >= MAX_TESTS:
            raise ConversionError("more than %d tests" % MAX_TESTS)
        if identity in self.keys:
            key = self.keys[identity]
            old = self.tests[key]
            is_worse = ORDER.index(status) > ORDER.index(old[0])
            worst = (status, extract_first_line(message)) if is_worse else old[:2]
            self.tests[key] = (*worst, old[2] + seconds, is_assertion if is_worse else old[3])
            return
        name = str(name).replace(self.tree.root + "/", "")
        name = stabilize_name(name, lambda: self.tree.read_text(file)) or "(unnamed)"
        key = self._find_unused_key(self._stabilize_file(file), name)
        if identity is not None:
            self.keys[identity] = key
        self.ids.add("::".join(key))
        self.tests[key] = (status, extract_first_line(message), seconds, is_assertion)

    def _stabilize_file(self, file):
        return file if self.tree.has_file(file) and file.isprintable() else stabilize_name(file)

    def _find_unused_key(self, file, name):
        """Return (file, name), with the next number where the report has a test of that id."""
        count = self.counts.get((file, name), 0) + 1
        free = name if count == 1 else "%s #%d" % (name, count)
        while file + "::" + free in self.ids:
            count += 1
            free = "%s #%d" % (name, count)
        self.counts[file, name] = count
        return file, free

    def add_uncollected(self, file, message="", skipped=False, printed=False):
        """Add a file whose tests the framework could not collect.

        Args:
            file: path from the tree's root.
            message: the reason.
            skipped: whether the framework skipped it on purpose.
            printed: whether the reason is from output, which a test may have printed: a file with a test is collected.
        """
        self.files.setdefault(self._stabilize_file(file), (skipped, extract_first_line(message), printed))

    def __bool__(self):
        return bool(self.tests or self.files)

    def to_xml(self):
        """Return the canonical report."""
        rows = ["<?xml version='1.0' encoding='utf-8'?>\n<testsuites mergemill=\"1\">\n"]
        for (file, name), (status, message, seconds, is_assertion) in self.tests.items():
            kind = "failed by exception" if status == "failed" and not is_assertion else status
            rows.append(_format_row(file, name, kind, message, seconds))
        tested = {file for file, _ in self.tests}
        for file, (skipped, message, printed) in self.files.items():
            if printed and file in tested:
                continue
            kind = "collection skipped: " if skipped else "collection failure: "
            rows.append(_format_row(file, "", "skipped" if skipped else "error", kind + message, 0.0))
        rows.append("</testsuites>\n")
        return "".join(rows).encode("utf-8", "replace")


_TAGS = {
    "failed": 'failure type="assertion"',
    "failed by exception": 'failure type="exception"',
    "error": "error",
    "skipped": "skipped",
    "xfailed": 'skipped type="pytest.xfail"',
}


_ESCAPES = (
    *(("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")),
    *(("\n", "&#10;"), ("\r", "&#13;"), ("\t", "&#9;")),
)


def quote_attribute(text):
    """Return a text as the value of an attribute; the function of `xml.sax.saxutils` loads a client of HTTP with it."""
    for character, reference in _ESCAPES:
        text = text.replace(character, reference)
    return '"%s"' % text


def _format_row(file, name, status, message, seconds):
    start = '<testcase file=%s name=%s time="%.3f"' % (quote_attribute(file), quote_attribute(name), seconds)
    if status == "passed":
        return start + "/>\n"
    return "%s><%s message=%s/></testcase>\n" % (start, _TAGS[status], quote_attribute(message))


class ReportTree:
    """The project's files, to which a report's names are mapped."""

    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.unresolved_root = os.path.abspath(root)
        self._files = None
        self._by_name = {}
        self._texts = {}
        self._found = {}

    @property
    def files(self):
        """Paths from the root, sorted."""
        if self._files is None:
            self._files = sorted(self._walk())
            for path in self._files:
                self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        return self._files

    def _walk(self):
        count = 0
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name not in NOT_SOURCES)
            inside = os.path.relpath(folder, self.root)
            for name in names:
                count += 1
                if count > MAX_TREE:
                    return
                path = name if inside == "." else inside + "/" + name
                yield path.encode("utf-8", "replace").decode()

    def find_named(self, name):
        """Return the paths of the files of that name."""
        return self._by_name.get(name, []) if self.files else []

    def has_file(self, path):
        """Return whether there is such a file."""
        return path in self.find_named(path.rpartition("/")[2])

    def make_relative(self, path):
        """Return `path` relative to the root; empty when it is outside of the tree or no path."""
        path = path.replace("\\", "/")
        path = path.removeprefix("file://")
        if not path or len(path) > 4096 or "\n" in path or "\0" in path:
            return ""
        for root in (self.root, self.unresolved_root):
            if path.startswith(root + "/"):
                path = path[len(root) + 1 :]
                break
        path = os.path.normpath(path)
        if path.startswith("/"):
            real = os.path.realpath(path)
            path = real[len(self.root) + 1 :] if real.startswith(self.root + "/") else path
        return "" if path.startswith(("/", "..")) or path == "." else path

    def find_file(self, path):
        """Return the file of the tree for `path`: the exact path or the only one with that ending; else empty."""
        if path not in self._found:
            if len(self._found) > MAX_FILES:
                self._found.clear()
            self._found[path] = self._find_file(path)
        return self._found[path]

    def _find_file(self, path):
        inside = self.make_relative(path)
        if inside and self.has_file(inside):
            return inside
        tail = inside or path.replace("\\", "/").lstrip("./")
        ends = [one for one in self.find_named(tail.rpartition("/")[2]) if ("/" + one).endswith("/" + tail)]
        if len(ends) != 1 and path.startswith("/"):  # from another root: the longest tail that is a file
            parts = path.strip("/").split("/")
            for start in range(1, len(parts)):
                if self.has_file("/".join(parts[start:])):
                    return "/".join(parts[start:])
        return ends[0] if len(ends) == 1 else ""

    def read_text(self, path):
        """Return the content of a file of the tree, cut to MAX_SOURCE_BYTES; empty when it cannot be read."""
        if path not in self._texts:
            if len(self._texts) > 3000:
                self._texts.clear()
            content = read_regular_file(os.path.join(self.root, path), MAX_SOURCE_BYTES)
            self._texts[path] = (content or b"").decode("utf-8", "replace")
        return self._texts[path]


def read_regular_file(path, limit):
    """Return at most `limit` bytes of a regular file; None for links, pipes, devices and unreadable files."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            return file.read(limit)
        except OSError:
            return None


def iterate_files(folder, pattern=None, since=0.0):
    """Yield (path from `folder`, content) of the regular files below it, sorted; at most MAX_FILES and MAX_BYTES.

    Args:
        folder: where to look.
        pattern: a pattern the path must match.
        since: seconds since the epoch; older files are skipped.
    """
    found, total = [], 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if pattern is None or name not in NOT_SOURCES)
        for name in names:
            path = os.path.relpath(os.path.join(parent, name), folder)
            if (pattern is None or pattern.search(path)) and len(found) < MAX_FILES:
                found.append(path)
    for path in sorted(found):
        full_path = os.path.join(folder, path)
        try:
            if os.lstat(full_path).st_mtime < since:
                continue
        except OSError:
            continue
        content = read_regular_file(full_path, min(MAX_FILE_BYTES, MAX_BYTES - total))
        if content is not None:
            total += len(content)
            yield path.encode("utf-8", "replace").decode(), content


def find_compiler_errors(content, pattern, tree):
    """Yield (file of the tree, message) of each line that matches a pattern with groups of these names."""
    for line in iterate_lines(content):
        match = pattern.match(line)
        file = tree.make_relative(match["file"]) if match else ""
        if file:
            yield file, match["message"]


def iterate_lines(content):
    """Yield the lines of a text without colour codes, each cut to MAX_LINE."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    for line in text.split("\n"):
        yield ANSI_CODES.sub("", line[:MAX_LINE]).rstrip("\r")
