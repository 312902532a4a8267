"""Checks of files: which a submission changes, and the lines that it adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from evaluation.instructions.actions import CHANGES
from evaluation.instructions.changes import ChangedFile, split_lines
from evaluation.instructions.checks.base import FileCheck, InstructionCheck, Pattern, Patterns, fail_first
from evaluation.instructions.code_text import blank_texts
from evaluation.instructions.evidence import INACTIVE, CheckVerdict, RolloutEvidence, make_failed, make_passed


def matches_any(path: str, globs: Iterable[str]) -> bool:
    """Return whether a path matches any of some globs, as a whole or by its name; `*` matches `/`, too."""
    return any(fnmatchcase(path, glob) or fnmatchcase(path.rpartition("/")[2], glob) for glob in globs)


class FilesUntouched(InstructionCheck):
    """Some files are not changed, whatever happens in between."""

    globs: tuple[str, ...]

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none differs at the end."""
        if not evidence.changes:
            return INACTIVE
        return _fail_file(change.path for change in evidence.changes if matches_any(change.path, self.globs))


class NewFilesOnly(InstructionCheck):
    """New files match globs; without any, there are no new files."""

    globs: tuple[str, ...] = ()

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each does."""
        if not evidence.changes:
            return INACTIVE
        return _fail_file(path for path in _list_new(evidence.changes) if not matches_any(path, self.globs))


class NewFilesNever(InstructionCheck):
    """No new file matches globs."""

    globs: tuple[str, ...]

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none does."""
        if not evidence.changes:
            return INACTIVE
        return _fail_file(path for path in _list_new(evidence.changes) if matches_any(path, self.globs))


class FileGainsLine(FileCheck):
    """A file gets a line."""

    path: str
    pattern: Pattern

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether it got such a line; it does not matter where nothing is changed."""
        if not evidence.changes:
            return INACTIVE
        lines = [line for change in evidence.changes if change.path == self.path for _, line in change.added]
        return (
            make_passed()
            if any(re.search(self.pattern, line) for line in lines)
            else make_failed(quote=f"{self.path}: no line")
        )


class FilesAtMost(InstructionCheck):
    """Number of files that are changed."""

    number: int

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether there are no more."""
        if not evidence.changes:
            return INACTIVE
        n_files = len(evidence.changes)
        return make_failed(quote=f"{n_files} files") if n_files > self.number else make_passed()


class LinesAtMost(FileCheck):
    """Number of lines that are added or removed."""

    number: int

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether there are no more."""
        if not evidence.changes:
            return INACTIVE
        n_lines = sum(len(change.added) + change.n_removed for change in evidence.changes)
        return make_failed(quote=f"{n_lines} lines") if n_lines > self.number else make_passed()


class LastLineEnds(FileCheck):
    """Each changed file ends with a single line end."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each does."""
        texts = {change.path: change.after for change in evidence.changes if change.after and b"\0" not in change.after}
        if not texts:
            return INACTIVE
        return _fail_file(path for path, text in texts.items() if not text.endswith(b"\n") or text.endswith(b"\n\n"))


class AddedLinesNever(FileCheck):
    """No added line matches a pattern."""

    patterns: Patterns
    in_source: bool = True
    """Whether only program files are looked at."""
    code_only: bool = False
    """Whether a match in a comment or a string of the program is none."""

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none does."""
        if not any(True for _ in _list_added(evidence, in_source=self.in_source)):
            return INACTIVE
        return _fail_file(
            f"{change.path}:{number}: {line}"
            for change in evidence.changes
            if not self.in_source or evidence.is_source(change.path)
            for number, line in self._list_matches(change)
        )

    def _list_matches(self, change: ChangedFile) -> list[tuple[int, str]]:
        """Return number and text of the added lines that match."""
        matches = [
            (number, line)
            for number, line in change.added
            if any(re.search(pattern, line) for pattern in self.patterns)
        ]
        # A file is parsed only where it has a match at all, which few have.
        if not matches or not self.code_only:
            return matches
        code = split_lines(blank_texts(change.path, change.after or b""))
        return [
            (number, line)
            for number, line in matches
            if any(re.search(pattern, code[number - 1]) for pattern in self.patterns)
        ]


class AddedLinesAtMost(FileCheck):
    """Length of added lines of program files, in characters."""

    characters: int

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none is longer."""
        lines = list(_list_added(evidence, in_source=True))
        if not lines:
            return INACTIVE
        return _fail_file(
            f"{path}:{number}: {len(line)} characters" for path, number, line in lines if len(line) > self.characters
        )


class NewFilesBegin(FileCheck):
    """Each new program file has a line at its beginning."""

    pattern: Pattern
    lines: int = 3

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each has."""
        new = [change for change in evidence.changes if change.is_new and evidence.is_source(change.path)]
        if not new:
            return INACTIVE
        return _fail_file(change.path for change in new if not self._begins(change))

    def _begins(self, change: ChangedFile) -> bool:
        head = (change.after or b"").decode(errors="replace").splitlines()[: self.lines]
        return any(re.search(self.pattern, line) for line in head)


class ChangedSourcesGain(FileCheck):
    """Each changed program file gets a line that matches a pattern."""

    pattern: Pattern

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether each gets it; deleted files do not count."""
        changed = [
            change for change in evidence.changes if change.after is not None and evidence.is_source(change.path)
        ]
        if not changed:
            return INACTIVE
        return _fail_file(
            change.path for change in changed if not any(re.search(self.pattern, line) for _, line in change.added)
        )


class NeverWrites(InstructionCheck):
    """No action writes some files, inside of the repository or not."""

    globs: tuple[str, ...]

    def decide(self, evidence: RolloutEvidence) -> CheckVerdict:
        """Return whether none does."""
        if not evidence.actions:
            return INACTIVE
        writes = [action for action in evidence.actions if action.kind in CHANGES]
        return fail_first(writes, lambda action: matches_any(action.path, self.globs))


def _list_new(changes: Sequence[ChangedFile]) -> list[str]:
    return [change.path for change in changes if change.is_new]


def _list_added(evidence: RolloutEvidence, *, in_source: bool) -> Iterator[tuple[str, int, str]]:
    """Yield path, number and text of added lines."""
    for change in evidence.changes:
        if not in_source or evidence.is_source(change.path):
            yield from ((change.path, number, line) for number, line in change.added)


def _fail_file(breaches: Iterable[str]) -> CheckVerdict:
    breach = next(iter(breaches), None)
    return make_failed(quote=breach) if breach is not None else make_passed()
