"""Read access to a repository for reviews: texts of files, diffs of source files, and blame."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.git import EMPTY_TREE, GitError, GitRepository, TreeEntry
from derivers.review.construction import strip_index_lines
from languages.paths import is_source, is_test_file

MAX_FILE_BYTES = 1024 * 1024
"""Larger files are not read."""


class SourceChange(NamedTuple):
    """A file of a diff: old and new path (equal unless renamed) and its number of changed lines."""

    old: str
    new: str
    lines: int


class BlamedLine(NamedTuple):
    """Origin of a line: the commit that introduced it, and the line's path and number in that commit."""

    commit: str
    path: str
    line: int


class CommitPatch(NamedTuple):
    """A commit with its parent, the first line of its message, and its patch of some files."""

    commit: str
    parent: str
    title: str
    patch: str


@dataclass(frozen=True)
class ReviewHistory:
    """Read-only queries of a repository."""

    repository: GitRepository
    _trees: dict[str, dict[str, TreeEntry]] = field(default_factory=dict)
    _sources: dict[str, bool] = field(default_factory=dict)

    def list_files(self, commit: str) -> dict[str, TreeEntry]:
        """Return the regular files of a commit with UTF-8 paths, by path."""
        if commit not in self._trees:
            self._trees[commit] = {
                entry.path: entry
                for entry in self.repository.ls_tree(commit)
                if entry.mode.startswith("100") and is_text(entry.path)
            }
        return self._trees[commit]

    def list_sources(self, commit: str) -> list[str]:
        """Return the source files of a commit. The commits of a change have most paths in common."""
        paths = self.list_files(commit)
        self._sources.update({path: is_source(path) for path in paths if path not in self._sources})
        return [path for path in paths if self._sources[path]]

    def read_texts(self, commit: str, paths: Iterable[str]) -> dict[str, str]:
        """Return the contents of those `paths` that are regular files of a commit, not too large, and UTF-8."""
        tree = self.list_files(commit)
        entries = [tree[path] for path in dict.fromkeys(paths) if path in tree and tree[path].size <= MAX_FILE_BYTES]
        texts = {}
        for entry, content in zip(entries, self.repository.read_blobs(entry.oid for entry in entries), strict=True):
            text = decode_text(content)
            if text is not None:
                texts[entry.path] = text
        return texts

    def list_changed_sources(self, old: str, new: str) -> list[SourceChange]:
        """Return the source files in which two commits differ, including deleted files; binary files have 0 lines."""
        return [file for file in self.list_changed_files(old, new) if is_source(file.new)]

    def list_changed_files(self, old: str, new: str) -> list[SourceChange]:
        """Return all files in which two commits or trees differ, whose paths are UTF-8; see `list_changed_sources`."""
        fields = iter(self._diff(old, new, "--numstat", "-z").decode(errors="surrogateescape").split("\0"))
        sources = []
        for row in fields:
            if not row:
                continue
            added, removed, path = row.split("\t", 2)
            # With -z, git writes an empty path for a renamed file, and then both of its paths.
            before, after = (path, path) if path else (next(fields), next(fields))
            lines = 0 if added == "-" else int(added) + int(removed)
            if is_text(before) and is_text(after):
                sources.append(SourceChange(before, after, lines))
        return sources

    def diff(self, old: str, new: str, files: Sequence[SourceChange], context: int = 3) -> str:
        """Return the diff of some files between two commits, without `index` lines."""
        paths = sorted({path for file in files for path in (file.old, file.new)})
        if not paths:
            return ""
        raw = self._diff(old, new, "-p", f"--unified={context}", "--", *paths)
        return strip_index_lines(raw.decode(errors="replace"))

    def blame(self, commit: str, path: str, lines: Collection[int]) -> list[BlamedLine]:
        """Return the origins of some lines of a file, ignoring white space and moves within the file."""
        if not lines:
            return []
        wanted = [f"-L{line},{line}" for line in sorted(set(lines))]
        raw = self.repository.run_git("blame", "--porcelain", "-w", "-M", *wanted, commit, "--", path)
        return list(_parse_blame(raw.decode(errors="replace")))

    def search_word(self, commit: str, word: str) -> list[str]:
        """Return the paths of the files of a commit that contain a word."""
        return self._search(commit, [word])

    def search_any_word(self, commit: str, words: Iterable[str]) -> list[str]:
        """Return the paths of the files of a commit that contain any of some words, in whatever case."""
        wanted = sorted(set(words))
        return self._search(commit, wanted, "-i") if wanted else []

    def read_text(self, commit: str, path: str) -> str | None:
        """Return the text of a file of a commit; None where it is missing, too large or not UTF-8.

        For a file or two: the tree of the commit is not listed.
        """
        try:
            content = self.repository.run_git("cat-file", "blob", f"{commit}:{path}")
        except GitError:
            return None
        return decode_text(content) if len(content) <= MAX_FILE_BYTES else None

    def _search(self, commit: str, words: Iterable[str], *options: str) -> list[str]:
        named = [part for word in words for part in ("-e", word)]
        try:
            raw = self.repository.run_git("grep", "-l", "-z", "-w", "-I", "-F", *options, *named, commit)
        except GitError:
            # git grep exits with an error where no file matches.
            return []
        names = (name.decode(errors="surrogateescape").removeprefix(f"{commit}:") for name in raw.split(b"\0"))
        return [name for name in names if name and is_text(name)]

    def list_commits_with_tests(self, start: str, end: str, paths: Sequence[str]) -> set[str]:
        """Return the first-parent commits after `start` until `end` that touch any of some files and a test file."""
        raw = self.repository.run_git(
            "-c",
            "core.quotepath=false",
            "--literal-pathspecs",
            "log",
            "--first-parent",
            "--diff-merges=first-parent",
            "--no-show-signature",
            "--no-renames",
            "--full-diff",
            "--name-only",
            "--format=%x00%H",
            f"{start}..{end}",
            "--",
            *paths,
        )
        commits = (block.split("\n") for block in raw.decode(errors="replace").split("\0")[1:])
        return {commit for commit, *names in commits if any(is_test_file(name) for name in names if name)}

    def list_parents(self, commit: str) -> list[str]:
        """Return the parents of a commit; the empty tree for the root commit."""
        return self.repository.run_git("rev-list", "--parents", "-n1", commit).decode().split()[1:] or [EMPTY_TREE]

    def has_commit(self, commit: str) -> bool:
        """Return whether the clone contains a commit; a rewritten branch may have lost it."""
        return self.repository.has_commit(commit)

    def find_merge_base(self, commit: str, other: str) -> str | None:
        """Return the merge base of two commits; None where their histories are unrelated."""
        try:
            return self.repository.run_git("merge-base", commit, other).decode().split()[0]
        except GitError:
            return None

    def read_commit_time(self, commit: str) -> int:
        """Return the commit time in seconds since 1970."""
        return int(self.repository.run_git("show", "-s", "--format=%ct", commit).split()[-1])

    def find_last_commit_before(self, when: int) -> str:
        """Return the last first-parent commit of the default branch until a time (seconds since 1970)."""
        return self.repository.run_git("rev-list", "--first-parent", "-n1", f"--before={when}", "HEAD").decode().strip()

    def is_ancestor(self, commit: str, other: str) -> bool:
        """Return whether a commit is an ancestor of another one, or the same."""
        return self.find_merge_base(commit, other) == self.repository.resolve(commit)

    def list_patches(self, start: str, end: str, paths: Sequence[str], words: Iterable[str]) -> list[CommitPatch]:
        """Return the commits after `start` until `end` that touch some files and whose messages contain a word.

        Oldest first, without merges and without commits that do not descend from `start`; patches of these files alone.

        Args:
            start: commit before the first.
            end: last commit.
            paths: files.
            words: words of which the message contains one, in whatever case; for the caller's own look at the title.
        """
        raw = self.repository.run_git(
            "-c",
            "core.quotepath=false",
            "--literal-pathspecs",
            "log",
            "--no-merges",
            "--ancestry-path",
            "--reverse",
            "--no-show-signature",
            "--no-textconv",
            "--no-ext-diff",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--diff-algorithm=myers",
            "--format=%x00%H%x00%P%x00%s%x00",
            "--regexp-ignore-case",
            *(f"--grep={word}" for word in words),
            "-p",
            f"{start}..{end}",
            "--",
            *paths,
        )
        fields = raw.decode(errors="replace").split("\0")[1:]
        rows = zip(fields[::4], fields[1::4], fields[2::4], fields[3::4], strict=True)
        return [CommitPatch(commit, parents, title, patch.lstrip("\n")) for commit, parents, title, patch in rows]

    def list_commits_between(self, start: str, end: str) -> set[str]:
        """Return the commits that `end` has and `start` lacks."""
        return set(self.repository.run_git("rev-list", f"{start}..{end}").decode().split())

    def is_on_first_parent_line(self, commit: str, end: str) -> bool:
        """Return whether a commit is a first-parent ancestor of `end`."""
        rows = (
            self.repository.run_git("rev-list", "--first-parent", "--parents", f"{commit}..{end}").decode().splitlines()
        )
        return rows[-1].split()[1:2] == [commit] if rows else self.repository.resolve(end) == commit

    def _diff(self, old: str, new: str, *rest: str) -> bytes:
        options, paths = rest, tuple[str, ...]()
        if "--" in rest:
            at = rest.index("--")
            options, paths = rest[:at], rest[at:]
        return self.repository.run_git(
            "-c",
            "core.quotepath=false",
            "--literal-pathspecs",
            "diff-tree",
            "-r",
            "-M",
            "-l400",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--no-textconv",
            "--no-ext-diff",
            "--diff-algorithm=myers",
            *options,
            old,
            new,
            *paths,
        )


def is_text(path: str) -> bool:
    """Return whether a path is UTF-8, and so can be written as JSON."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode_text(content: bytes) -> str | None:
    """Return the text of a file; None for binary files and other encodings."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _parse_blame(porcelain: str) -> Iterable[BlamedLine]:
    """Yield the rows of `git blame --porcelain`, which gives the details of each commit only once."""
    commit, line, path = "", 0, ""
    paths: dict[str, str] = {}
    for row in porcelain.split("\n"):
        if row.startswith("\t"):
            yield BlamedLine(commit, paths[commit], line)
            commit = ""
        elif not commit and row:
            commit, number = row.split(" ")[:2]
            line = int(number)
        elif row.startswith("filename "):
            path = row.removeprefix("filename ")
            paths[commit] = path
