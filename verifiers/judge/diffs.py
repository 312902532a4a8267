"""A patch as rules see it: files, hunks, and which lines are new, old or beside them.

A broken patch is read as far as it goes: a judge has no business with failing on a published task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Mark = Literal["+", "-", " "]
_MARKS: dict[str, Mark] = {"+": "+", "-": "-", " ": " ", "": " "}
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.*)")
_NAMES = re.compile(r'diff --git "?a/(.*?)"? "?b/(.*?)"?$')


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a hunk without its mark."""

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """`heading`: what git wrote behind the second `@@`, often the function around it."""

    heading: str
    lines: tuple[Line, ...]

    def side(self, marks: str) -> list[str]:
        """Texts of the lines with one of the marks."""
        return [line.text for line in self.lines if line.mark in marks]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file of a patch, by its new name."""

    path: str
    is_new: bool
    hunks: tuple[Hunk, ...]

    def side(self, marks: str) -> list[str]:
        """Texts of the lines with one of the marks, of all hunks."""
        return [text for hunk in self.hunks for text in hunk.side(marks)]


def files_of(patch: str) -> tuple[FileDiff, ...]:
    """The files of a git diff; of anything else, none."""
    return tuple(_files(patch.split("\n")))


def _files(lines: list[str]) -> Iterator[FileDiff]:
    path, is_new, hunks, at = "", False, list[Hunk](), 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if named := _NAMES.match(line):
            if path:
                yield FileDiff(path, is_new, tuple(hunks))
            path, is_new, hunks = named[2], False, []
        elif line.startswith("+++ b/"):
            path = path or line[6:].split("\t")[0]
        elif line.startswith(("new file mode", "--- /dev/null")):
            is_new = True
        elif path and (found := _HUNK.match(line)):
            old, new = (1 if count is None else int(count) for count in (found[1], found[2]))
            body, at = _body(lines, at, old, new)
            hunks.append(Hunk(found[3], tuple(body)))
    if path:
        yield FileDiff(path, is_new, tuple(hunks))


def _body(lines: list[str], at: int, old: int, new: int) -> tuple[list[Line], int]:
    """The lines of a hunk with so many old and new ones, and where it ends."""
    body: list[Line] = []
    while at < len(lines) and (old > 0 or new > 0):
        mark = _MARKS.get(lines[at][:1])
        if mark is None and not lines[at].startswith("\\"):
            break
        if mark is not None:
            body.append(Line(mark, lines[at][1:].rstrip("\r")))
            old -= mark != "+"
            new -= mark != "-"
        at += 1
    return body, at
