"""JUnit XML to a Report. The XML comes from a process that ran foreign code: no entities, no size without end.

Two forms are read. The canonical one, `<testsuites mergemill="1">`, which `harness/reports/` makes of any framework's
report, holds ids verbatim: attributes `file` and `name`. In pytest's and our unittest harness's, ids are made as pytest
prints them, `path/to/test_file.py::Class::name[param]`, whatever the report's own idea of a path is: `classname`
(dots for slashes, classes behind) is resolved against the files that are there.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator
from dataclasses import replace

from backends.testing.outcomes import Outcome, Report, Status

MAX_TESTS = 500_000
CANONICAL = "1"
"""The root's attribute `mergemill` in the canonical form."""

MAX_MESSAGE = 500
"""Characters kept of why a test did not pass."""

_BADNESS = (Status.PASSED, Status.XFAILED, Status.SKIPPED, Status.FAILED, Status.ERROR)
_UNEXPECTED_PASS = "xfail-marked test passes unexpectedly"  # noqa: S105 - what pytest < 4 says of a non-strict xpass


class UnreadableReport(Exception):  # noqa: N818 - a kind of report, and a result for whoever reads it
    """The file is no JUnit report: torn, forged beyond reading, or too large."""


def parse(content: bytes, known_files: Collection[str]) -> Report:
    """The report in `content`.

    Args:
        content: JUnit XML in the canonical form, or as pytest (junit_family xunit1) or our unittest harness writes it.
        known_files: paths of the files in the tree, from its root.

    Raises:
        UnreadableReport: it cannot be read.
    """
    root = _root(content)
    cases = _canonical(root) if root.get("mergemill") == CANONICAL else _pytest(root, known_files)
    outcomes: dict[str, Outcome] = {}
    uncollected: dict[str, str] = {}
    for file, rest, case in cases:
        status, message = _result(case)
        if rest:
            test = f"{file}::{rest}"
            outcome = Outcome(status=status, message=message, seconds=_seconds(case))
            outcomes[test] = _worst(outcomes.get(test), outcome)
        else:
            uncollected[file] = message
    return Report(outcomes=outcomes, uncollected=uncollected)


def _canonical(root: ET.Element) -> Iterator[tuple[str, str, ET.Element]]:
    """(file, rest of the id, row); no rest where the row speaks of a file that could not be collected."""
    for case in _cases(root):
        yield case.get("file", ""), case.get("name", ""), case


def _pytest(root: ET.Element, known_files: Collection[str]) -> Iterator[tuple[str, str, ET.Element]]:
    """As `_canonical`, of pytest's form."""
    resolver = _Resolver(known_files)
    for case in _cases(root):
        if _is_collection(case, _result(case)[1]):
            named = ".".join(part for part in (case.get("classname"), case.get("name")) if part)
            yield resolver.split(named, case.get("file", ""))[0], "", case
        else:
            file, classes = resolver.split(case.get("classname", ""), case.get("file", ""))
            yield file, "::".join([*classes, case.get("name", "")]), case


def _root(content: bytes) -> ET.Element:
    if b"<!DOCTYPE" in content[:4096] or b"<!ENTITY" in content:
        raise UnreadableReport("the report declares entities")
    try:
        return ET.fromstring(content)  # noqa: S314 - entities are refused above, the size is capped
    except (ET.ParseError, ValueError, LookupError) as error:
        raise UnreadableReport(f"the report is not XML: {error}") from error


def _cases(root: ET.Element) -> Iterator[ET.Element]:
    for number, case in enumerate(root.iter("testcase")):
        if number >= MAX_TESTS:
            raise UnreadableReport(f"the report names more than {MAX_TESTS} tests")
        yield case


def _result(case: ET.Element) -> tuple[Status, str]:
    """Status and first line of the reason."""
    found = (Status.PASSED, "")
    for child in case:
        message = _message(child)
        if child.tag == "error":
            return Status.ERROR, message
        if child.tag == "failure":
            found = (Status.FAILED, message)
        elif child.tag == "skipped" and found[0] is Status.PASSED and message != _UNEXPECTED_PASS:
            found = (Status.XFAILED if child.get("type") == "pytest.xfail" else Status.SKIPPED, message)
    return found


def _message(child: ET.Element) -> str:
    text = child.get("message") or child.text or ""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:MAX_MESSAGE]


def _is_collection(case: ET.Element, message: str) -> bool:
    """Whether the row speaks of a file or class that could not be collected, not of a test."""
    return message.startswith(("collection failure", "collection skipped")) or (
        not case.get("classname") and any(child.tag == "error" for child in case)
    )


def _seconds(case: ET.Element) -> float:
    try:
        return float(case.get("time", "0"))
    except ValueError:
        return 0.0


def _worst(old: Outcome | None, new: Outcome) -> Outcome:
    """The worse of two: pytest reports a test twice when it passed and its teardown failed."""
    if old is None:
        return new
    worst = max(old, new, key=lambda outcome: _BADNESS.index(outcome.status))
    return replace(worst, seconds=old.seconds + new.seconds)


class _Resolver:
    """Finds the file a report's `classname` stands for."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = frozenset(known)
        self.by_dots = {_dots(path): path for path in sorted(self.known)}
        self.by_last: dict[str, list[str]] = {}
        for dots in self.by_dots:
            self.by_last.setdefault(dots.rpartition(".")[2], []).append(dots)
        self.cache: dict[tuple[str, str], tuple[str, list[str]]] = {}

    def split(self, classname: str, file: str) -> tuple[str, list[str]]:
        """(path, classes) of `tests.test_a.TestX.Inner`."""
        if (classname, file) not in self.cache:
            self.cache[classname, file] = self._split(classname.split("."), file)
        return self.cache[classname, file]

    def _split(self, parts: list[str], file: str) -> tuple[str, list[str]]:
        prefixes = [(".".join(parts[:n]), parts[n:]) for n in range(len(parts), 0, -1)]
        for dots, classes in prefixes:
            if dots in self.by_dots:
                return self.by_dots[dots], classes
        stem = _dots(file).rpartition(".")[2]
        behind = parts[len(parts) - parts[::-1].index(stem) :] if stem in parts else []
        if file in self.known:
            return file, behind
        for dots, classes in prefixes:  # a root somewhere inside the tree: the only file that ends so
            ends = [d for d in self.by_last.get(dots.rpartition(".")[2], []) if d.endswith(f".{dots}")]
            if len(ends) == 1:
                return self.by_dots[ends[0]], classes
        return (file, behind) if file else ("/".join(parts), [])


def _dots(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
