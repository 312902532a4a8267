"""Reports with one test per line or row: our own reporters, RSpec's JSON, the text output of minitest and ExUnit."""

from __future__ import annotations

import json
import re

from .core import ORDER, iterate_lines, parse_number
from .javascript import find_documents, find_path, select_objects


def convert_lines(outputs, tree, results):
    """Convert JSON lines of our own reporters; a row with `uncollected` instead of `name` is a file that failed,
    or with `skipped` one that loaded without defining a test.

    Where a framework has one status for assertions and exceptions, `assertion` is false for a failure by an exception.

    Only files named `*.jsonl` are read: a test may print lines of this form, and others may hold its output.
    """
    _convert_rows(outputs, tree, results)


def _convert_rows(outputs, tree, results, exception=None):
    """Convert the rows of JSON lines. `exception`: pattern of the messages of failures by an exception."""
    for name, content in outputs:
        for line in content.split(b"\n") if name.endswith(".jsonl") else ():
            if line.startswith(b"{") and len(line) < 1_000_000:
                _convert_row(line, tree, results, exception)


def _has_reporter(outputs):
    """Return whether one of our reporters ran, so that no result has to be read from text."""
    return any(name.endswith((".jsonl", "ruby_reporter.rb", "formatter.exs")) for name, _ in outputs)


def _convert_row(line, tree, results, exception):
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(row, dict) or not isinstance(row.get("file"), str):
        return
    file = find_path(row["file"], tree) if row["file"] else "tests"
    if "uncollected" in row:
        skipped = row.get("skipped") is True  # a file with a test is collected nevertheless
        results.add_uncollected(file, row["uncollected"], skipped=skipped, printed=skipped)
    elif row.get("status") in ORDER and isinstance(row.get("name"), str):
        message, seconds = str(row.get("message", "")), parse_number(row.get("seconds"))
        by_assertion = row.get("assertion") is not False and not (exception and exception.match(message))
        results.add(file, row["name"], row["status"], message, seconds, by_assertion=by_assertion)


# ---------------------------------------------------------------------------------------------------------- RSpec

_STATUS = {"passed": "passed", "failed": "failed", "pending": "skipped"}
_EXPECTATION = re.compile(r"^RSpec::(?:Expectations|Mocks)::|PendingExampleFixedError|Assert|Expectation")
"""Class of an exception by which an example fails that does not hold."""
_LOADING = re.compile(
    r"(?:error occurred while loading|Error loading|could not load) (\S+?)\.?(?: - .*)?$", re.IGNORECASE
)


def convert_rspec(outputs, tree, results):
    """Convert `examples` into the file that runs them, even where the code is shared, and files that failed to load."""
    for document in find_documents(outputs, "examples"):
        for row in select_objects(document["examples"]):
            ran_in = str(row.get("id", "")).partition("[")[0]
            file = tree.find_file(ran_in) or find_path(row.get("file_path"), tree)
            error = row.get("exception") if isinstance(row.get("exception"), dict) else {}
            message = error.get("message") or row.get("pending_message") or ""
            status = _STATUS.get(str(row.get("status")), "error")
            if status == "skipped" and error:
                status = "xfailed"
            name = str(row.get("full_description") or row.get("description") or "")
            name = re.sub(
                r"example at \S+:\d+$", "(example)", name
            )  # an example without a description; line numbers change
            seconds = parse_number(row.get("run_time"))
            by_assertion = bool(_EXPECTATION.search(str(error.get("class"))))
            results.add(file, name, status, message, seconds, by_assertion=by_assertion)
        messages = document.get("messages")
        for message in messages if isinstance(messages, list) else []:
            _add_rspec_message(str(message)[:20_000], tree, results)


def _add_rspec_message(message, tree, results):
    text = [line.strip() for line in iterate_lines(message) if line.strip()]
    match = _LOADING.search(text[0]) if text else None
    if match and tree.find_file(match[1]):
        details = [line for line in text[1:] if not line.startswith(("#", "Failure/Error", "rspec "))]
        kind = next((line for line in details if re.match(r"[A-Z][\w:]*(Error|Exception)?:?", line)), "")
        if kind.endswith(":"):
            kind += " " + "".join(details[details.index(kind) + 1 :][:1])
        results.add_uncollected(tree.find_file(match[1]), kind or (details or ["the file could not be loaded"])[0])


# -------------------------------------------------------------------------------------------- minitest, test-unit

_MINITEST = re.compile(r"^(?P<suite>[A-Z][^#]*|\S[^#]*)#(?P<test>test_.*) = (?P<seconds>[\d.]+) s = (?P<end>[.FESR])$")
_FAILURE = re.compile(r"^\s*\d+\) (Failure|Error|Skipped):$")
_RUBY_TEST = re.compile(r"(^|/)(tests?|spec)/.*\.rb$|(_test|_spec|/test_\w+)\.rb$")
_RUBY_CLASS = re.compile(r"^[ \t]*class\s+([A-Z][\w:]*)", re.MULTILINE)
_RUBY_ERROR = re.compile(
    r"^(?P<place>[^\s:].*?):\d+:(?:in .{1,200}?': )? ?(?P<message>.*\((?:\w+::)*\w*Error\)|syntax error.*)"
)
_RUBY_FROM = re.compile(r"^\s*(?:\d+: )?from (\S+?):\d+:in ")
_STATUS_BY_LETTER = {".": "passed", "F": "failed", "E": "error", "S": "skipped"}


def convert_minitest(outputs, tree, results):
    """Convert the output of our reporter; without it the verbose text, whose classes are searched in the tree."""
    convert_lines(outputs, tree, results)
    texts = [content for name, content in outputs if name.endswith(".txt")]
    for content in texts:
        _add_ruby_failures(list(iterate_lines(content)), tree, results)
    if not _has_reporter(outputs):
        _convert_verbose(texts, tree, results)


