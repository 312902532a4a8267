"""Parser of JUnit XML. A process that ran untrusted code wrote the XML: entities are rejected and sizes are limited.

Both `mergemill grade` and the graders in bundles use this module: Python 3.6 or later, with the standard library only.

Two forms are read. The canonical form, `<testsuites mergemill="1">`, is what `guest/harness/reports/` converts reports
of any framework to; it has test ids verbatim, in the attributes `file` and `name`. In the form of pytest and of the
unittest harness the id is built as pytest prints it, `path/to/test_file.py::Class::name[param]`: `classname` (a dotted
path, then classes) is resolved against the files of the tree, because runners disagree about the root of paths.
"""

import re
from bisect import bisect_left
from typing import Collection, Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Tuple
from xml.etree import ElementTree as ET

STATUSES = ("passed", "xfailed", "skipped", "failed", "error")
"""Statuses of a test, from the best to the worst."""

MAX_REPORT_BYTES = 40 * 1024 * 1024
"""Bytes read of a report; the rest is dropped. With the names of the tree's files it fits into what is collected from
a container."""
MAX_TESTS = 500_000
MAX_ELEMENTS, MAX_DEPTH = 5_000_000, 1_000
MAX_CLASSNAME = 2_000
MAX_CLASSNAME_PARTS = 100
MAX_TEXT = 64 * 1024
"""Characters read of a text to find its first line."""
MAX_MESSAGE = 500
"""Characters kept of the reason why a test did not pass."""
CANONICAL_VERSION = "1"
"""The root's attribute `mergemill` in the canonical form."""

_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]{6,16}\b")
"""An address in Python's form of an object: `<X object at 0x7f12ab34cd56>`."""
SKIPPED_FILE = "collection skipped"
"""Reason in pytest's row of a file that was skipped as a whole, whose text has the cause."""
_FAILURE_TYPES = {"assertion": True, "exception": False}
"""Attribute `type` of a failure in the canonical form and in that of the unittest harness -> whether it is by an
assertion; pytest writes none."""
_TEARDOWN = "failed on teardown with "
"""Begins the reason of pytest's further row of a test whose teardown failed."""
_UNEXPECTED_PASS = "xfail-marked test passes unexpectedly"  # noqa: S105 - of pytest before 4, non-strict xpass


class UnreadableReportError(Exception):
    """The file is no JUnit report: truncated, malformed or too large."""


class CaseOutcome(NamedTuple):
    """Status of one test, the first line of the reason why it did not pass, and its seconds.

    `by_assertion`: whether a failed test failed by an assertion; None where the report does not have that.
    """

    status: str
    message: str = ""
    seconds: float = 0.0
    by_assertion: Optional[bool] = None


class JUnitReport(NamedTuple):
    """Content of a report: test id -> outcome, and file that could not be collected -> reason.

    `repeated`: test that several rows report -> their statuses. A row of a failed teardown is no report of its own.
    """

    outcomes: Dict[str, CaseOutcome]
    uncollected: Dict[str, str]
    repeated: Dict[str, Tuple[str, ...]] = {}  # noqa: RUF012 - a default, which nothing changes

    def list_statuses(self) -> Dict[str, str]:
        """Return test id -> status."""
        return {test: outcome.status for test, outcome in self.outcomes.items()}


def parse_report(content: bytes, known_files: Collection[str]) -> JUnitReport:
    """Return the report in `content`.

    Args:
        content: JUnit XML in the canonical form, or that of pytest (junit_family xunit1) and of the unittest harness.
        known_files: paths of the files in the tree, from its root.

    Raises:
        UnreadableReportError: the content cannot be read.
    """
    reader = _read_cases(content)
    cases = reader.cases if reader.is_canonical else _resolve_pytest(reader.cases, known_files)
    outcomes: Dict[str, CaseOutcome] = {}
    uncollected: Dict[str, str] = {}
    statuses: Dict[str, Tuple[str, ...]] = {}
    for case in cases:
        if case.name:
            test = f"{case.file}::{case.name}"
            if not case.outcome.message.startswith(_TEARDOWN):
                statuses[test] = (*statuses.get(test, ()), case.outcome.status)
            outcomes[test] = _merge_outcomes(outcomes.get(test), case.outcome)
        elif case.file or case.outcome.message:  # pytest adds a row without any name when it is interrupted
            uncollected[case.file] = case.outcome.message
    return JUnitReport(outcomes, uncollected, {test: rows for test, rows in statuses.items() if len(rows) > 1})


class _Case(NamedTuple):
    """One row. `name` becomes the rest of the id, which is empty for a file that could not be collected."""

    classname: str
    name: str
    file: str
    outcome: CaseOutcome


