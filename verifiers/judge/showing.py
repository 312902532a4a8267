"""Texts cut so that a model can read them, and the model is told what was left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from verifiers.judge.case import Case

CHARS_PER_TOKEN = 3
"""Patches have fewer characters to a token than prose."""
WORDS = 3000
"""Tokens of instructions, lists of tests and one answer that was turned down."""
LEAST = 2000
"""Characters that are shown in any case."""
STATEMENT_HEAD = 0.7
"""Of a statement that is cut, so much is its beginning; the rest is its end."""
_SECTION = re.compile(r"(?m)^(?=diff --git )")
_PATH = re.compile(r'diff --git "?a/.*? "?b/(.*?)"?$', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is shown of a text. `lines` of it there are, `left_out` of them are not shown."""

    text: str
    lines: int
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.text.strip())


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is shown of a case's three texts."""

    statement: Shown
    gold_patch: Shown
    test_patch: Shown


def room_for(context_tokens: int, answer_tokens: int) -> int:
    """Characters that texts may have, where a conversation may have so many tokens and two answers are in it."""
    return max((context_tokens - 2 * answer_tokens - WORDS) * CHARS_PER_TOKEN, LEAST)


def page(case: Case, room: int) -> Page:
    """The three texts in `room` characters; of the test patch the files of FAIL_TO_PASS tests matter most."""
    shares = shared([len(case.statement), len(case.gold), len(case.tests)], room)
    files = {test.partition("::")[0] for test in case.fail_to_pass}
    return Page(
        statement=cut_text(case.statement, shares[0]),
        gold_patch=cut_patch(case.gold, shares[1]),
        test_patch=cut_patch(case.tests, shares[2], files),
    )


def shared(sizes: Sequence[int], room: int) -> list[int]:
    """What each gets of the room: who needs little gets it all, the others the same."""
    given = [0] * len(sizes)
    for rank, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        given[index] = min(sizes[index], (room - sum(given)) // (len(sizes) - rank))
    return given


def cut_text(text: str, room: int) -> Shown:
    """Beginning and end of a text."""
    lines = text.splitlines(keepends=True)
    if len(text) <= room:
        return Shown(text=text, lines=len(lines))
    head = _fitting(lines, int(room * STATEMENT_HEAD))
    tail = _fitting(lines[len(head) :][::-1], room - sum(map(len, head)))[::-1]
    left_out = len(lines) - len(head) - len(tail)
    if not head:  # a line without an end
        head = [f"{text[: room // 2]}\n"]
    return Shown(text="".join([*head, _gap(left_out), *tail]), lines=len(lines), left_out=left_out)


def cut_patch(patch: str, room: int, files: Collection[str] = ()) -> Shown:
    """The beginnings of a patch's files; those of `files` have the first claim to the room."""
    sections = [section for section in _SECTION.split(patch) if section]
    first = [index for index, section in enumerate(sections) if _path(section) in files]
    others = [index for index in range(len(sections)) if index not in first]
    given = dict(zip(first, shared([len(sections[index]) for index in first], room), strict=True))
    left = room - sum(given.values())
    given |= dict(zip(others, shared([len(sections[index]) for index in others], left), strict=True))
    shown = [_cut_section(section, given[index]) for index, section in enumerate(sections)]
    return Shown(
        text="".join(one.text for one in shown), lines=sum(one.lines for one in shown),
        left_out=sum(one.left_out for one in shown),
    )  # fmt: skip


def _cut_section(section: str, room: int) -> Shown:
    lines = section.splitlines(keepends=True)
    if len(section) <= room:
        return Shown(text=section, lines=len(lines))
    head = _fitting(lines, room) or lines[:1]  # a file is named in any case
    return Shown(text="".join([*head, _gap(len(lines) - len(head))]), lines=len(lines), left_out=len(lines) - len(head))


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """The first lines that have no more than so many characters."""
    taken: list[str] = []
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        taken.append(line)
    return taken


def _gap(lines: int) -> str:
    return f"[{lines} lines are left out here]\n"


def _path(section: str) -> str:
    found = _PATH.match(section)
    return found[1] if found else ""
