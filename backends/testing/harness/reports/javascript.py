"""JSON of jest and vitest, and of mocha's json reporter."""

from __future__ import annotations

import json
import re
from itertools import islice

from .core import number

_STATUS = {"passed": "passed", "failed": "failed", "pending": "skipped", "skipped": "skipped", "todo": "xfailed",
           "disabled": "skipped", "focused": "passed"}  # fmt: skip


def jest(left, tree, results):
    """`testResults`: one entry a file; a file that ran in several projects counts once, its worst."""
    for document in documents(left, "testResults"):
        for entry in rows(document.get("testResults")):
            _jest_file(entry, tree, results)


def _jest_file(entry, tree, results):
    file = path_of(entry.get("name"), tree)
    tests = rows(entry.get("assertionResults"))
    message = entry.get("message") or entry.get("failureMessage") or ""
    if not tests and entry.get("status") == "failed":
        results.uncollected(file, _without_heading(message) or "the file has no test")
    counts = {}
    for test in tests:
        titles = test.get("ancestorTitles")
        titles = [title for title in titles if title] if isinstance(titles, list) else []
        name = " > ".join(str(part) for part in [*titles, test.get("title", "")])
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            name += " #%d" % counts[name]
        messages = test.get("failureMessages")
        text = str(messages[0]) if isinstance(messages, list) and messages else ""
        status = _STATUS.get(str(test.get("status")), "skipped")
        results.add(file, name, status, text, number(test.get("duration")) / 1000, again=True)


def _without_heading(message):
    """What follows jest's bullet `● Test suite failed to run`."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(message)[:20_000])
    return re.sub(r"^\s*●[^\n]*\n", "", text.lstrip("\n")).strip()


def mocha(left, tree, results):
    """`tests` beside `failures`, which also names hooks; titles are joined as `fullTitle` has them."""
    for document in documents(left, "stats"):
        skipped = {json.dumps(row, sort_keys=True) for row in rows(document.get("pending"))}
        names = set()
        for row in rows(document.get("tests")):
            file, name = path_of(row.get("file"), tree), str(row.get("fullTitle", row.get("title", "")))
            names.add((file, name))
            error = row.get("err") if isinstance(row.get("err"), dict) else {}
            status = "failed" if error else "passed"
            if json.dumps(row, sort_keys=True) in skipped:
                status = "skipped"
            results.add(file, name, status, _said(error), number(row.get("duration")) / 1000)
        for row in rows(document.get("failures")):
            file, name = path_of(row.get("file"), tree), str(row.get("fullTitle", ""))
            if (file, name) not in names:
                error = row.get("err") if isinstance(row.get("err"), dict) else {}
                results.add(file, name, "error", _said(error), again=True)


def _said(error):
    return str(error.get("message") or error.get("stack") or ("failed" if error else ""))


def path_of(name, tree):
    """The file that a report names."""
    name = name if isinstance(name, str) else ""
    return tree.found(name) or tree.relative(name) or "tests"


def rows(value):
    """The objects of a list; nothing of what is none."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def documents(left, key):
    """The JSON objects with `key` in the files, also where other text stands around them."""
    for _name, content in left:
        document = load(content)
        found = [document]
        if document is None and b'"%s"' % key.encode() in content:
            found = _embedded(content.decode("utf-8", "replace"), key)
        for one in found:
            if isinstance(one, dict) and key in one:
                yield one


def load(content):
    """A JSON document, or None."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _embedded(text, key):
    """The objects printed among other text, at the start of a line or with `key` as their first key."""
    decoder, end = json.JSONDecoder(), 0
    for match in islice(re.finditer(r'(?m)^\{(?=\s*")|\{(?=\s*"%s")' % key, text), 1000):
        if match.start() < end:
            continue
        try:
            document, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield document
