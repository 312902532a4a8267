"""Problem statements of injected bugs, written from the assertions and messages of failing tests.

The patch is read only to ensure that no line of it occurs in the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from derivers.statements import render_template
from evaluation.reports.outcomes import EvaluationReport
from taskdb.records import TestId

MAX_SHOWN_TESTS = 3
"""Failing tests that are shown in full."""
MAX_NAMED_TESTS = 8
"""Further failing tests that are named."""
MAX_EXCERPT_LINES = 25
"""Lines of a test that is shown."""
MAX_DETAIL_LINES = 8
"""Lines of a run's output that follow a failure message."""
MIN_LEAK_CHARS = 8
"""Length from which a line of the patch must not occur in the statement; shorter lines are not specific."""


_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_ERROR_NAME = re.compile(r"^[\w.]*(Error|Exception|Failure)( \[\w+\])?: ")
_DETAIL = re.compile(
    r"\s*(?:[-+?] |[-+] ?(expected|received|actual)\b|(expected|received|actual|got|want|left|right)\b.*:)|.+ !==? .+",
    re.IGNORECASE,
)
"""Lines in which test runners state expected and actual values."""


@dataclass(frozen=True, kw_only=True)
class FailingTest:
    """A failing test as the statement shows it."""

    test: TestId
    title: str
    """Its name as a phrase."""
    message: str
    """Its failure message, with expected and actual values where the runner prints them; empty where unknown."""
    excerpt: str
    """Its source text; empty where not found."""


def collect_failures(
    tests: Sequence[TestId], report: EvaluationReport, read: Callable[[str], bytes | None], log: str = ""
) -> list[FailingTest]:
    """Return name, message and source of failing tests.

    Args:
        tests: tests that fail.
        report: report of the run in which they failed.
        read: function that returns the content of a test file.
        log: output of the run.
    """
    lines = _ESCAPES.sub("", log).splitlines()
    return [
        FailingTest(
            test=test,
            title=format_test_name(test),
            message="\n".join(
                [report.outcomes[test].message, *find_details(lines, test, report.outcomes[test].message)]
            ),
            excerpt=extract_test(read(test.partition("::")[0]) or b"", test),
        )
        for test in tests
        if test in report.outcomes
    ]


def find_details(lines: Sequence[str], test: TestId, message: str) -> list[str]:
    """Return the lines of a run's output that follow a test's failure message and state values; none where not found.

    Of several places with the same message it is the first after the test's name.

    Args:
        lines: output of the run.
        test: the test.
        message: first line of its failure message.
    """
    texts = tuple(text for text in (message, _ERROR_NAME.sub("", message)) if text)
    places = [number for number, line in enumerate(lines) if texts and line.rstrip().endswith(texts)]
    name = re.split(r"::| > ", test)[-1].partition("[")[0]
    named = next((number for number, line in enumerate(lines) if name in line), len(lines))
    place = next((number for number in places if number > named), places[0] if len(places) == 1 else None)
    details: list[str] = []
    for line in lines[place + 1 :] if place is not None else ():
        text = re.sub(r"^E {2,}", "", line).rstrip()
        if text and (_DETAIL.match(text) is None or len(details) == MAX_DETAIL_LINES):
            break
        details += [text.strip()] if text else []
    return details


def write_statement(repo: str, language: str, failures: Sequence[FailingTest], *, bugs: int, gold: bytes) -> str | None:
    """Return the statement with the tests' source, or without it where that leaks; None where messages leak, too.

    Args:
        repo: `owner/name`.
        language: the info string of code fences.
        failures: all failing tests, the most informative first.
        bugs: number of injected bugs.
        gold: the gold patch, of which no line may occur.
    """
    without_source = [replace(failure, excerpt="") for failure in failures]
    for shown in (failures, without_source):
        text = _render(repo, language, shown, bugs)
        if not find_leak(text, gold):
            return text
    return None