class _CaseReader:
    """Target of an XML parser that keeps rows and no tree, so that memory is bounded by the size of what it keeps."""

    def __init__(self) -> None:
        self.cases: List[_Case] = []
        self.is_canonical = False
        self._depth = self._elements = self._case_depth = self._room = 0
        self._case: Optional[_Case] = None
        self._child: Dict[str, str] = {}
        self._text: List[str] = []

    def doctype(self, *_: Optional[str]) -> None:
        raise UnreadableReportError("the report declares a document type")

    def start(self, tag: str, attributes: Dict[str, str]) -> None:
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

    def _start_case(self, attributes: Dict[str, str]) -> None:
        if len(self.cases) >= MAX_TESTS:
            raise UnreadableReportError(f"the report names more than {MAX_TESTS} tests")
        classname, name, file = (attributes.get(key, "") for key in ("classname", "name", "file"))
        outcome = CaseOutcome("passed", "", _parse_seconds(attributes.get("time", "0")))
        self._case = _Case(classname, name, file, outcome)
        self._case_depth = self._depth

    def data(self, text: str) -> None:
        if self._room > 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def end(self, tag: str) -> None:
        if self._case is not None and self._depth == self._case_depth + 1:
            self._case = self._case._replace(outcome=self._read_outcome(self._case.outcome, tag))
            self._room = 0
        elif self._case is not None and self._depth == self._case_depth:
            self.cases.append(self._case)
            self._case = None
        self._depth -= 1

    def _read_outcome(self, outcome: CaseOutcome, tag: str) -> CaseOutcome:
        """Return the outcome of a row after one more of its elements."""
        message = _extract_message(self._child.get("message") or "".join(self._text))
        if message == SKIPPED_FILE and self._text:
            message = _extract_message("{}: {}".format(message, "".join(self._text).strip()))
        if outcome.status == "error":
            return outcome
        if tag == "error":
            return outcome._replace(status="error", message=message, by_assertion=None)
        if tag == "failure":
            by_assertion = _FAILURE_TYPES.get(self._child.get("type", ""))
            return outcome._replace(status="failed", message=message, by_assertion=by_assertion)
        if tag == "skipped" and outcome.status == "passed" and message != _UNEXPECTED_PASS:
            status = "xfailed" if self._child.get("type") == "pytest.xfail" else "skipped"
            return outcome._replace(status=status, message=message)
        return outcome


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
            dotted = ".".join(part for part in (case.classname, case.name) if part)
            yield case._replace(file=resolver.resolve(dotted, case.file)[0], name="")
        else:
            file, classes = resolver.resolve(case.classname, case.file)
            yield case._replace(file=file, name=names.find_name(case, file, "::".join([*classes, case.name])))


def _extract_message(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:MAX_MESSAGE]


def _is_collection_failure(case: _Case) -> bool:
    """Return whether the row is for a file or class that could not be collected, not for a test."""
    return case.outcome.message.startswith(("collection failure", SKIPPED_FILE)) or (
        not case.classname and case.outcome.status == "error"
    )


def _parse_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _merge_outcomes(old: Optional[CaseOutcome], new: CaseOutcome) -> CaseOutcome:
    """Return the worse of two outcomes: pytest reports a test twice when it passed and its teardown failed."""
    if old is None:
        return new
    worst = max(old, new, key=lambda outcome: STATUSES.index(outcome.status))
    return worst._replace(seconds=old.seconds + new.seconds)


class _UniqueNames:
    """Names of tests without addresses of objects; different tests of one name are numbered."""

    def __init__(self) -> None:
        self.names: Dict[Tuple[str, str, str], str] = {}
        self.counts: Dict[str, int] = {}

    def find_name(self, case: _Case, file: str, name: str) -> str:
        """Return the name of a row's test; rows of equal classname, file and name are of one test."""
        key = (case.classname, case.file, case.name)
        if key not in self.names:
            free = stable = _ADDRESS.sub("0x\u2026", name)
            while f"{file}::{free}" in self.counts:
                self.counts[f"{file}::{stable}"] += 1
                free = f"{stable} #{self.counts[f'{file}::{stable}']}"
            self.counts[f"{file}::{free}"] = 1
            self.names[key] = free
        return self.names[key]


class _ClassnameResolver:
    """Map from a report's `classname` to the file of the tree and the classes in it."""

    def __init__(self, known: Collection[str]) -> None:
        self.known: FrozenSet[str] = frozenset(known)
        self.by_dots = {_to_dotted(path): path for path in sorted(self.known)}
        self.reversed = sorted(dots[::-1] for dots in self.by_dots)
        self.cache: Dict[Tuple[str, str], Tuple[str, List[str]]] = {}

    def resolve(self, classname: str, file: str) -> Tuple[str, List[str]]:
        """Return (path, classes) of `tests.test_a.TestX.Inner`."""
        if (classname, file) not in self.cache:
            self.cache[classname, file] = self._resolve(classname.split("."), file)
        return self.cache[classname, file]

    def _resolve(self, parts: List[str], file: str) -> Tuple[str, List[str]]:
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
            ending = self._find_only_ending(f".{dots}")
            if ending is not None:
                return self.by_dots[ending], classes
        return (file, behind) if file else ("/".join(parts), [])

    def _find_only_ending(self, ending: str) -> Optional[str]:
        """Return the only dotted path with an ending."""
        backwards = ending[::-1]
        at = bisect_left(self.reversed, backwards)
        matches = [dots for dots in self.reversed[at : at + 2] if dots.startswith(backwards)]
        return matches[0][::-1] if len(matches) == 1 else None


def _to_dotted(path: str) -> str:
    return (path[: -len(".py")] if path.endswith(".py") else path).replace("/", ".")
