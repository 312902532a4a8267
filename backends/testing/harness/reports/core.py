"""What all formats share: the results, the tree they are mapped to, and the caps on what is read."""

from __future__ import annotations

import os
import re
import stat
import time
from xml.sax.saxutils import quoteattr

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
"""Statuses, the better first."""

NOT_SOURCES = frozenset((".git", "node_modules", "__pycache__", ".venv", ".tox", ".gradle", "_build", ".hg"))


class Unreadable(Exception):  # noqa: N818 - what the exit code 3 says
    """Nothing that was left can be read as the format."""


COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]")
# What a name says of this one run, and what is put in its place.
UNSTABLE = (
    (re.compile(r" ?[(\[] ?(?:\d+m )?\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds|m|min) ?[)\]]$"), ""),
    (re.compile(r" ?[(\[](?:gw|worker[ -#]?|thread[ -#]?|pid[ :=]?)\d+[)\]]", re.IGNORECASE), ""),
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "0x…"),
    (re.compile(r"(?<=[\w$\]])@[0-9a-f]{5,8}\b(?!\.\w)"), "@…"),
    (re.compile(r"(?:/private)?(?:/var/folders/[\w+/-]+|/(?:var/)?tmp)/[^\s'\"),\]:]+"), "/tmp/…"),  # noqa: S108 - a name, no file
    (re.compile(r"\b(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{4,5}\b"), r"\1:…"),
)


def stable(name):
    """`name` without what differs from run to run, on one line."""
    name = " ".join(COLOURS.sub("", name[: 4 * MAX_NAME]).split())
    for pattern, replacement in UNSTABLE:
        name = pattern.sub(replacement, name)
    return printable(_NOW.sub(_unless_of_now, name))[:MAX_NAME]


# Times as most languages write them: `2026-01-31T12:00:00.123Z`, `Sat Jan 31 2026 12:00:00 GMT+0000 (...)`.
_NOW = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))*"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<word>[A-Z][a-z]{2}) +(?P<date>\d{1,2}) (?P<of>\d{4}) \d\d:\d\d:\d\d"
    r"(?: GMT[+-]\d{4}(?: \([^)]*\))?)?"
)
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _unless_of_now(match):
    """What is put for a time: of the day of the run it is another in every run; of another day it is the test's own."""
    year, month, day = match["year"] or match["of"], match["month"], match["day"] or match["date"]
    number_of = int(month) if month else _MONTHS.index(match["word"]) if match["word"] in _MONTHS else 0
    days = [time.gmtime(time.time() + shift)[:3] for shift in (-86400, 0, 86400)]  # wherever the test thinks it is
    return "\u2026" if (int(year), number_of, int(day)) in days else match.group()


def printable(text):
    """The text without characters that XML cannot hold."""
    if text.isprintable():
        return text
    return "".join(
        c if c in "\t\n" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe" or c > "\uffff" else "?" for c in text
    )


def first_line(text):
    """The first line that says something, without colours."""
    for raw in str(text)[: 8 * MAX_LINE].splitlines():
        line = COLOURS.sub("", raw[:MAX_LINE]).strip()
        if line:
            return printable(line)[:MAX_MESSAGE]
    return ""


