"""A repository as reviews need it: texts of files, diffs of source, and who wrote a line first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.git import EMPTY_TREE, GitError, Repository, TreeEntry
from derivers.review.material import without_hashes
from languages.paths import is_source

MAX_FILE = 1024 * 1024
"""Bytes of a file that is read."""


class Changed(NamedTuple):
    """A file of a diff: old and new name (the same, unless it was renamed) and how many lines changed."""

    old: str
    new: str
    lines: int


class Blamed(NamedTuple):
    """Who brought a line: the commit, and the line's file and number after it."""

    commit: str
    path: str
    line: int


@dataclass(frozen=True)
class History:
    """Read-only questions to one repository."""

    repository: Repository
    _trees: dict[str, dict[str, TreeEntry]] = field(default_factory=dict)

    def tree(self, commit: str) -> dict[str, TreeEntry]:
        """The regular files of a commit whose names are text, by path."""
        if commit not in self._trees:
            self._trees[commit] = {
                entry.path: entry
                for entry in self.repository.ls_tree(commit)
                if entry.mode.startswith("100") and is_text(entry.path)
            }
        return self._trees[commit]

    def texts(self, commit: str, paths: Iterable[str]) -> dict[str, str]:
        """Contents of those of `paths` that are regular files of a commit, not too large, and UTF-8."""
        tree = self.tree(commit)
        entries = [tree[path] for path in dict.fromkeys(paths) if path in tree and tree[path].size <= MAX_FILE]
        found = {}
        for entry, content in zip(entries, self.repository.blobs(entry.oid for entry in entries), strict=True):
            text = decoded(content)
            if text is not None:
                found[entry.path] = text
        return found

    def changed_source(self, old: str, new: str) -> list[Changed]:
        """The source files in which two commits differ, deleted ones among them; binary files count no lines."""
        fields = iter(self._diff(old, new, "--numstat", "-z").decode(errors="surrogateescape").split("\0"))
        found = []
        for row in fields:
            if not row:
                continue
            added, removed, path = row.split("\t", 2)
            before, after = (path, path) if path else (next(fields), next(fields))
            lines = 0 if added == "-" else int(added) + int(removed)
            if is_source(after) and is_text(before) and is_text(after):
                found.append(Changed(before, after, lines))
        return found

    def diff(self, old: str, new: str, files: Sequence[Changed], context: int = 3) -> str:
        """The diff of these files between two commits, without hashes."""
        paths = sorted({path for file in files for path in (file.old, file.new)})
        if not paths:
            return ""
        raw = self._diff(old, new, "-p", f"--unified={context}", "--", *paths)
        return without_hashes(raw.decode(errors="replace"))

    def blame(self, commit: str, path: str, lines: Collection[int]) -> list[Blamed]:
        """Who brought these lines of a file; white space and moves within the file aside. Empty for no lines."""
        if not lines:
            return []
        wanted = [f"-L{line},{line}" for line in sorted(set(lines))]
        raw = self.repository.git("blame", "--porcelain", "-w", "-M", *wanted, commit, "--", path)
        return list(_blamed(raw.decode(errors="replace")))

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit; the empty tree for the first one."""
        return self.repository.git("rev-list", "--parents", "-n1", commit).decode().split()[1:] or [EMPTY_TREE]

    def has(self, commit: str) -> bool:
        """Whether the clone holds a commit; a branch that was rewritten may have lost it."""
        return self.repository.has_commit(commit)

    def fork(self, one: str, other: str) -> str | None:
        """Where two histories part; None where they have nothing in common."""
        try:
            return self.repository.git("merge-base", one, other).decode().split()[0]
        except GitError:
            return None

    def committed(self, commit: str) -> int:
        """When a commit was made, in seconds since 1970."""
        return int(self.repository.git("show", "-s", "--format=%ct", commit).split()[-1])

    def last_before(self, when: int) -> str:
        """The last commit of the default line that was made until a time (seconds since 1970)."""
        return self.repository.git("rev-list", "--first-parent", "-n1", f"--before={when}", "HEAD").decode().strip()

    def on_line(self, commit: str, end: str) -> bool:
        """Whether one reaches a commit from `end` by first parents alone."""
        rows = self.repository.git("rev-list", "--first-parent", "--parents", f"{commit}..{end}").decode().splitlines()
        return rows[-1].split()[1:2] == [commit] if rows else self.repository.resolve(end) == commit

    def _diff(self, old: str, new: str, *rest: str) -> bytes:
        options, paths = rest, tuple[str, ...]()
        if "--" in rest:
            at = rest.index("--")
            options, paths = rest[:at], rest[at:]
        return self.repository.git(
            "-c", "core.quotepath=false", "--literal-pathspecs", "diff-tree", "-r", "-M", "-l400", "--src-prefix=a/",
            "--dst-prefix=b/", "--no-textconv", "--no-ext-diff", "--diff-algorithm=myers", *options, old, new, *paths,
        )  # fmt: skip


def is_text(path: str) -> bool:
    """Whether a path is UTF-8 and can stand in JSON."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def decoded(content: bytes) -> str | None:
    """A file's text; None when it is no text that JSON could carry."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _blamed(porcelain: str) -> Iterable[Blamed]:
    """Rows of `git blame --porcelain`: a head per line, details of a commit only once, the line after a tab."""
    commit, line, path = "", 0, ""
    paths: dict[str, str] = {}
    for row in porcelain.split("\n"):
        if row.startswith("\t"):
            yield Blamed(commit, paths[commit], line)
            commit = ""
        elif not commit and row:
            commit, number = row.split(" ")[:2]
            line = int(number)
        elif row.startswith("filename "):
            path = row.removeprefix("filename ")
            paths[commit] = path
