"""Lines under review that later commits fix: findings there are true, although no reviewer has to make them.

Each later fix is traced back by `git blame`: of the lines that it changes, those count that are in the reviewed version
as they were before the fix. Only titles that are plainly about a fault count, since such a line excuses a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from backends.git import GitError
from derivers.review.clean import DAY_SECONDS, FOLLOWED_DAYS, SOURCES_WITHOUT_HISTORY, move_lines, parse_edits
from derivers.review.construction import NotReviewableError, count_lines, list_added_lines
from derivers.review.history import CommitPatch, ReviewHistory
from derivers.review.locations import list_patched_sources, locate_lines
from derivers.review.subject import ReviewSubject
from taskdb.records.oracles import LaterFix, ReviewOracle

MAX_FIXES = 30
"""Later fixes that are traced, the earliest ones."""
MAX_FIX_LINES = 60
"""Changed lines of a file that are traced; a fix of more is hardly one."""
MAX_MESSAGE_CHARS = 300
_FIX = re.compile(
    r"^\W*(\w+(\([^)]*\))?[:!\])/]+\s*)*(hot|bug)?fix(e[sd]|ing)?\b|\bfix\b|\bfix(e[sd])?:?\s+#?\d|^\W*revert\b|"
    r"\b(regression|crash(es|ed|ing)?|broken|wrong(ly)?|incorrect(ly)?|vulnerability|CVE-\d+)\b",
    re.IGNORECASE,
)
"""Titles that are about a fault: the verb at the beginning, after a scope such as `parser:`, or words for faults."""
_FIX_WORDS = ("fix", "revert", "regression", "crash", "broken", "wrong", "incorrect", "vulnerability", "CVE-")
"""Parts of words of which such a title has one."""
_NO_FAULT = re.compile(
    r"\b(typos?|lint\w*|format\w*|styl\w*|docs?|docstrings?|documentation|comments?|tests?|ci|whitespace|spelling|"
    r"warnings?|typing|mypy|flake8|ruff|imports?|links?|changelog)\b",
    re.IGNORECASE,
)
"""Words of titles of fixes that repair no fault of the program."""


def collect_later_fixes(subject: ReviewSubject, oracle: ReviewOracle) -> tuple[LaterFix, ...]:
    """Return the lines under review that later commits fix, without those of known defects, oldest fix first.

    Args:
        subject: the change.
        oracle: the review; a clean change has no such lines.
    """
    candidate, history, tree = subject.candidate, subject.history, oracle.tree
    if tree is None or oracle.target == "clean" or candidate.source.startswith(SOURCES_WITHOUT_HISTORY):
        return ()
    places = _list_places(subject, oracle)
    known = {(defect.path, line) for defect in oracle.defects for line in defect.list_lines()}
    fixes: list[LaterFix] = []
    try:
        end = history.find_last_commit_before(history.read_commit_time(tree) + FOLLOWED_DAYS * DAY_SECONDS)
        start, places = _anchor(subject, tree, end, places)
        own = history.list_commits_between(candidate.base_commit, candidate.merge_commit)
        later = (fix for fix in _list_fixes(history, start, end, places) if fix.commit not in own)
        for fix in islice(later, MAX_FIXES):
            traced = _trace_lines(history, start, fix)
            lines = [places[path][line] for path, line in traced if line in places.get(path, ())]
            fixes += _describe(fix.title, (place for place in lines if place not in known))
    except GitError:
        return tuple(fixes)
    return tuple(fixes)


Places = dict[str, dict[int, tuple[str, int]]]
"""Path and line in a commit -> path and line of the reviewed version."""


def _list_places(subject: ReviewSubject, oracle: ReviewOracle) -> Places:
    """Return the lines under review: those that the diff adds, or all of the files."""
    files = oracle.load_files(subject.artifacts)
    if oracle.diff is None:
        return {path: {n: (path, n) for n in range(1, count_lines(text) + 1)} for path, text in files.items()}
    added = list_added_lines(subject.artifacts.get_text(oracle.diff))
    return {path: {line: (path, line) for line in lines} for path, lines in added.items() if path in files}


def _anchor(subject: ReviewSubject, tree: str, end: str, places: Places) -> tuple[str, Places]:
    """Return a commit of the default branch that has the lines under review, and where they are in it.

    The reviewed version itself, or, where its branch was squashed or rebased, the commit that merged it.
    """
    history, merge = subject.history, subject.candidate.merge_commit
    if history.is_ancestor(tree, end):
        return tree, places
    changed = [file for file in history.list_changed_sources(tree, merge) if file.old in places]
    edits, gone = parse_edits(history.diff(tree, merge, changed, context=0))
    renamed = {file.old: file.new for file in changed}
    moved: Places = {}
    for path, lines in places.items():
        if path not in gone:
            pairs = ((new, line) for line in lines for new in move_lines([line], edits.get(path, [])))
            moved[renamed.get(path, path)] = {new: (path, line) for new, line in pairs}
    return merge, moved


def _list_fixes(history: ReviewHistory, start: str, end: str, places: Iterable[str]) -> Iterator[CommitPatch]:
    for fix in history.list_patches(start, end, sorted(places), _FIX_WORDS):
        if _FIX.search(fix.title) and not _NO_FAULT.search(fix.title):
            yield fix


def _trace_lines(history: ReviewHistory, start: str, fix: CommitPatch) -> Iterator[tuple[str, int]]:
    """Yield path and line in `start` of the lines that a later fix changes, as far as they are there."""
    try:
        sources = list_patched_sources(fix.patch)
    except NotReviewableError:
        return
    for source in sources:
        text = history.read_text(fix.parent, source.path)
        try:
            locations = source.find_locations(text) if text else []
        except NotReviewableError:
            continue
        lines = {line for location in locations for line in location.lines}
        if lines and len(lines) <= MAX_FIX_LINES:
            for origin in history.blame(f"{start}..{fix.parent}", source.path, lines):
                if origin.commit == start:
                    yield origin.path, origin.line


def _describe(title: str, places: Iterable[tuple[str, int]]) -> Iterator[LaterFix]:
    """Yield the records of a fix, one for lines that are near each other."""
    by_path: dict[str, set[int]] = {}
    for path, line in places:
        by_path.setdefault(path, set()).add(line)
    for path, lines in sorted(by_path.items()):
        for location in locate_lines(lines):
            message = title[:MAX_MESSAGE_CHARS]
            yield LaterFix(path=path, first_line=location.first, last_line=location.last, message=message)
