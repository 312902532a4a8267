"""Clean changes: reviews without a known defect, as controls.

The change itself is the diff. The lines that it adds are traced through the first-parent history of the default branch
for two years. The change is clean when the history continues for at least one year, and within the two years no fix
touches these lines. A fix is a commit whose message is about a fix and that changes or removes these lines, or adds
lines between or next to them; or a commit that replaces such lines and changes tests, unless its title is about
something
else: the tests show that the lines had a wrong result.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from derivers.review.construction import NotReviewableError, Reason, build_diff_review, list_added_lines, parse_diff
from derivers.review.history import ReviewHistory, SourceChange
from derivers.review.locations import is_meaningful
from derivers.review.subject import ReviewSubject
from taskdb.records.oracles import ReviewOracle

DAY_SECONDS = 24 * 3600
WATCHED_DAYS, FOLLOWED_DAYS = 365, 730
"""Days of history required after a change, and days that are searched for fixes. Most fixes follow early, and the cost
grows with the length of the history."""
SOURCES_WITHOUT_HISTORY = ("pypi:", "instances:")
"""Sources whose histories do not distinguish fixes from other commits, or lack the merge commit."""
_FIX = re.compile(
    r"\b((hot|bug)?fix(es|ed|ing|up)?|bug(s|gy)?|defect|regression|revert(s|ed)?|crash(es|ed|ing)?|broken|wrong(ly)?|"
    r"incorrect(ly)?|correct(s|ed|ly)?|fault(y)?|error|fail(s|ed|ing|ure)?|mistake|leak|overflow|deadlock|race|"
    r"security|CVE-\d+|repair|resolve[sd]?|close[sd]?|handle|prevent|avoid|ensure|properly|missing|workaround)\b",
    re.IGNORECASE,
)
_OTHER_WORK = re.compile(
    r"\b(add(s|ed|ing)?|new|support(s|ed|ing)?|feat(ure)?s?|implement\w*|introduc\w*|allow(s|ed|ing)?|refactor\w*|renam\w*|"
    r"mov(e|es|ed|ing)|rewrit\w*|port(s|ed|ing)?|drop(s|ped|ping)?|remov\w*|bump\w*|releas\w*|typ(e|es|ing)|docs?|styl\w*|"
    r"lint\w*|format\w*|deprecat\w*|simplif\w*|clean\w*|optimi[sz]\w*|perf\w*|fast(er)?|speed|enhanc\w*|extend\w*|updat\w*|"
    r"upgrad\w*|convert\w*|migrat\w*|moderni[sz]\w*)\b",
    re.IGNORECASE,
)
"""Words of a title by which a commit that changes tests, too, is not a fix."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class LineEdit(NamedTuple):
    """A hunk without context: its position in the old file, and its numbers of old and new lines."""

    at: int
    """First old line; for a pure addition, the line after which the new lines are inserted."""
    old: int
    new: int


class LaterCommit(NamedTuple):
    """A later commit and its edits of the traced files; `gone`: deleted files; `has_tests`: it changes a test file."""

    commit: str
    message: str
    edits: dict[str, list[LineEdit]]
    gone: frozenset[str]
    has_tests: bool = False


def review_clean_change(subject: ReviewSubject) -> ReviewOracle:
    """Return the review of a change without known defects.

    Raises:
        NotReviewableError: the later history is too short, unknown, or contains a fix; or the diff is unsuitable.
    """
    candidate, history = subject.candidate, subject.history
    base, merge = candidate.base_commit, candidate.merge_commit
    changed = history.list_changed_sources(base, merge) if base != merge else []
    end = _find_last_commit(subject)
    diff = history.diff(base, merge, changed)
    files = history.read_texts(merge, [file.new for file in changed])
    review = build_diff_review(files, diff, (), subject.artifacts, target="clean", tree=merge)
    if not any(
        line.is_added and is_meaningful(line.value, file.path)
        for file in parse_diff(diff)
        for hunk in file
        for line in hunk
    ):
        raise NotReviewableError(Reason.NO_SOURCE_LINES, "the change adds only comments, imports and strings")
    if fix := find_first_fix(list_added_lines(diff), read_later_commits(history, (merge, end), changed)):
        title = fix.message.strip().split("\n")[0]
        raise NotReviewableError(Reason.FIXED_LATER, f"{fix.commit[:10]} touches its lines: {title}")
    return review


