"""Output of failing tests.

The text that a test-only run reports about each, without the tests' names and source text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from derivers.statements import render_template
from evaluation.reports.outcomes import EvaluationReport
from languages.paths import is_test_file
from taskdb.artifacts import Artifacts
from taskdb.records import FailureKind, RunVariant, TestId, Verification

MAX_OUTPUTS = 10
"""Different outputs in a single statement."""
MAX_OUTPUT_CHARS = 1500
"""Characters of an output; a longer output is truncated."""
_HEADING = re.compile(r"^_{3,} (.+?) _{3,}$", re.MULTILINE)
_SECTION_END = re.compile(r"^=+ .* =+$|^-+ Captured .* -+$", re.MULTILINE)
_ERROR_LINE = re.compile(r"^E(?: {3,}|$)")
_FRAME = re.compile(r"^(?P<path>[^\s:][^:\n]*\.\w+):(?P<line>\d+): (?P<what>.*)$")
_TRUNCATED = re.compile(r"Full output truncated|Full diff is too large|lines? hidden|\d+ more lines|<truncated>")
_PLACE = re.compile(r"\s*(?P<path>[^\s:]+\.\w+):\d+:(?:\d+:)?\s*")
_CONTENT = re.compile(r"\w\w+\W+\w")
"""Two words: a location or the name of an error alone does not show the fault that is wrong."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_TEMPORARY = re.compile(r"/tmp/[\w./-]+")  # noqa: S108 - a pattern, no file


def collect_outputs(verification: Verification, artifacts: Artifacts) -> tuple[list[str], list[TestId]]:
    """Return the different outputs of the FAIL_TO_PASS tests in the first test-only run, and the tests without any.

    A test that is absent or cannot be collected has none: its message would be about the tests.
    """
    run = next(run for run in verification.runs if run.variant is RunVariant.TEST_ONLY)
    report = EvaluationReport.from_bytes(artifacts.get(run.report))
    sections = dict(split_pytest_log(artifacts.get_text(run.log)))
    names = {_get_own_name(test) for test, _ in verification.FAIL_TO_PASS}
    outputs, silent = dict[str, None](), list[TestId]()
    for test, kind in verification.FAIL_TO_PASS:
        message = report.outcomes[test].message if test in report.outcomes else ""
        output = clean_output(_find_section(sections, test) or message, names)
        if kind not in (FailureKind.ASSERTION, FailureKind.ERROR) or not _CONTENT.search(output):
            silent.append(test)
        else:
            outputs[output] = None
    return list(outputs), silent


def render_outputs(outputs: Sequence[str], project: str) -> str | None:
    """Return the statement that consists of outputs; None where there are more than MAX_OUTPUTS."""
    if len(outputs) > MAX_OUTPUTS:
        return None
    return render_template("variants/traceback.md.j2", project=project, outputs=outputs)


def split_pytest_log(log: str) -> Iterator[tuple[str, str]]:
    """Yield (heading, output) of each failing test in a log of pytest: error lines, and frames outside of tests."""
    headings = list(_HEADING.finditer(log))
    for number, heading in enumerate(headings):
        end = headings[number + 1].start() if number + 1 < len(headings) else len(log)
        body = log[heading.end() : end]
        if match := _SECTION_END.search(body):
            body = body[: match.start()]
        lines = [line for line in map(_select_line, body.splitlines()) if line]
        if lines:
            yield heading[1].strip(), "\n".join(lines)


def is_truncated(output: str) -> bool:
    """Return whether an output is not complete, so that somebody who sees nothing else could not satisfy the test."""
    return len(output) >= MAX_OUTPUT_CHARS or _TRUNCATED.search(output) is not None


def clean_output(output: str, names: set[str]) -> str:
    """Return an output without names and places of tests, addresses and temporary paths, which differ between runs."""
    output = "\n".join(map(_strip_test_location, output.splitlines()))
    output = _TEMPORARY.sub("...", _ADDRESS.sub("0x...", output))
    for name in sorted(filter(None, names), key=len, reverse=True):
        output = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "...", output)
    return output[-MAX_OUTPUT_CHARS:]


def _strip_test_location(line: str) -> str:
    """Return a line without the place in a test file at its beginning."""
    place = _PLACE.match(line)
    return line[place.end() :] if place is not None and is_test_file(place["path"]) else line


def _select_line(line: str) -> str:
    """Return the part of a traceback line that is about the program; nothing for source text and frames of tests."""
    if _ERROR_LINE.match(line):
        return line[1:].removeprefix("   ").rstrip()
    frame = _FRAME.match(line)
    if frame is None or is_test_file(frame["path"]) or frame["path"].startswith("/"):
        return ""
    return f"{frame['path']}:{frame['line']}: {frame['what']}".rstrip(": ")


def _find_section(sections: Mapping[str, str], test: TestId) -> str:
    """Return the output under a test's heading: `test_a`, or `TestMore.test_a` for a method."""
    parts = test.split("::")[1:]
    return sections.get(".".join(parts), sections.get(parts[-1] if parts else "", ""))


def _get_own_name(test: TestId) -> str:
    """Return the name of the function or the title of a test, without parameters."""
    return re.split(r"::| > ", test)[-1].partition("[")[0]