def _add_ruby_failures(text, tree, results):
    """Add a file that ended the run when it was loaded: Ruby's error names it, or a line of the backtrace."""
    message = ""
    for line in text:
        error, came_from = _RUBY_ERROR.match(line), _RUBY_FROM.match(line)
        if error:
            message = error["message"]
            place = tree.find_file(error["place"].rpartition(" ")[2])
        elif came_from and message:
            place = tree.find_file(came_from[1])
        else:
            place = message = ""
        if place and _RUBY_TEST.search(place):
            results.add_uncollected(place, message, printed=True)
            message = ""


def _convert_verbose(texts, tree, results):
    """Convert the text of minitest's `-v`."""
    ruby = [path for path in tree.files if _RUBY_TEST.search(path)]
    classes = {}
    for path in ruby[:20_000]:
        for match in _RUBY_CLASS.finditer(tree.read_text(path)):
            classes.setdefault(match[1], []).append(path)
    for content in texts:
        text = list(iterate_lines(content))
        messages = dict(_find_ruby_messages(text))
        for line in text:
            match = _MINITEST.match(line)
            if match:
                file = _find_ruby_file(classes, match["suite"], match["test"], tree)
                name = match["suite"] + "#" + match["test"]
                status = _STATUS_BY_LETTER.get(match["end"], "error")
                seconds = parse_number(match["seconds"])
                results.add(file, name, status, messages.get(name, ""), seconds, identity=(file, name))


def _find_ruby_messages(text):
    for place, line in enumerate(text):
        if _FAILURE.match(line) and place + 2 < len(text):
            named = re.match(r"^\s*(\S.*?)(?: \[.*\])?:$", text[place + 1])
            if named:
                yield named[1], text[place + 2]


def _find_ruby_file(classes, suite, test, tree):
    """Return the file of class `A::BTest`; of several files the one that holds the test's name."""
    paths = classes.get(suite) or classes.get(suite.split("::")[-1]) or []
    plain = test[len("test_") :]
    naming = [
        path
        for path in paths
        if "def " + test in tree.read_text(path) or plain.replace("_", " ") in tree.read_text(path)
    ]
    return (naming or paths or [suite])[0]


# --------------------------------------------------------------------------------------------------------- ExUnit

_MODULE = re.compile(r"^(?P<module>[A-Z][\w.]*)(?: \[(?P<file>\S+\.exs?)\])?$")
_TRACE_LINE = re.compile(
    r"^\s+\* (?P<name>.+?)(?: \((?:(?P<ms>[\d.]+)ms|(?P<word>skipped|excluded|invalid))\))?(?: \[L#\d+\])?$"
)
_FAILED = re.compile(r"^\s{1,4}\d+\) (?P<name>.+) \((?P<module>[\w.]+)\)$")
_INVALID = re.compile(r"^\s{1,4}\d+\) (?P<module>[\w.]+): failure on (?P<what>setup_all callback)")
_EXUNIT_SUMMARY = re.compile(r"^\s*\d+ (?:doctest|propert|test).*\b\d+ failures?\b")
_ELIXIR_EXCEPTION = re.compile(r"\s*\*\* \(")
"""Begins the message of a failure by an exception, such as `** (RuntimeError) no`; assertions have only a message."""
_BROKEN = re.compile(r"^\*\* \((\w+(?:\.\w+)*)\) (?:(\S+\.exs?):\d+(?::\d+)?: )?(.*)$")


def convert_exunit(outputs, tree, results):
    """Convert the output of our formatter, or else the text of `mix test --trace`, and files that did not compile."""
    _convert_rows(outputs, tree, results, _ELIXIR_EXCEPTION)
    for content in [content for name, content in outputs if name.endswith(".txt")]:
        text = list(iterate_lines(content))
        if not _has_reporter(outputs):
            _convert_trace(text, tree, results)
        for line in text:
            match = _BROKEN.match(line)
            if match and match[2] and tree.find_file(match[2]):
                results.add_uncollected(tree.find_file(match[2]), match[1] + ": " + match[3], printed=True)


def _convert_trace(text, tree, results):
    tests, module, file, failing = {}, "", "", None
    for line in (line.rpartition("\r")[2] for line in text):
        head, test, failed = _MODULE.match(line), _TRACE_LINE.match(line), _FAILED.match(line)
        if head:
            module, file = head["module"], head["file"] or head["module"]
        elif failed:
            failing = (failed["module"], failed["name"])
            tests.setdefault(failing, [file, "failed", "", 0.0])[1] = "failed"
        elif _INVALID.match(line):
            broken = _INVALID.match(line)
            for key in [key for key in tests if key[0] == broken["module"] and tests[key][1] == "passed"]:
                tests[key][1:3] = "error", broken["what"] + " failed"
        elif test and module:
            status = "skipped" if test["word"] else "passed"
            tests.setdefault((module, test["name"]), [file, status, "", 0.0])[3] = parse_number(test["ms"]) / 1000
        elif failing and line.strip() and not re.match(r"^\s+\S+\.exs?:\d+", line) and not tests[failing][2]:
            tests[failing][2] = line.strip()
    if tests and not any(_EXUNIT_SUMMARY.match(line) for line in text):
        last = tests[next(reversed(tests))]  # a failure is printed after its test
        last[1:3] = "error", "the run did not end"
    for (module, name), (file, status, message, seconds) in tests.items():
        path = tree.find_file(file) or file
        detail = message if status != "passed" else ""
        by_assertion = not _ELIXIR_EXCEPTION.match(detail)
        results.add(path, module + " " + name, status, detail, seconds, by_assertion=by_assertion)