def _find_last_commit(subject: ReviewSubject) -> str:
    """Return the last commit of the default branch that is searched."""
    candidate, history = subject.candidate, subject.history
    if candidate.source.startswith(SOURCES_WITHOUT_HISTORY):
        raise NotReviewableError(Reason.NO_LATER_HISTORY, "the source has no history after the change")
    merge = candidate.merge_commit
    at, last = (history.read_commit_time(commit) for commit in (merge, "HEAD"))
    if (days := (last - at) // DAY_SECONDS) < WATCHED_DAYS:
        raise NotReviewableError(
            Reason.NO_LATER_HISTORY, f"the history continues for {days} days, {WATCHED_DAYS} are required"
        )
    end = history.find_last_commit_before(at + FOLLOWED_DAYS * DAY_SECONDS)
    if not history.is_on_first_parent_line(merge, end):
        raise NotReviewableError(Reason.NO_LATER_HISTORY, f"{merge[:10]} is not on the default branch")
    return end


def read_later_commits(
    history: ReviewHistory, ends: tuple[str, str], changed: Iterable[SourceChange]
) -> Iterator[LaterCommit]:
    """Yield the first-parent commits between two commits with their edits of some files, oldest first.

    A renamed file counts as deleted.
    """
    paths = sorted({file.new for file in changed})
    raw = history.repository.run_git(
        "-c",
        "core.quotepath=false",
        "--literal-pathspecs",
        "log",
        "--first-parent",
        "--diff-merges=first-parent",
        "--reverse",
        "--no-show-signature",
        "--no-renames",
        "--no-textconv",
        "--no-ext-diff",
        "--unified=0",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--format=%x00%H%n%B%x00",
        "-p",
        f"{ends[0]}..{ends[1]}",
        "--",
        *paths,
    )
    fields = raw.decode(errors="replace").split("\0")[1:]
    with_tests = history.list_commits_with_tests(*ends, paths)
    for head, diff in zip(fields[::2], fields[1::2], strict=True):
        commit, _, message = head.partition("\n")
        yield LaterCommit(commit, message, *parse_edits(diff), commit in with_tests)


def find_first_fix(lines: dict[str, list[int]], later: Iterable[LaterCommit]) -> LaterCommit | None:
    """Return the first later commit that is a fix of the lines, by its message or by its tests.

    Args:
        lines: path -> ascending line numbers before the first of `later`; updated while commits are traced.
        later: commits in order.
    """
    for commit in later:
        touched = replaced = False
        for path in [path for path in lines if path in commit.edits or path in commit.gone]:
            edits = commit.edits.get(path, [])
            touched |= bool(lines[path]) and (
                path in commit.gone or any(_is_touched(edit, lines[path]) for edit in edits)
            )
            # Only a replacement with tests shows a wrong result; additions and removals beside tests may be other work.
            replaced |= any(edit.old and edit.new and _is_touched(edit, lines[path]) for edit in edits)
            lines[path] = [] if path in commit.gone else list(move_lines(lines[path], edits))
        if touched and _FIX.search(commit.message):
            return commit
        if replaced and commit.has_tests and not _OTHER_WORK.search(commit.message.strip().partition("\n")[0]):
            return commit
    return None


def _is_touched(edit: LineEdit, lines: list[int]) -> bool:
    """Return whether an edit changes any of the lines or adds lines next to them."""
    first, last = (edit.at, edit.at + edit.old - 1) if edit.old else (edit.at, edit.at + 1)
    at = bisect_right(lines, last)
    return at > 0 and lines[at - 1] >= first


def move_lines(lines: Iterable[int], edits: list[LineEdit]) -> Iterator[int]:
    """Yield the new numbers of the lines that remain after some ordered edits."""
    rest, shift = list(edits), 0
    for line in lines:
        while rest and rest[0].at + max(rest[0].old, 1) <= line:
            edit = rest.pop(0)
            shift += edit.new - edit.old
        if not (rest and rest[0].old and rest[0].at <= line):
            yield line + shift


def parse_edits(diff: str) -> tuple[dict[str, list[LineEdit]], frozenset[str]]:
    """Return the edits of a diff without context by old path, and the deleted files."""
    edits: dict[str, list[LineEdit]] = {}
    gone: set[str] = set()
    path, left = "", 0
    for row in diff.split("\n"):
        # Lines of a hunk are counted, because an added or removed line may look like a header of a file.
        if left and row[:1] in ("+", "-"):
            left -= 1
        elif row.startswith("--- "):
            path = row[6:].rstrip("\t") if row.startswith("--- a/") else ""
        elif row == "+++ /dev/null":
            gone.add(path)
        elif match := _HUNK.match(row):
            at, old, new = int(match[1]), int(match[2] or 1), int(match[4] or 1)
            edits.setdefault(path, []).append(LineEdit(at, old, new))
            left = old + new
    return edits, frozenset(gone)
