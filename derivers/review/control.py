"""A change in which nothing is known to be wrong: a control, of which a good review says nothing.

The rule: the change itself is the diff, and its lines are followed through the default line of the history, commit by
commit, for two years. It counts as clean when the history goes on for one year at least, and in these two no commit
whose message speaks of a fix changes or removes lines that the change added, or adds something between or beside them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from derivers.review.change import Under
from derivers.review.history import Changed, History
from derivers.review.material import Reason, Unfit, added_lines, diff_review, parsed
from derivers.review.places import says_something
from taskdb.oracles import Review

DAY = 24 * 3600
WATCHED_DAYS, FOLLOWED_DAYS = 365, 730
"""Days of history after a change before it can count as clean, and how many of them are looked at: most of what is
found at all is found early, and following lines costs with the length of the history."""
NO_MESSAGES = ("pypi:", "instances:")
"""Sources whose histories do not tell fixes from other commits, or not where a change landed."""
_FIX = re.compile(
    r"\b((hot|bug)?fix(es|ed|ing|up)?|bug(s|gy)?|defect|regression|revert(s|ed)?|crash(es|ed|ing)?|broken|wrong(ly)?|"
    r"incorrect(ly)?|correct(s|ed|ly)?|fault(y)?|error|fail(s|ed|ing|ure)?|mistake|leak|overflow|deadlock|race|"
    r"security|CVE-\d+|repair|resolve[sd]?|close[sd]?|handle|prevent|avoid|ensure|properly|missing|workaround)\b",
    re.IGNORECASE,
)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Edit(NamedTuple):
    """A hunk without context: where in the old file, how many old lines, and how many new ones stand there now."""

    at: int
    """First old line; where there are none, the line behind which the new ones stand."""
    old: int
    new: int


class Later(NamedTuple):
    """A later commit and what it did to the files that are followed; an empty path's edits: the file went."""

    commit: str
    message: str
    edits: dict[str, list[Edit]]
    gone: frozenset[str]


def clean(under: Under) -> Review:
    """The change as a control.

    Raises:
        Unfit: its later history is too short, not known, or has a fix of it; or the diff is too large or empty.
    """
    candidate, history = under.candidate, under.history
    base, merge = candidate.base_commit, candidate.merge_commit
    changed = history.changed_source(base, merge) if base != merge else []
    end = _end(under)
    diff = history.diff(base, merge, changed)
    files = history.texts(merge, [file.new for file in changed])
    review = diff_review(files, diff, (), under.artifacts, target="clean")
    if not any(line.is_added and says_something(line.value) for file in parsed(diff) for hunk in file for line in hunk):
        raise Unfit(Reason.NO_SOURCE_LINES, "the change adds nothing but comments, imports and texts")
    if fix := first_fix(added_lines(diff), later_edits(history, (merge, end), changed)):
        title = fix.message.strip().split("\n")[0]
        raise Unfit(Reason.FIXED_LATER, f"{fix.commit[:10]} touches its lines: {title}")
    return review


def _end(under: Under) -> str:
    """The last commit of the default line that is looked at."""
    candidate, history = under.candidate, under.history
    if candidate.source.startswith(NO_MESSAGES):
        raise Unfit(Reason.NO_LATER_HISTORY, "the source does not tell what became of the change")
    merge = candidate.merge_commit
    at, last = (history.committed(commit) for commit in (merge, "HEAD"))
    if (days := (last - at) // DAY) < WATCHED_DAYS:
        raise Unfit(Reason.NO_LATER_HISTORY, f"the history goes on for {days} days, {WATCHED_DAYS} are asked for")
    end = history.last_before(at + FOLLOWED_DAYS * DAY)
    if not history.on_line(merge, end):
        raise Unfit(Reason.NO_LATER_HISTORY, f"{merge[:10]} is not in the default line of the history")
    return end


def later_edits(history: History, ends: tuple[str, str], changed: Iterable[Changed]) -> Iterator[Later]:
    """What the commits of the default line from one to another did to the files, oldest first; renames end a file."""
    paths = sorted({file.new for file in changed})
    raw = history.repository.git(
        "-c", "core.quotepath=false", "--literal-pathspecs", "log", "--first-parent", "--diff-merges=first-parent",
        "--reverse", "--no-show-signature", "--no-renames", "--no-textconv", "--no-ext-diff", "--unified=0",
        "--src-prefix=a/", "--dst-prefix=b/", "--format=%x00%H%n%B%x00", "-p", f"{ends[0]}..{ends[1]}", "--", *paths,
    )  # fmt: skip
    fields = raw.decode(errors="replace").split("\0")[1:]
    for head, diff in zip(fields[::2], fields[1::2], strict=True):
        commit, _, message = head.partition("\n")
        yield Later(commit, message, *edits_of(diff))


def first_fix(lines: dict[str, list[int]], later: Iterable[Later]) -> Later | None:
    """The first later commit that speaks of a fix and touches the lines, which are followed on their way.

    Args:
        lines: path -> numbers of lines, ascending, as they are before the first of `later`.
        later: commits in their order.
    """
    for commit in later:
        touched = False
        for path in [path for path in lines if path in commit.edits or path in commit.gone]:
            edits = commit.edits.get(path, [])
            touched |= bool(lines[path]) and (path in commit.gone or any(_touches(edit, lines[path]) for edit in edits))
            lines[path] = [] if path in commit.gone else list(_moved(lines[path], edits))
        if touched and _FIX.search(commit.message):
            return commit
    return None


def _touches(edit: Edit, lines: list[int]) -> bool:
    """Whether an edit takes one of the lines away or adds something right before or behind one."""
    first, last = (edit.at, edit.at + edit.old - 1) if edit.old else (edit.at, edit.at + 1)
    at = bisect_right(lines, last)
    return at > 0 and lines[at - 1] >= first


def _moved(lines: Iterable[int], edits: list[Edit]) -> Iterator[int]:
    """Where the lines that are left stand after the edits, which are in their order."""
    rest, shift = list(edits), 0
    for line in lines:
        while rest and rest[0].at + max(rest[0].old, 1) <= line:
            edit = rest.pop(0)
            shift += edit.new - edit.old
        if not (rest and rest[0].old and rest[0].at <= line):
            yield line + shift


def edits_of(diff: str) -> tuple[dict[str, list[Edit]], frozenset[str]]:
    """The edits of a diff without context by old name, and the files that it takes away."""
    edits: dict[str, list[Edit]] = {}
    gone: set[str] = set()
    path, left = "", 0
    for row in diff.split("\n"):
        if left and row[:1] in ("+", "-"):
            left -= 1
        elif row.startswith("--- "):
            path = row[6:].rstrip("\t") if row.startswith("--- a/") else ""
        elif row == "+++ /dev/null":
            gone.add(path)
        elif found := _HUNK.match(row):
            at, old, new = int(found[1]), int(found[2] or 1), int(found[4] or 1)
            edits.setdefault(path, []).append(Edit(at, old, new))
            left = old + new
    return edits, frozenset(gone)
