"""JSON of jest and vitest, and of mocha's json reporter; JUnit XML and text of bun."""

from __future__ import annotations

import json
import re
from itertools import islice

from .core import ANSI_CODES, iterate_lines, parse_number
from .xunit import find_named_file, parse_status, parse_xml

_STATUS = {
    "passed": "passed",
    "failed": "failed",
    "pending": "skipped",
    "skipped": "skipped",
    "todo": "xfailed",
    "disabled": "skipped",
    "focused": "passed",
}


_ASSERTION = re.compile(r"(?:\w*Error: )?(?:(?:expect|assert)[(.]|Snapshot `)|\w*Assert\w*\b|Failed: ")
"""Begins the stack of an error of an assertion; others begin with `TypeError: ` or `thrown: `."""


def convert_jest(outputs, tree, results):
    """Convert `testResults`, one entry per file; of a file that ran in several projects the worst status is kept."""
    for document in find_documents(outputs, "testResults"):
        for entry in select_objects(document.get("testResults")):
            if "testFilePath" in entry and "assertionResults" not in entry:
                _convert_early_vitest_test(entry, tree, results)
            else:
                _convert_jest_file(entry, tree, results)


def _convert_early_vitest_test(entry, tree, results):
    """Convert an entry of early vitest, seen in 0.7: one test, without the names of its suites."""
    status = {"pass": "passed", "fail": "failed"}.get(str(entry.get("status")), "skipped")
    performance = entry.get("perfStats") if isinstance(entry.get("perfStats"), dict) else {}
    seconds = parse_number(performance.get("runtime")) / 1000
    file, message = find_path(entry.get("testFilePath"), tree), str(entry.get("failureMessage") or "")
    by_assertion = _is_assertion(message)
    results.add(file, str(entry.get("displayName", "")), status, message, seconds, by_assertion=by_assertion)


def _is_assertion(stack):
    return bool(_ASSERTION.match(ANSI_CODES.sub("", stack[:1000]).strip()))


def _convert_jest_file(entry, tree, results):
    file = find_path(entry.get("name"), tree)
    tests = select_objects(entry.get("assertionResults"))
    message = entry.get("message") or entry.get("failureMessage") or ""
    if not tests and entry.get("status") == "failed":
        results.add_uncollected(file, _strip_heading(message) or "the file has no test")
    counts = {}
    for test in tests:
        titles = test.get("ancestorTitles")
        titles = [title for title in titles if title] if isinstance(titles, list) else []
        name = " > ".join(str(part) for part in [*titles, test.get("title", "")])
        counts[name] = counts.get(name, 0) + 1
        messages = test.get("failureMessages")
        text = str(messages[0]) if isinstance(messages, list) and messages else ""
        status = _STATUS.get(str(test.get("status")), "skipped")
        seconds = parse_number(test.get("duration")) / 1000
        details = select_objects(test.get("failureDetails"))[:1]
        by_assertion = _is_assertion(text) or any("matcherResult" in detail for detail in details)
        identity = (str(entry.get("name")), name, counts[name])
        results.add(file, name, status, text, seconds, identity=identity, by_assertion=by_assertion)


def _strip_heading(message):
    """Return the text after jest's bullet `● Test suite failed to run`."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(message)[:20_000])
    return re.sub(r"^\s*●[^\n]*\n", "", text.lstrip("\n")).strip()


def convert_mocha(outputs, tree, results):
    """Convert `tests`, and `failures`, which include hooks; the name is `fullTitle`."""
    for document in find_documents(outputs, "stats"):
        skipped = {json.dumps(row, sort_keys=True) for row in select_objects(document.get("pending"))}
        names = set()
        for row in select_objects(document.get("tests")):
            file, name = find_path(row.get("file"), tree), str(row.get("fullTitle", row.get("title", "")))
            names.add((file, name))
            error = row.get("err") if isinstance(row.get("err"), dict) else {}
            status = "failed" if error else "passed"
            if json.dumps(row, sort_keys=True) in skipped:
                status = "skipped"
            seconds, by_assertion = parse_number(row.get("duration")) / 1000, _is_error_of_assertion(error)
            results.add(file, name, status, _extract_error(error), seconds, by_assertion=by_assertion)
        for row in select_objects(document.get("failures")):
            file, name = find_path(row.get("file"), tree), str(row.get("fullTitle", ""))
            if (file, name) not in names:
                error = row.get("err") if isinstance(row.get("err"), dict) else {}
                results.add(file, name, "error", _extract_error(error), identity=(file, name))


def _extract_error(error):
    return str(error.get("message") or error.get("stack") or ("failed" if error else ""))


def _is_error_of_assertion(error):
    """Return whether an error of mocha's report is of an assertion: by its values, or by the name in its stack."""
    has_values = "matcherResult" in error or {"actual", "expected"} <= set(error)
    return has_values or _is_assertion(str(error.get("name", ""))) or _is_assertion(str(error.get("stack", "")))


