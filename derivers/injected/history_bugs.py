"""Bugs that undo a commit of the history: a function that it changed is put back as it was before.

Where the lines around still stand as the commit left them, its part of the function can be undone alone. Its message is
not read: the statement of such a task is written from failing tests, as for every other bug.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from backends.git import GitError, GitRepository
from derivers.injected.bug_sites import FunctionMap
from mutation import Mutation, has_same_code, is_program

HISTORY_OPERATOR = "history"
"""Name of the operator of bugs that undo a commit."""
MAX_COMMITS = 200
"""Commits of a file that are read, the newest first."""
MAX_CHANGED_LINES = 40
"""Removed and added lines of a bug; larger ones undo more than a fix."""
_HUNK = re.compile(rb"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class UndoneHunk:
    """A run of changed lines as it is undone: bytes `start` to `end` of the file become `text`."""

    start: int
    end: int
    text: bytes
    changed_lines: int


def list_history_bugs(
    repository: GitRepository, base: str, contents: Mapping[str, bytes], functions: FunctionMap
) -> Iterator[Mutation]:
    """Yield the bugs that undo the change of a function by a commit before the base, by file, the newest commit first.

    Args:
        repository: repository with the history of `base`; without it there are none.
        base: the base commit.
        contents: path -> content of files at `base`.
        functions: functions of these files.
    """
    for path, content in contents.items():
        seen = {content}
        for commit, patch in _read_commits(repository, base, path):
            for after, line in _undo_in_functions(path, content, patch, functions):
                if after not in seen and is_program(path, content, after) and not has_same_code(path, content, after):
                    seen.add(after)
                    detail = f"what {commit[:12]} changed there was undone"
                    yield Mutation(operator=HISTORY_OPERATOR, path=path, line=line, detail=detail, after=after)


def _read_commits(repository: GitRepository, base: str, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield (commit, its change of a file as a patch), without merges and the commit that added the file."""
    options = ("--no-merges", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "-p", "-U3")
    try:
        text = repository.run_git(
            "log", f"-n{MAX_COMMITS}", *options, "--format=%x01%H", base, "--", f":(literal,top){path}"
        )
    except GitError:
        return
    for entry in re.split(rb"^\x01", text, flags=re.MULTILINE)[1:]:
        commit, _, patch = entry.partition(b"\n")
        if b"\n--- /dev/null\n" not in patch[:2000]:
            yield commit.decode(), patch


def _undo_in_functions(path: str, content: bytes, patch: bytes, functions: FunctionMap) -> Iterator[tuple[bytes, int]]:
    """Yield (new content, first line that differs) for each function in which hunks of a patch can be undone."""
    by_function: dict[str, list[UndoneHunk]] = {}
    for hunk in _find_hunks(content, patch):
        first = content.count(b"\n", 0, hunk.start) + 1
        last = content.count(b"\n", 0, max(hunk.start, hunk.end - 1)) + 1
        names = {functions.find_name(path, line) for line in (first, last)}
        if len(names) == 1 and (name := names.pop()):
            by_function.setdefault(name, []).append(hunk)
    for hunks in by_function.values():
        if sum(hunk.changed_lines for hunk in hunks) > MAX_CHANGED_LINES:
            continue
        after = content
        for hunk in sorted(hunks, key=lambda hunk: hunk.start, reverse=True):
            after = after[: hunk.start] + hunk.text + after[hunk.end :]
        yield after, content.count(b"\n", 0, min(hunk.start for hunk in hunks)) + 1


def _find_hunks(content: bytes, patch: bytes) -> Iterator[UndoneHunk]:
    """Yield the changes of a patch in hunks whose new lines, with those around, stand in a file exactly once."""
    for match in _HUNK.finditer(patch):
        n_old, n_new = (int(number) if number is not None else 1 for number in match.groups())
        lines = _read_hunk(patch[patch.find(b"\n", match.end()) + 1 :], n_old, n_new)
        new = b"".join(line[1:] for line in lines if line[:1] in b" +")
        if new.strip() and content.count(new) == 1:
            yield from _split_hunk(lines, content.index(new))


def _split_hunk(lines: Sequence[bytes], start: int) -> Iterator[UndoneHunk]:
    """Yield each run of changed lines of a hunk. `start`: where the new lines of the hunk begin in the file."""
    for is_changed, part in groupby(lines, key=lambda line: line[:1] != b" "):
        group = list(part)
        end = start + sum(len(line) - 1 for line in group if line[:1] in b" +")
        if is_changed:
            text = b"".join(line[1:] for line in group if line[:1] == b"-")
            yield UndoneHunk(start=start, end=end, text=text, changed_lines=len(group))
        start = end


def _read_hunk(text: bytes, n_old: int, n_new: int) -> list[bytes]:
    """Return the lines of a hunk with their signs; lines without an end have none."""
    lines: list[bytes] = []
    for line in text.split(b"\n"):
        sign = line[:1]
        if sign == b"\\" and lines:
            lines[-1] = lines[-1].removesuffix(b"\n")
        elif n_old <= 0 and n_new <= 0:
            break
        elif sign in (b" ", b"-", b"+"):
            lines.append(line + b"\n")
            n_old -= sign != b"+"
            n_new -= sign != b"-"
        else:
            break
    return lines