def number(value):
    """A float of whatever stands there; 0.0 for what is none."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if 0 <= seconds < 1e9 else 0.0


class Results:
    """What every test came to, in the order told."""

    def __init__(self, tree):
        self.tree = tree
        self.tests = {}
        self.files = {}
        self.seen = {}

    def add(self, file, name, status, message="", seconds=0.0, *, again=False):
        """Take in one test. With `again` a repeated one is the same test, and the worst counts; else another one.

        Args:
            file: path from the tree's root, or what stands for it where the file is not known.
            name: the rest of its id, as the framework says it.
            status: one of ORDER.
            message: why it did not pass.
            seconds: how long it took.
            again: whether the framework reports one test more than once.
        """
        if len(self.tests) >= MAX_TESTS:
            raise Unreadable("more than %d tests" % MAX_TESTS)
        name = stable(str(name).replace(self.tree.root + "/", "")) or "(unnamed)"
        key = (stable(file), name)
        if key in self.tests and again:
            old = self.tests[key]
            worst = status if ORDER.index(status) > ORDER.index(old[0]) else old[0]
            self.tests[key] = (worst, first_line(message) if worst != old[0] else old[1], old[2] + seconds)
            return
        if not again:
            key = self._unused(key)
        self.tests[key] = (status, first_line(message), seconds)

    def _unused(self, key):
        """`key`, or the next numbered one where there is a test of that name."""
        count = self.seen.get(key, 0) + 1
        free = key if count == 1 else (key[0], "%s #%d" % (key[1], count))
        while free in self.tests:
            count += 1
            free = (key[0], "%s #%d" % (key[1], count))
        self.seen[key] = count
        return free

    def uncollected(self, file, message="", skipped=False):
        """A file of which the framework could not tell the tests."""
        self.files.setdefault(stable(file), (skipped, first_line(message)))

    def __bool__(self):
        return bool(self.tests or self.files)

    def to_xml(self):
        """The canonical report."""
        rows = ["<?xml version='1.0' encoding='utf-8'?>\n<testsuites mergemill=\"1\">\n"]
        for (file, name), (status, message, seconds) in self.tests.items():
            rows.append(_row(file, name, status, message, seconds))
        for file, (skipped, message) in self.files.items():
            kind = "collection skipped: " if skipped else "collection failure: "
            rows.append(_row(file, "", "skipped" if skipped else "error", kind + message, 0.0))
        rows.append("</testsuites>\n")
        return "".join(rows).encode("utf-8", "replace")


_TAGS = {"failed": "failure", "error": "error", "skipped": "skipped", "xfailed": 'skipped type="pytest.xfail"'}


def _row(file, name, status, message, seconds):
    start = '<testcase file=%s name=%s time="%.3f"' % (quoteattr(file), quoteattr(name), seconds)
    if status == "passed":
        return start + "/>\n"
    return "%s><%s message=%s/></testcase>\n" % (start, _TAGS[status], quoteattr(message))


class Tree:
    """The project's files: what a report's names are mapped to."""

    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.given = os.path.abspath(root)
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

    def named(self, name):
        """Paths of the files called so."""
        return self._by_name.get(name, []) if self.files else []

    def has(self, path):
        """Whether there is such a file."""
        return path in self.named(path.rpartition("/")[2])

    def relative(self, path):
        """`path` from the root; empty when it does not lie in the tree. What is no path comes back empty, too."""
        path = path.replace("\\", "/")
        path = path.removeprefix("file://")
        if not path or len(path) > 4096 or "\n" in path or "\0" in path:
            return ""
        for root in (self.root, self.given):
            if path.startswith(root + "/"):
                path = path[len(root) + 1 :]
                break
        path = os.path.normpath(path)
        if path.startswith("/"):
            real = os.path.realpath(path)
            path = real[len(self.root) + 1 :] if real.startswith(self.root + "/") else path
        return "" if path.startswith(("/", "..")) or path == "." else path

    def found(self, path):
        """The file of the tree that `path` means: as it stands, or the only one that ends so; else empty."""
        if path not in self._found:
            if len(self._found) > MAX_FILES:
                self._found.clear()
            self._found[path] = self._find(path)
        return self._found[path]

    def _find(self, path):
        inside = self.relative(path)
        if inside and self.has(inside):
            return inside
        tail = inside or path.replace("\\", "/").lstrip("./")
        ends = [one for one in self.named(tail.rpartition("/")[2]) if ("/" + one).endswith("/" + tail)]
        if len(ends) != 1 and path.startswith("/"):  # from another place: the longest tail that is a file
            parts = path.strip("/").split("/")
            for start in range(1, len(parts)):
                if self.has("/".join(parts[start:])):
                    return "/".join(parts[start:])
        return ends[0] if len(ends) == 1 else ""

    def text(self, path):
        """Content of a file of the tree, cut to MAX_SOURCE_BYTES; empty when it cannot be read."""
        if path not in self._texts:
            if len(self._texts) > 3000:
                self._texts.clear()
            content = read_regular(os.path.join(self.root, path), MAX_SOURCE_BYTES)
            self._texts[path] = (content or b"").decode("utf-8", "replace")
        return self._texts[path]


def read_regular(path, limit):
    """At most `limit` bytes of a regular file; None for links, pipes, devices and what cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            return file.read(limit) if stat.S_ISREG(os.fstat(handle).st_mode) else None
        except OSError:
            return None


def sources(folder, wanted=None, since=0.0):
    """(path from `folder`, content) of the regular files below it, sorted; at most MAX_FILES and MAX_BYTES.

    Args:
        folder: where to look.
        wanted: a pattern the path must match.
        since: seconds since the epoch; older files are passed over.
    """
    found, total = [], 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if wanted is None or name not in NOT_SOURCES)
        for name in names:
            path = os.path.relpath(os.path.join(place, name), folder)
            if (wanted is None or wanted.search(path)) and len(found) < MAX_FILES:
                found.append(path)
    for path in sorted(found):
        whole = os.path.join(folder, path)
        try:
            if os.lstat(whole).st_mtime < since:
                continue
        except OSError:
            continue
        content = read_regular(whole, min(MAX_FILE_BYTES, MAX_BYTES - total))
        if content is not None:
            total += len(content)
            yield path.encode("utf-8", "replace").decode(), content


def lines(content):
    """Lines of a text, colours gone, each cut to MAX_LINE."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    for line in text.split("\n"):
        yield COLOURS.sub("", line[:MAX_LINE]).rstrip("\r")
