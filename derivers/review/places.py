"""Where in the old files the fault was, read off the patch that mended it.

A run of removed lines is a place, as far as these lines mean something (blank lines, comments, imports, brackets and
single names, of which lists of imports are made, do not); where lines were only added, the place is the line before and
the line after them. New functions and classes are no place: nothing was wrong where they stand now. What is only
indented or wrapped anew is none either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from unidiff.patch import PatchedFile

from derivers.review.material import Reason, Unfit, count_lines, name_of, parsed
from languages.paths import is_source

GAP = 5
"""Lines between two places that make them two."""
_NOTHING = re.compile(
    r"\s*$|\s*[\])}({\[;,]+\s*$"
    r"|\s*(#(?!\s*(if|ifdef|ifndef|define|else|elif|endif|undef|pragma|error|\[|!)\b)|//|/\*|\*\s|\*/|\*$)"
    r"|\s*(import\b|from\s+\S+\s+import\b|#\s*include\b|use\s+[\w:\\{]|using\s|require(_once|_relative)?\s|package\s|"
    r"extern\s+crate\b|(const|let|var)\s.*\brequire\()"
    r"|\s*(type\s+)?(?!(break|continue|return|pass|raise|throw|else|try|next|redo|yield|fallthrough)\b)[A-Za-z_$][\w$.]*"
    r"(\s+as\s+\w+)?,?\s*$"
    r"|\s*[rbuRBU]?(\"{1,3}[^\"]*\"{1,3}|'{1,3}[^']*'{1,3})\s*$"
)
_DEFINES = re.compile(
    r"\s*(@\w|(async\s+)?(def|function)\b|class\b|func\b|fn\b|pub\b|public\b|private\b|protected\b|static\b|impl\b|"
    r"struct\b|enum\b|interface\b|trait\b|sub\b|defmodule\b|defp\b|export\b|template\b)"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a file, 1-based, both included.

    `lines`: those of them that were changed; where none was, those beside which something was added.
    """

    first: int
    last: int
    replaced: bool
    lines: tuple[int, ...]


@dataclass(slots=True)
class _Run:
    """Neighbouring lines of a hunk that were removed or added; `before`: the old line they follow."""

    before: int
    removed: list[tuple[int, str]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Mended:
    """A source file of the fix that was there before. `path`: its old name."""

    path: str
    file: PatchedFile

    def places(self, text: str) -> list[Place]:
        """Where the fault was in the old text, top down, near ones as one.

        Raises:
            Unfit: the patch is not of this text; published ones may have been moved.
        """
        n, rows = count_lines(text), text.split("\n")
        old = [line for hunk in self.file for line in hunk if line.is_removed or line.is_context]
        if any(
            (line.source_line_no or 0) > n or rows[(line.source_line_no or 0) - 1] != line.value.rstrip("\n")
            for line in old
        ):
            raise Unfit(Reason.UNREADABLE, f"the patch does not fit {self.path} as it is at the base commit")
        return merged(place for run in _runs(self.file) if (place := _place(run, n)))


def mended(patch: str) -> list[Mended]:
    """The source files that a patch changes or deletes; new ones had no fault.

    Raises:
        Unfit: the patch cannot be read.
    """
    named = ((name_of(file.source_file), file) for file in parsed(patch))
    return [Mended(path=name, file=file) for name, file in named if name and is_source(name)]


def merged(places: Iterable[Place], gap: int = GAP) -> list[Place]:
    """The same places in their order, those with fewer lines than `gap` between them as one."""
    found: list[Place] = []
    for place in sorted(places, key=lambda place: (place.first, place.last)):
        if found and place.first - found[-1].last - 1 < gap:
            place = _joined(found.pop(), place)  # noqa: PLW2901 - the two are one now
        found.append(place)
    return found


def spans(lines: Iterable[int], gap: int = GAP) -> list[Place]:
    """Numbers of lines as places."""
    return merged((Place(line, line, True, (line,)) for line in lines), gap)


def says_something(line: str) -> bool:
    """Whether a line can be wrong: blank lines, comments, imports, brackets, bare names and texts cannot."""
    return not _NOTHING.match(line)


def _joined(one: Place, other: Place) -> Place:
    replaced = one.replaced or other.replaced
    lines = {line for place in (one, other) if place.replaced or not replaced for line in place.lines}
    return Place(one.first, max(one.last, other.last), replaced, tuple(sorted(lines)))


def _runs(file: PatchedFile) -> Iterator[_Run]:
    for hunk in file:
        at = hunk.source_start - (1 if hunk.source_length else 0)
        run = _Run(at)
        for line in hunk:
            if line.is_added:
                run.added.append(line.value)
            elif line.is_removed:
                at = line.source_line_no or at
                run.removed.append((at, line.value))
            elif line.is_context:
                if run.removed or run.added:
                    yield run
                at = line.source_line_no or at
                run = _Run(at)
        if run.removed or run.added:
            yield run


def _place(run: _Run, lines: int) -> Place | None:
    """Where a run says that something was wrong, or None. `lines`: of the old file."""
    new = [text for text in run.added if says_something(text)]
    old = [number for number, text in run.removed if says_something(text)]
    if "".join(text for _, text in run.removed).split() == "".join(run.added).split():
        return None
    if old:
        return Place(min(old), max(old), True, tuple(old))
    if not new or _DEFINES.match(new[0]):
        return None
    after = run.removed[-1][0] + 1 if run.removed else run.before + 1
    first, last = max(run.before, 1), min(after, lines)
    return Place(first, last, False, (first, last)) if first <= last else None
