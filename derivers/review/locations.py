"""Locations of a fault in the old files, derived from the patch that fixes it.

Consecutive removed lines are a location, except lines that cannot be faulty: blank lines, comments, imports,
brackets, and single names, of which lists of imports consist. Where lines are only added, the location is the line
before and the line after them. Added functions and classes, and lines that are only reformatted, are not a location.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

from unidiff.patch import PatchedFile

from derivers.review.construction import NotReviewableError, Reason, count_lines, parse_diff, parse_file_name
from languages.lines import LineSyntax
from languages.paths import is_source
from languages.registry import find_language

MIN_GAP_LINES = 5
"""Two locations with fewer lines between them are merged."""
_BLANK = r"\s*$|\s*[\])}({\[;,]+\s*$"
"""A line without a word."""
_STRING = r"\s*[rbuRBU]?(\"{1,3}[^\"]*\"{1,3}|'{1,3}[^']*'{1,3})\s*$"


@dataclass(frozen=True, slots=True)
class DefectLocation:
    """Lines of a file (1-based, inclusive).

    `lines`: the changed lines among them; for a pure addition, the adjacent lines.
    """

    first: int
    last: int
    replaced: bool
    lines: tuple[int, ...]


@dataclass(slots=True)
class HunkRun:
    """Consecutive removed or added lines of a hunk; `before`: the old line that they follow."""

    before: int
    removed: list[tuple[int, str]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class PatchedSource:
    """A source file that a patch changes or deletes. `path`: its old path."""

    path: str
    file: PatchedFile

    def find_locations(self, text: str) -> list[DefectLocation]:
        """Return the locations of the fault in the old text, in order.

        Raises:
            NotReviewableError: the patch does not fit the text, as some published patches.
        """
        n, rows = count_lines(text), text.split("\n")
        old = [line for hunk in self.file for line in hunk if line.is_removed or line.is_context]
        if any(
            (line.source_line_no or 0) > n or rows[(line.source_line_no or 0) - 1] != line.value.rstrip("\n")
            for line in old
        ):
            raise NotReviewableError(Reason.UNREADABLE, f"the patch does not fit {self.path} at the base commit")
        return merge_locations(
            location for run in _iterate_runs(self.file) if (location := _locate_run(run, n, self.path))
        )


def list_patched_sources(patch: str) -> list[PatchedSource]:
    """Return the source files that a patch changes or deletes.

    Raises:
        NotReviewableError: the patch is malformed.
    """
    named = ((parse_file_name(file.source_file), file) for file in parse_diff(patch))
    return [PatchedSource(path=name, file=file) for name, file in named if name and is_source(name)]


def merge_locations(locations: Iterable[DefectLocation], gap: int = MIN_GAP_LINES) -> list[DefectLocation]:
    """Return ordered locations, those with fewer than `gap` lines between them merged."""
    merged: list[DefectLocation] = []
    for location in sorted(locations, key=lambda location: (location.first, location.last)):
        if merged and location.first - merged[-1].last - 1 < gap:
            location = _join_locations(merged.pop(), location)  # noqa: PLW2901
        merged.append(location)
    return merged


def locate_lines(lines: Iterable[int], gap: int = MIN_GAP_LINES) -> list[DefectLocation]:
    """Return line numbers as locations."""
    return merge_locations((DefectLocation(line, line, True, (line,)) for line in lines), gap)


def is_meaningful(line: str, path: str) -> bool:
    """Return whether a line can be faulty: blank lines, comments, imports, brackets, bare names and strings cannot."""
    return not _compile_harmless(_find_line_syntax(path)).match(line)


def is_definition(line: str, path: str) -> bool:
    """Return whether a line of a file begins a definition."""
    return re.match(rf"\s*({_find_line_syntax(path).definitions})", line) is not None


def _find_line_syntax(path: str) -> LineSyntax:
    language = find_language(path)
    return language.lines if language is not None else LineSyntax()


@cache
def _compile_harmless(syntax: LineSyntax) -> re.Pattern[str]:
    """Return the pattern of lines that cannot be faulty."""
    name = rf"\s*(type\s+)?(?!({syntax.statements})\b)[A-Za-z_$][\w$.]*(\s+as\s+\w+)?,?\s*$"
    return re.compile(rf"{_BLANK}|\s*({syntax.comments})|\s*({syntax.imports})|{name}|{_STRING}")


def _join_locations(defect_location: DefectLocation, other: DefectLocation) -> DefectLocation:
    replaced = defect_location.replaced or other.replaced
    lines = {
        line for location in (defect_location, other) if location.replaced or not replaced for line in location.lines
    }
    return DefectLocation(defect_location.first, max(defect_location.last, other.last), replaced, tuple(sorted(lines)))


def _iterate_runs(file: PatchedFile) -> Iterator[HunkRun]:
    for hunk in file:
        at = hunk.source_start - (1 if hunk.source_length else 0)
        run = HunkRun(at)
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
                run = HunkRun(at)
        if run.removed or run.added:
            yield run


def _locate_run(run: HunkRun, lines: int, path: str) -> DefectLocation | None:
    """Return the location of a run of changed lines, or None. `lines`: number of lines of the old file."""
    new = [text for text in run.added if is_meaningful(text, path)]
    old = [number for number, text in run.removed if is_meaningful(text, path)]
    if "".join(text for _, text in run.removed).split() == "".join(run.added).split():
        return None
    if old:
        return DefectLocation(min(old), max(old), True, tuple(old))
    if not new or is_definition(new[0], path):
        return None
    after = run.removed[-1][0] + 1 if run.removed else run.before + 1
    first, last = max(run.before, 1), min(after, lines)
    return DefectLocation(first, last, False, (first, last)) if first <= last else None
