"""Files, hunks and lines of a git diff, parsed with unidiff.

Published tasks may hold a broken patch. Wrong line counts are corrected, so that the statement can still be judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile

from core.patch_headers import parse_patch_set

LineMark = Literal["+", "-", " "]
_MARKS: dict[str, LineMark] = {"+": "+", "-": "-", " ": " "}
_FILE_START = re.compile(r"^(?=diff --git )", re.MULTILINE)
_HUNK_START = re.compile(r"^(?=@@ -)", re.MULTILINE)
_HUNK_HEADER = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a hunk without its mark."""

    mark: LineMark
    text: str


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """A hunk of a file.

    Attributes:
        heading: the text after the second `@@`, often the head of the enclosing function.
        lines: added, removed and context lines in order.
    """

    heading: str
    lines: tuple[DiffLine, ...]

    def get_lines(self, marks: str) -> list[str]:
        """Return the texts of the lines that have any of the marks."""
        return [line.text for line in self.lines if line.mark in marks]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A file of a patch; `path` is its path after the change."""

    path: str
    is_new: bool
    hunks: tuple[DiffHunk, ...]

    def get_lines(self, marks: str) -> list[str]:
        """Return the texts of the lines of all hunks that have any of the marks."""
        return [text for hunk in self.hunks for text in hunk.get_lines(marks)]


def parse_patch(patch: str) -> tuple[FileDiff, ...]:
    """Return the files of a git diff; a text that is not a diff has none."""
    return tuple(_convert_file(file) for section in _FILE_START.split(patch) for file in _parse_section(section))


def _parse_section(section: str) -> Iterator[PatchedFile]:
    """Yield the file of a section; where a hunk is broken, with the line counts of all hunks corrected."""
    try:
        yield from parse_patch_set(section)
    except UnidiffParseError:
        header, *hunks = _HUNK_START.split(section)
        with suppress(UnidiffParseError):
            yield from parse_patch_set(header + "".join(map(_correct_counts, hunks)))


def _correct_counts(hunk: str) -> str:
    """Return a hunk whose header has the counts of the lines that follow it, up to the first that is no diff line."""
    heading, *lines = hunk.rstrip("\n").split("\n")
    body = list(takewhile(lambda line: line[:1] in {"", " ", "+", "-", "\\"}, lines))
    old = sum(line[:1] in {"", " ", "-"} for line in body)
    new = sum(line[:1] in {"", " ", "+"} for line in body)
    start = _HUNK_HEADER.sub(rf"@@ -\g<1>,{old} +\g<2>,{new} @@", heading)
    return "\n".join([start, *body, ""]) if body else ""


def _convert_file(file: PatchedFile) -> FileDiff:
    return FileDiff(path=file.path, is_new=file.is_added_file, hunks=tuple(_convert_hunk(hunk) for hunk in file))


def _convert_hunk(hunk: Hunk) -> DiffHunk:
    lines = (
        DiffLine(mark, line.value.removesuffix("\n").rstrip("\r"))
        for line in hunk
        if (mark := _MARKS.get(line.line_type))
    )
    return DiffHunk(heading=hunk.section_header, lines=tuple(lines))
