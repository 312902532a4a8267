"""Parser of JUnit XML. A process that ran untrusted code wrote the XML: entities are rejected and sizes are limited.

Two forms are read. The canonical form, `<testsuites mergemill="1">`, is what `harness/reports/` converts reports of any
framework to; it has test ids verbatim, in the attributes `file` and `name`. In the form of pytest and of the unittest
harness the id is built as pytest prints it, `path/to/test_file.py::Class::name[param]`: `classname` (a dotted path,
then classes) is resolved against the files of the tree, because runners disagree about the root of paths.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator
from dataclasses import replace

from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus

MAX_TESTS = 500_000
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
    root = _parse_root(content)
    cases = (
        _iterate_canonical(root) if root.get("mergemill") == CANONICAL_VERSION else _iterate_pytest(root, known_files)
    )
    outcomes: dict[str, Outcome] = {}
    uncollected: dict[str, str] = {}
    for file, rest, case in cases:
        status, message = _parse_status(case)
        if rest:
            test = f"{file}::{rest}"
            outcome = Outcome(status=status, message=message, seconds=_parse_seconds(case))
            outcomes[test] = _merge_outcomes(outcomes.get(test), outcome)
        else:
            uncollected[file] = message
    return EvaluationReport(outcomes=outcomes, uncollected=uncollected)


def _iterate_canonical(root: ET.Element) -> Iterator[tuple[str, str, ET.Element]]:
    """Yield (file, rest of the id, row); the rest is empty for a file that could not be collected."""
    for case in _iterate_cases(root):
        yield case.get("file", ""), case.get("name", ""), case


def _iterate_pytest(root: ET.Element, known_files: Collection[str]) -> Iterator[tuple[str, str, ET.Element]]:
    """Yield what `_iterate_canonical` yields, for the form of pytest."""
    resolver = _ClassnameResolver(known_files)
    for case in _iterate_cases(root):
        if _is_collection_failure(case, _parse_status(case)[1]):
            named = ".".join(part for part in (case.get("classname"), case.get("name")) if part)
            yield resolver.resolve(named, case.get("file", ""))[0], "", case
        else:
            file, classes = resolver.resolve(case.get("classname", ""), case.get("file", ""))
            yield file, "::".join([*classes, case.get("name", "")]), case


def _parse_root(content: bytes) -> ET.Element:
    if b"<!DOCTYPE" in content[:4096] or b"<!ENTITY" in content:
        raise UnreadableReportError("the report declares entities")
    try:
        return ET.fromstring(content)  # noqa: S314 - entities are rejected above, the size is capped
    except (ET.ParseError, ValueError, LookupError) as error:
        raise UnreadableReportError(f"the report is not XML: {error}") from error


def _iterate_cases(root: ET.Element) -> Iterator[ET.Element]:
    for number, case in enumerate(root.iter("testcase")):
        if number >= MAX_TESTS:
            raise UnreadableReportError(f"the report names more than {MAX_TESTS} tests")
        yield case


def _parse_status(case: ET.Element) -> tuple[OutcomeStatus, str]:
    """Return the status and the first line of the reason."""
    found = (OutcomeStatus.PASSED, "")
    for child in case:
        message = _extract_message(child)
        if child.tag == "error":
            return OutcomeStatus.ERROR, message
        if child.tag == "failure":
            found = (OutcomeStatus.FAILED, message)
        elif child.tag == "skipped" and found[0] is OutcomeStatus.PASSED and message != _UNEXPECTED_PASS:
            found = (OutcomeStatus.XFAILED if child.get("type") == "pytest.xfail" else OutcomeStatus.SKIPPED, message)
    return found


def _extract_message(child: ET.Element) -> str:
    text = child.get("message") or child.text or ""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:MAX_MESSAGE]


def _is_collection_failure(case: ET.Element, message: str) -> bool:
    """Return whether the row is for a file or class that could not be collected, not for a test."""
    return message.startswith(("collection failure", "collection skipped")) or (
        not case.get("classname") and any(child.tag == "error" for child in case)
    )


def _parse_seconds(case: ET.Element) -> float:
    try:
        return float(case.get("time", "0"))
    except ValueError:
        return 0.0


def _merge_outcomes(old: Outcome | None, new: Outcome) -> Outcome:
    """Return the worse of two outcomes: pytest reports a test twice when it passed and its teardown failed."""
    if old is None:
        return new
    worst = max(old, new, key=lambda outcome: _SEVERITY.index(outcome.status))
    return replace(worst, seconds=old.seconds + new.seconds)


class _ClassnameResolver:
    """Map from a report's `classname` to the file of the tree and the classes in it."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = frozenset(known)
        self.by_dots = {_to_dotted(path): path for path in sorted(self.known)}
        self.by_last: dict[str, list[str]] = {}
        for dots in self.by_dots:
            self.by_last.setdefault(dots.rpartition(".")[2], []).append(dots)
        self.cache: dict[tuple[str, str], tuple[str, list[str]]] = {}

    def resolve(self, classname: str, file: str) -> tuple[str, list[str]]:
        """Return (path, classes) of `tests.test_a.TestX.Inner`."""
        if (classname, file) not in self.cache:
            self.cache[classname, file] = self._resolve(classname.split("."), file)
        return self.cache[classname, file]

    def _resolve(self, parts: list[str], file: str) -> tuple[str, list[str]]:
        prefixes = [(".".join(parts[:n]), parts[n:]) for n in range(len(parts), 0, -1)]
        for dots, classes in prefixes:
            if dots in self.by_dots:
                return self.by_dots[dots], classes
        stem = _to_dotted(file).rpartition(".")[2]
        behind = parts[len(parts) - parts[::-1].index(stem) :] if stem in parts else []
        if file in self.known:
            return file, behind
        for dots, classes in prefixes:  # the root is a subfolder of the tree: the only file with this ending
            ends = [d for d in self.by_last.get(dots.rpartition(".")[2], []) if d.endswith(f".{dots}")]
            if len(ends) == 1:
                return self.by_dots[ends[0]], classes
        return (file, behind) if file else ("/".join(parts), [])


def _to_dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