def order_failures(failures: Sequence[FailingTest], groups: Sequence[Collection[TestId]]) -> list[FailingTest]:
    """Return one test of each group, then tests with messages, short ones first, each source text once before repeats.

    Args:
        failures: failing tests.
        groups: tests that fail with each bug.
    """
    seen: set[str] = set()
    ranked: list[tuple[bool, bool, bool, int, str, FailingTest]] = []
    for failure in sorted(failures, key=lambda failure: not failure.message):
        text = failure.excerpt or failure.test.partition("[")[0]
        ranked.append(
            (text in seen, not failure.message, not failure.excerpt, len(failure.excerpt), failure.test, failure)
        )
        seen.add(text)
    ordered = [failure for *_, failure in sorted(ranked, key=lambda row: row[:5])]
    firsts = [next((failure for failure in ordered if failure.test in group), None) for group in groups]
    return list(dict.fromkeys(failure for failure in (*firsts, *ordered) if failure is not None))


def find_leak(text: str, patch: bytes) -> str:
    """Return a removed or added line of the patch that occurs in the text; empty for none."""
    collapsed = _collapse_space(text)
    for line in patch.decode(errors="replace").splitlines():
        code = _collapse_space(line[1:])
        if (
            line[:1] in "+-"
            and not line.startswith(("+++", "---"))
            and len(code) >= MIN_LEAK_CHARS
            and code in collapsed
        ):
            return code
    return ""


def format_test_name(test: TestId) -> str:
    """Return a test's name as a phrase: `tests/test_words.py::test_wide_gaps[a-b]` gives `Wide gaps, given a-b`."""
    name, _, given = test.rpartition("::")[2].partition("[")
    name = re.sub(r"^(test|Test|it)[_ ]?(?=.)", "", name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").strip()
    words = f"{words[:1].upper()}{words[1:]}" if words else test
    return words + (f", given {given[:-1]}" if given.endswith("]") else "")


def extract_test(source: bytes, test: TestId) -> str:
    """Return the source of a test: the first line that contains its name, and the lines indented below; or nothing.

    For a nested test that is not found (`TestWide/of_two`) it is the outer test. A name of several words may begin with
    the names of enclosing groups (`Label is written in capitals`).
    """
    name = re.split(r"::| > ", test)[-1].partition("[")[0]
    words = name.split(" ")
    shorter = [" ".join(words[number:]) for number in range(1, len(words) - 1)]
    lines = source.decode(errors="replace").expandtabs(4).splitlines()
    starts = (_find_start(lines, title) for title in (name, name.partition("/")[0], *shorter) if title)
    start = next((start for start in starts if start is not None), None)
    if start is None:
        return ""
    indent = _count_indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _count_indent(lines[end]) > indent):
        end += 1
    if end < len(lines) and re.match(r"\s*([})\]]+[;,)]*|end)\s*$", lines[end]):
        end += 1
    text = "\n".join(line[indent:] for line in lines[start:end]).rstrip()
    return text if text.count("\n") < MAX_EXCERPT_LINES else ""


def _find_start(lines: Sequence[str], name: str) -> int | None:
    """Return the first line that contains a test's name, in quotes where the name has several words."""
    quote = "[\"'`]" if " " in name else ""
    named = re.compile(rf"(?<!\w){quote}{re.escape(name)}{quote}(?!\w)")
    return next((number for number, line in enumerate(lines) if named.search(line) and _can_begin_test(line)), None)


def _can_begin_test(line: str) -> bool:
    """Return whether a line can be the first of a test: it is not a comment, import or return."""
    return re.match(r"\s*(#|//|/?\*|import|from|return)", line) is None


def _count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _collapse_space(text: str) -> str:
    return " ".join(text.split())


def _render(repo: str, language: str, failures: Sequence[FailingTest], bugs: int) -> str:
    limit = max(MAX_SHOWN_TESTS, bugs)
    shown, others = failures[:limit], failures[limit:]
    texts = [failure.excerpt for failure in shown]
    shown = [
        replace(failure, excerpt="") if failure.excerpt in texts[:n] else failure for n, failure in enumerate(shown)
    ]
    names = ", ".join(other.title for other in others[:MAX_NAMED_TESTS])
    more = " and others" if len(others) > MAX_NAMED_TESTS else ""
    title = f"{shown[0].title}: this no longer works" if shown else "Something no longer works"
    return render_template(
        "injected/statement.md.j2",
        title=title,
        repo=repo,
        bugs=bugs,
        failing=len(failures),
        shown=shown,
        others=names + more,
        language=language,
    )
