"""Shorten texts for the context window of a model, with the number of omitted lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.patch_headers import read_path
from verifiers.judge.case import JudgeCase

CHARS_PER_TOKEN = 3
"""Characters per token; patches have fewer than prose."""
OVERHEAD_TOKENS = 3000
"""Tokens reserved for instructions, lists of tests and a rejected answer."""
MIN_CHARS = 2000
"""Minimum number of characters of the texts."""
STATEMENT_HEAD = 0.7
"""Share of a shortened statement that is its beginning; the rest is its end."""
_SECTION = re.compile(r"(?m)^(?=diff --git )")


@dataclass(frozen=True, kw_only=True)
class TruncatedText:
    """A shortened text; `omitted` of its original `lines` are left out."""

    text: str
    lines: int
    omitted: int = 0

    def __bool__(self) -> bool:
        return bool(self.text.strip())


@dataclass(frozen=True, kw_only=True)
class TruncatedCase:
    """The three texts of a case, shortened."""

    statement: TruncatedText
    gold_patch: TruncatedText
    test_patch: TruncatedText


def compute_char_budget(context_tokens: int, answer_tokens: int) -> int:
    """Return the number of characters for texts in a context that also holds two answers."""
    return max((context_tokens - 2 * answer_tokens - OVERHEAD_TOKENS) * CHARS_PER_TOKEN, MIN_CHARS)


def truncate_case(case: JudgeCase, room: int) -> TruncatedCase:
    """Shorten the three texts to `room` characters in all; the files of FAIL_TO_PASS tests take precedence."""
    shares = divide_budget([len(case.statement), len(case.gold_patch), len(case.test_patch)], room)
    files = {test.partition("::")[0] for test in case.fail_to_pass}
    return TruncatedCase(
        statement=truncate_text(case.statement, shares[0]),
        gold_patch=truncate_patch(case.gold_patch, shares[1]),
        test_patch=truncate_patch(case.test_patch, shares[2], files),
    )


def divide_budget(sizes: Sequence[int], room: int) -> list[int]:
    """Divide `room` among texts: short texts are kept whole, the others get equal shares."""
    given = [0] * len(sizes)
    for rank, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        given[index] = min(sizes[index], (room - sum(given)) // (len(sizes) - rank))
    return given


def truncate_text(text: str, room: int) -> TruncatedText:
    """Keep the beginning and the end of a text."""
    lines = text.splitlines(keepends=True)
    if len(text) <= room:
        return TruncatedText(text=text, lines=len(lines))
    head = _take_lines(lines, int(room * STATEMENT_HEAD))
    tail = _take_lines(lines[len(head) :][::-1], room - sum(map(len, head)))[::-1]
    left_out = len(lines) - len(head) - len(tail)
    if not head:  # a single line longer than the room
        head = [f"{text[: room // 2]}\n"]
    return TruncatedText(text="".join([*head, _render_omission(left_out), *tail]), lines=len(lines), omitted=left_out)


def truncate_patch(patch: str, room: int, files: Collection[str] = ()) -> TruncatedText:
    """Keep the beginning of each file's diff; the files listed take precedence."""
    sections = [section for section in _SECTION.split(patch) if section]
    first = [index for index, section in enumerate(sections) if read_path(section) in files]
    others = [index for index in range(len(sections)) if index not in first]
    given = dict(zip(first, divide_budget([len(sections[index]) for index in first], room), strict=True))
    left = room - sum(given.values())
    given |= dict(zip(others, divide_budget([len(sections[index]) for index in others], left), strict=True))
    shown = [_truncate_section(section, given[index]) for index, section in enumerate(sections)]
    return TruncatedText(
        text="".join(section.text for section in shown),
        lines=sum(section.lines for section in shown),
        omitted=sum(section.omitted for section in shown),
    )


def _truncate_section(section: str, room: int) -> TruncatedText:
    lines = section.splitlines(keepends=True)
    if len(section) <= room:
        return TruncatedText(text=section, lines=len(lines))
    head = _take_lines(lines, room) or lines[:1]  # the file's name is always kept
    return TruncatedText(
        text="".join([*head, _render_omission(len(lines) - len(head))]),
        lines=len(lines),
        omitted=len(lines) - len(head),
    )


def _take_lines(lines: Sequence[str], room: int) -> list[str]:
    """Return the first lines with at most `room` characters in all."""
    kept: list[str] = []
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return kept


def _render_omission(lines: int) -> str:
    return f"[{lines} lines are omitted here]\n"
