"""The statement of an injected bug, written from what failing tests assert and saw.

The patch is never looked at, other than to make sure that nothing of it is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from backends.testing.outcomes import Report
from derivers.statements import filled
from taskdb.records import TestId

SHOWN = 3
"""Failing tests that are shown in full."""
NAMED = 8
"""Further ones that are named."""
EXCERPT_LINES = 25
"""Lines of a test that are shown."""
LEAST = 8
"""Characters of a line that must not be told when the patch has it; shorter ones say nothing."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A failing test as it is told."""

    test: TestId
    words: str
    """Its name, in words."""
    message: str
    """What it saw; empty where that is not known."""
    excerpt: str
    """Its text; empty where it was not found."""


def failures(tests: Sequence[TestId], report: Report, read: Callable[[str], bytes | None]) -> list[Failure]:
    """What there is to tell of failing tests.

    Args:
        tests: those that fail.
        report: of the run in which they failed.
        read: gives the content of a test file.
    """
    return [
        Failure(
            test=test, words=in_words(test), message=report.outcomes[test].message,
            excerpt=excerpt(read(test.partition("::")[0]) or b"", test),
        )
        for test in tests if test in report.outcomes
    ]  # fmt: skip


def statement(repo: str, language: str, told: Sequence[Failure], *, bugs: int, gold: bytes) -> str | None:
    """The statement, with as much of the tests as can be told; None when even their messages tell the patch.

    Args:
        repo: `owner/name`.
        language: the word behind a fence.
        told: all failing tests, those that say most first.
        bugs: how many there are.
        gold: the gold patch, of which no line may be told.
    """
    bare = [replace(one, excerpt="") for one in told]
    for shown in (told, bare):
        text = _filled(repo, language, shown, bugs)
        if not leaks(text, gold):
            return text
    return None


def best_first(told: Sequence[Failure], groups: Sequence[Collection[TestId]]) -> list[Failure]:
    """Those that say what they saw, short tests first, one of each text before the next; before all one of each group.

    Args:
        told: failing tests.
        groups: for each bug, the tests that notice it.
    """
    seen: set[str] = set()
    ranked: list[tuple[bool, bool, bool, int, str, Failure]] = []
    for one in sorted(told, key=lambda one: not one.message):
        text = one.excerpt or one.test.partition("[")[0]
        ranked.append((text in seen, not one.message, not one.excerpt, len(one.excerpt), one.test, one))
        seen.add(text)
    ordered = [failure for *_, failure in sorted(ranked, key=lambda row: row[:5])]
    firsts = [next((one for one in ordered if one.test in group), None) for group in groups]
    return list(dict.fromkeys(one for one in (*firsts, *ordered) if one is not None))


def leaks(text: str, patch: bytes) -> str:
    """A line of the patch, before or after, that the text holds; empty for none."""
    said = _squeezed(text)
    for line in patch.decode(errors="replace").splitlines():
        code = _squeezed(line[1:])
        if line[:1] in "+-" and not line.startswith(("+++", "---")) and len(code) >= LEAST and code in said:
            return code
    return ""


def in_words(test: TestId) -> str:
    """`Wide gaps, given a-b` of `tests/test_words.py::test_wide_gaps[a-b]`."""
    name, _, given = test.rpartition("::")[2].partition("[")
    name = re.sub(r"^(test|Test|it)[_ ]?(?=.)", "", name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").strip()
    words = f"{words[:1].upper()}{words[1:]}" if words else test
    return words + (f", given {given[:-1]}" if given.endswith("]") else "")


def excerpt(source: bytes, test: TestId) -> str:
    """The text of a test in its file, by the line that names it and what is indented deeper behind; or nothing.

    Of a test inside another one (`TestWide/of_two`) that is not found it is the outer one's. A name of several words
    may begin with what is said around it (`Label is written in capitals`).
    """
    name = re.split(r"::| > ", test)[-1].partition("[")[0]
    words = name.split(" ")
    shorter = [" ".join(words[number:]) for number in range(1, len(words) - 1)]
    lines = source.decode(errors="replace").expandtabs(4).splitlines()
    starts = (_start(lines, one) for one in (name, name.partition("/")[0], *shorter) if one)
    start = next((one for one in starts if one is not None), None)
    if start is None:
        return ""
    indent = _indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > indent):
        end += 1
    if end < len(lines) and re.match(r"\s*([})\]]+[;,)]*|end)\s*$", lines[end]):
        end += 1
    text = "\n".join(line[indent:] for line in lines[start:end]).rstrip()
    return text if text.count("\n") < EXCERPT_LINES else ""


def _start(lines: Sequence[str], name: str) -> int | None:
    """The first line that names a test; in quotes, where the name is several words."""
    quote = "[\"'`]" if " " in name else ""
    named = re.compile(rf"(?<!\w){quote}{re.escape(name)}{quote}(?!\w)")
    return next((number for number, line in enumerate(lines) if named.search(line) and _begins(line)), None)


def _begins(line: str) -> bool:
    """Whether a line may begin a test: it is no comment and no call of a helper."""
    return re.match(r"\s*(#|//|/?\*|import|from|return)", line) is None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _filled(repo: str, language: str, told: Sequence[Failure], bugs: int) -> str:
    most = max(SHOWN, bugs)
    shown, others = told[:most], told[most:]
    texts = [one.excerpt for one in shown]
    shown = [replace(one, excerpt="") if one.excerpt in texts[:n] else one for n, one in enumerate(shown)]
    named = ", ".join(one.words for one in others[:NAMED]) + (" and others" if len(others) > NAMED else "")
    title = f"{shown[0].words}: this does not work any more" if shown else "Something does not work any more"
    return filled(
        "injected/statement.md.j2", title=title, repo=repo, bugs=bugs, failing=len(told), shown=shown, others=named,
        language=language,
    )  # fmt: skip
