"""Patches as rows for a page: files, hunks and numbered lines with syntax highlighting."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from markupsafe import Markup

from core.patch_headers import read_path, unquote
from mergemill.web.syntax import highlight_file_lines
from mergemill.web.visible_text import make_visible

MAX_SHOWN_LINES = 1500
"""Lines of a patch on a page; the rest is in its raw text."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")


@dataclass(frozen=True)
class ShownLine:
    """A line. `old` and `new`: its numbers in both trees, None where it is in one only, and for headers of hunks."""

    kind: Literal["context", "added", "removed", "hunk", "note"]
    html: Markup
    old: int | None = None
    new: int | None = None


@dataclass
class ShownFile:
    """The lines of a file of a patch."""

    path: str
    lines: list[ShownLine] = field(default_factory=list)

    @property
    def added(self) -> int:
        """Number of added lines."""
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        """Number of removed lines."""
        return sum(line.kind == "removed" for line in self.lines)


@dataclass
class _HunkReader:
    """Lines of a hunk, which are highlighted as code of the old and of the new tree."""

    header: re.Match[str]
    lines: list[str] = field(default_factory=list)

    def build_lines(self, path: str) -> list[ShownLine]:
        """Return the header and the lines with their numbers."""
        sides = {
            "-": iter(highlight_file_lines("\n".join(line[1:] for line in self.lines if line[:1] != "+"), path)),
            "+": iter(highlight_file_lines("\n".join(line[1:] for line in self.lines if line[:1] != "-"), path)),
        }
        old, new = int(self.header[1]), int(self.header[3])
        built = [ShownLine("hunk", Markup("{}").format(self.header[0]))]
        for line in self.lines:
            if line[:1] == "+":
                built.append(ShownLine("added", next(sides["+"]), None, new))
                new += 1
            elif line[:1] == "-":
                built.append(ShownLine("removed", next(sides["-"]), old, None))
                old += 1
            else:
                next(sides["-"])
                built.append(ShownLine("context", next(sides["+"]), old, new))
                old, new = old + 1, new + 1
        return built


@dataclass(frozen=True)
class PatchView:
    """A patch on a page. `omitted`: number of its lines that are not shown."""

    files: tuple[ShownFile, ...]
    omitted: int


@lru_cache(maxsize=64)
def render_patch(patch: str) -> PatchView:
    """Return the files of a patch in its order; text that is not a diff is shown as notes."""
    lines = make_visible(patch).rstrip("\n").split("\n") if patch.strip() else []
    files: list[ShownFile] = []
    hunk: _HunkReader | None = None
    left_old = left_new = 0
    for line in lines[:MAX_SHOWN_LINES]:
        if hunk is not None and (left_old > 0 or left_new > 0) and line[:1] in ("+", "-", " ", ""):
            hunk.lines.append(line)
            left_old -= line[:1] != "+"
            left_new -= line[:1] != "-"
            continue
        if not line.startswith("\\"):
            _end_hunk(files, hunk)
            hunk = None
        if match := _HUNK.fullmatch(line):
            hunk = _HunkReader(match)
            left_old, left_new = int(match[2] or 1), int(match[4] or 1)
            files = files or [ShownFile("")]
        elif line.startswith("diff --git "):
            files.append(ShownFile(read_path(line)))
        elif line.startswith(("rename to ", "copy to ")) and files:
            files[-1].path = unquote(line.split(" ", 2)[2])
            files[-1].lines.append(ShownLine("note", Markup("{}").format(line)))
        elif line.startswith("+++ ") and files and line != "+++ /dev/null":
            files[-1].path = line[4:].split("\t")[0].removeprefix("b/")
        elif not line.startswith(("--- ", "+++ ", "index ", "\\")):
            files = files or [ShownFile("")]
            files[-1].lines.append(ShownLine("note", Markup("{}").format(line)))
    _end_hunk(files, hunk)
    return PatchView(tuple(files), max(0, len(lines) - MAX_SHOWN_LINES))


def _end_hunk(files: list[ShownFile], hunk: _HunkReader | None) -> None:
    if hunk is not None:
        files[-1].lines += hunk.build_lines(files[-1].path)