_ERROR_OF_BUN = re.compile(r"^(?:\w*[eE]rror): (?P<message>.+)")


_END_OF_BUN = re.compile(r"^\((?P<end>pass|fail|skip|todo)\) (?P<name>.+?)(?: \[[\d.]+m?s\])?$")


def convert_bun(outputs, tree, results):
    """Convert XML of `bun test`, whose outermost suite is the file, and its text, which alone names broken files."""
    reported = set()
    exceptions = {
        test for name, content in outputs if name.endswith(".txt") for test in _find_exceptions(content, tree)
    }
    for _name, content in outputs:
        root = parse_xml(content)
        for case in root.find_all("testcase") if root is not None else ():
            file = find_named_file(case, tree) or "tests"
            reported.add(file)
            suites = [suite.get("name") for suite in case.iterate_ancestors() if suite.tag == "testsuite"]
            name = " > ".join([*reversed(suites[:-1]), case.get("name")])
            status, message = parse_status(case)
            status = "xfailed" if message == "TODO" else status
            seconds, by_assertion = parse_number(case.get("time")), (file, name) not in exceptions
            results.add(file, name, status, message, seconds, by_assertion=by_assertion)
    for name, content in outputs:
        if name.endswith(".txt"):
            for file, message in _find_broken_files(content, tree):
                if file not in reported:
                    results.add_uncollected(file, message)


def _find_exceptions(content, tree):
    """Yield (file, name) of tests above whose line an error is printed that is none of an assertion."""
    file, error = "", ""
    for line in iterate_lines(content):
        heading = tree.find_file(line[:-1]) if line.endswith(":") else ""
        end = _END_OF_BUN.match(line)
        if heading:
            file, error = heading, ""
        elif end:
            if end["end"] == "fail" and error and not _is_assertion(error):
                yield file, end["name"]
            error = ""
        elif not error and re.match(r"\w*[eE]rror(?: \[\w+\])?: ", line):
            error = re.sub(r"^error: ", "Error: ", line)


def _find_broken_files(content, tree):
    """Yield (file, message) of errors between tests; a line `FILE:` stands before what each file prints."""
    file, is_broken = "", False
    for line in iterate_lines(content):
        heading = tree.find_file(line[:-1]) if line.endswith(":") else ""
        if heading:
            file, is_broken = heading, False
        elif line.startswith("# Unhandled error between tests"):
            is_broken = True
        elif is_broken and file:
            match = _ERROR_OF_BUN.match(line)
            if match:
                yield file, match["message"]
                is_broken = False


def find_path(name, tree):
    """Return the tree's file for a path in a report."""
    name = name if isinstance(name, str) else ""
    return tree.find_file(name) or tree.make_relative(name) or "tests"


def select_objects(value):
    """Return the objects of a list; empty for any other value."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def find_documents(outputs, key):
    """Yield the JSON objects that have `key`, also from files that mix them with other text."""
    for _name, content in outputs:
        document = parse_json(content)
        found = [document]
        if document is None and b'"%s"' % key.encode() in content:
            found = _find_embedded(content.decode("utf-8", "replace"), key)
        for one in found:
            if isinstance(one, dict) and key in one:
                yield one


def parse_json(content):
    """Return the JSON document, or None."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _find_embedded(text, key):
    """Yield objects printed among other text, at the start of a line or with `key` as their first key."""
    decoder, end = json.JSONDecoder(), 0
    for match in islice(re.finditer(r'(?m)^\{(?=\s*")|\{(?=\s*"%s")' % key, text), 1000):
        if match.start() < end:
            continue
        try:
            document, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield document
