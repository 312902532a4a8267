"""Parser of JUnit XML. A process that ran untrusted code wrote the XML: entities are rejected and sizes are limited.

Two forms are read. The canonical form, `<testsuites mergemill="1">`, is what `harness/reports/` converts reports of any
framework to; it has test ids verbatim, in the attributes `file` and `name`. In the form of pytest and of the unittest
harness the id is built as pytest prints it, `path/to/test_file.py::Class::name[param]`: `classname` (a dotted path,
then classes) is resolved against the files of the tree, because runners disagree about the root of paths.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus

MAX_TESTS = 500_000
MAX_ELEMENTS, MAX_DEPTH = 5_000_000, 1_000
MAX_CLASSNAME = 2_000
MAX_CLASSNAME_PARTS = 100
MAX_TEXT = 64 * 1024
"""Characters read of a text to find its first line."""
CANONICAL_VERSION = "1"
"""The root's attribute `mergemill` in the canonical form."""

MAX_MESSAGE = 500
"""Characters kept of the reason why a test did not pass."""

_SEVERITY = (
    OutcomeStatus.PASSED,
    OutcomeStatus.XFAILED,
    OutcomeStatus.SKIPPED,
    OutcomeStatus.FAILED,
    OutcomeStatus.ERROR,
)
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]{6,16}\b")
"""An address in Python's form of an object: `<X object at 0x7f12ab34cd56>`."""
_UNEXPECTED_PASS = "xfail-marked test passes unexpectedly"  # noqa: S105 - of pytest before 4, non-strict xpass


class UnreadableReportError(Exception):
    """The file is no JUnit report: truncated, malformed or too large."""


def parse_junit(content: bytes, known_files: Collection[str]) -> EvaluationReport:
    """Return the report in `content`.

    Args:
        content: JUnit XML in the canonical form, or that of pytest (junit_family xunit1) and of the unittest harness.
        known_files: paths of the files in the tree, from its root.

    Raises:
        UnreadableReportError: the content cannot be read.
    """
    reader = _read_cases(content)
    cases = reader.cases if reader.is_canonical else _resolve_pytest(reader.cases, known_files)
    outcomes: dict[str, Outcome] = {}
    uncollected: dict[str, str] = {}
    for case in cases:
        if case.name:
            test = f"{case.file}::{case.name}"
            outcome = Outcome(status=case.status, message=case.message, seconds=case.seconds)
            outcomes[test] = _merge_outcomes(outcomes.get(test), outcome)
        elif case.file or case.message:  # pytest adds a row without any name when it is interrupted
            uncollected[case.file] = case.message
    return EvaluationReport(outcomes=outcomes, uncollected=uncollected)


@dataclass(slots=True)
class _Case:
    """One row. `name` becomes the rest of the id, which is empty for a file that could not be collected."""

    classname: str
    name: str
    file: str
    seconds: float
    status: OutcomeStatus = OutcomeStatus.PASSED
    message: str = ""
    has_error: bool = False


class _CaseReader:
    """Target of an XML parser that keeps rows and no tree, so that memory is bounded by the size of what it keeps."""

    def __init__(self) -> None:
        self.cases: list[_Case] = []
        self.is_canonical = False
        self._depth = self._elements = self._case_depth = 0
        self._case: _Case | None = None
        self._child: dict[str, str] = {}
        self._text: list[str] = []
        self._room = 0

    def doctype(self, *_: str | None) -> None:
        raise UnreadableReportError("the report declares a document type")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > MAX_ELEMENTS or self._depth > MAX_DEPTH:
            raise UnreadableReportError(f"the report has more than {MAX_ELEMENTS} elements, or too deep ones")
        if self._depth == 1:
            self.is_canonical = attributes.get("mergemill") == CANONICAL_VERSION
        if self._case is None:
            if tag == "testcase":
                self._start_case(attributes)
        elif self._depth == self._case_depth + 1:
            self._child, self._text, self._room = attributes, [], MAX_TEXT
        else:
            self._room = 0  # only text before the first inner element counts

    def _start_case(self, attributes: dict[str, str]) -> None:
        if len(self.cases) >= MAX_TESTS:
            raise UnreadableReportError(f"the report names more than {MAX_TESTS} tests")
        classname, name, file = (attributes.get(key, "") for key in ("classname", "name", "file"))
        self._case = _Case(classname, name, file, _parse_seconds(attributes.get("time", "0")))
        self._case_depth = self._depth

    def data(self, text: str) -> None:
        if self._room > 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def end(self, tag: str) -> None:
        if self._case is not None and self._depth == self._case_depth + 1:
            self._end_child(self._case, tag)
        elif self._case is not None and self._depth == self._case_depth:
            self.cases.append(self._case)
            self._case = None
        self._depth -= 1

    def _end_child(self, case: _Case, tag: str) -> None:
        message = _extract_message(self._child.get("message") or "".join(self._text))
        self._room = 0
        if case.has_error:
            return
        if tag == "error":
            case.status, case.message, case.has_error = OutcomeStatus.ERROR, message, True
        elif tag == "failure":
            case.status, case.message = OutcomeStatus.FAILED, message
        elif tag == "skipped" and case.status is OutcomeStatus.PASSED and message != _UNEXPECTED_PASS:
            is_expected = self._child.get("type") == "pytest.xfail"
            case.status, case.message = OutcomeStatus.XFAILED if is_expected else OutcomeStatus.SKIPPED, message


def _read_cases(content: bytes) -> _CaseReader:
    reader = _CaseReader()
    try:
        parser = ET.XMLParser(target=reader)  # noqa: S314 - document types are rejected, the size is capped
        parser.feed(content)
        parser.close()
    except (ET.ParseError, ValueError, LookupError) as error:
        raise UnreadableReportError(f"the report is not XML: {error}") from error
    return reader


def _resolve_pytest(cases: Iterable[_Case], known_files: Collection[str]) -> Iterator[_Case]:
    """Yield the rows of pytest's form as the canonical form has them."""
    resolver, names = _ClassnameResolver(known_files), _UniqueNames()
    for case in cases:
        if _is_collection_failure(case):
            named = ".".join(part for part in (case.classname, case.name) if part)
            yield replace(case, file=resolver.resolve(named, case.file)[0], name="")
        else:
            file, classes = resolver.resolve(case.classname, case.file)
            yield replace(case, file=file, name=names.find_name(case, file, "::".join([*classes, case.name])))


def _extract_message(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:MAX_MESSAGE]


def _is_collection_failure(case: _Case) -> bool:
    """Return whether the row is for a file or class that could not be collected, not for a test."""
    return case.message.startswith(("collection failure", "collection skipped")) or (
        not case.classname and case.has_error
    )


def _parse_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _merge_outcomes(old: Outcome | None, new: Outcome) -> Outcome:
    """Return the worse of two outcomes: pytest reports a test twice when it passed and its teardown failed."""
    if old is None:
        return new
    worst = max(old, new, key=lambda outcome: _SEVERITY.index(outcome.status))
    return replace(worst, seconds=old.seconds + new.seconds)


class _UniqueNames:
    """Names of tests without addresses of objects; different tests of one name are numbered."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str, str], str] = {}
        self.counts: dict[str, int] = {}

    def find_name(self, case: _Case, file: str, name: str) -> str:
        """Return the name of a row's test; rows of equal classname, file and name are of one test."""
        key = (case.classname, case.file, case.name)
        if key not in self.names:
            free = stable = _ADDRESS.sub("0x…", name)
            while f"{file}::{free}" in self.counts:
                self.counts[f"{file}::{stable}"] += 1
                free = f"{stable} #{self.counts[f'{file}::{stable}']}"
            self.counts[f"{file}::{free}"] = 1
            self.names[key] = free
        return self.names[key]


class _ClassnameResolver:
    """Map from a report's `classname` to the file of the tree and the classes in it."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = frozenset(known)
        self.by_dots = {_to_dotted(path): path for path in sorted(self.known)}
        self.reversed = sorted(dots[::-1] for dots in self.by_dots)
        self.cache: dict[tuple[str, str], tuple[str, list[str]]] = {}

    def resolve(self, classname: str, file: str) -> tuple[str, list[str]]:
        """Return (path, classes) of `tests.test_a.TestX.Inner`."""
        if (classname, file) not in self.cache:
            self.cache[classname, file] = self._resolve(classname.split("."), file)
        return self.cache[classname, file]

    def _resolve(self, parts: list[str], file: str) -> tuple[str, list[str]]:
        if sum(map(len, parts)) > MAX_CLASSNAME or len(parts) > MAX_CLASSNAME_PARTS:
            return file, parts
        prefixes = [(".".join(parts[:n]), parts[n:]) for n in range(len(parts), 0, -1)]
        for dots, classes in prefixes:
            if dots in self.by_dots:
                return file if file in self.known and dots == _to_dotted(file) else self.by_dots[dots], classes
        stem = _to_dotted(file).rpartition(".")[2]
        behind = parts[len(parts) - parts[::-1].index(stem) :] if stem in parts else []
        if file in self.known:
            return file, behind
        for dots, classes in prefixes:  # the root is a subfolder of the tree: the only file with this ending
            if found := self._find_only_ending(f".{dots}"):
                return self.by_dots[found], classes
        return (file, behind) if file else ("/".join(parts), [])

    def _find_only_ending(self, ending: str) -> str | None:
        """Return the only dotted path with an ending."""
        backwards = ending[::-1]
        at = bisect_left(self.reversed, backwards)
        found = [dots for dots in self.reversed[at : at + 2] if dots.startswith(backwards)]
        return found[0][::-1] if len(found) == 1 else None


def _to_dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
