"""Data that the API reads from the real clone: commits, files and diffs of pull requests, branches."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.github.world import ServerPullRequest

CHANGES = {"A": "ADDED", "D": "DELETED", "M": "MODIFIED", "R": "RENAMED", "C": "COPIED", "T": "CHANGED"}


@dataclass(slots=True, frozen=True)
class ChangedFile:
    """A file of a pull request. `additions` and `deletions` are 0 for a binary one."""

    path: str
    change: str
    additions: int
    deletions: int
    previous: str | None = None


@dataclass(slots=True, frozen=True)
class GitRef:
    reader: GitReader
    name: str
    oid: str


@dataclass(slots=True, frozen=True)
class GitFolder:
    """A folder in some commit; `tree` is its id."""

    tree: str


@dataclass(slots=True, frozen=True)
class GitFile:
    """A file in some commit."""

    oid: str


class GitReader:
    """Reads one bare clone with git; only the folder's name is stored."""

    def __init__(self, git_dir: Path | None) -> None:
        self.git_dir = git_dir

    def run(self, *arguments: str) -> bytes:
        assert self.git_dir, "a repository without a clone"
        return subprocess.run(["git", *arguments], cwd=self.git_dir, check=True, capture_output=True).stdout

    def text(self, *arguments: str) -> str:
        return self.run(*arguments).decode(errors="replace").strip()

    def ref(self, name: str) -> GitRef | None:
        """Return a branch by its full name, or None (an empty repository, a deleted branch)."""
        if not self.git_dir:
            return None
        listed = self.text("for-each-ref", "--format=%(objectname)", name)
        return GitRef(self, name, listed.split("\n")[0]) if listed else None

    def read_path(self, revision: str, path: str) -> GitFolder | GitFile | None:
        """Return the file or folder at a path of a commit."""
        row = self.text("ls-tree", "--full-tree", revision, path.rstrip("/")).partition("\t")[0].split()
        return {"tree": GitFolder, "blob": GitFile}[row[1]](row[2]) if row else None

    def get_range(self, pull: ServerPullRequest) -> str:
        """Return the three-dot range of a pull request at the time of its merge: base and head have one merge base."""
        base = f"{pull.merge_commit}^1" if pull.merge_commit else pull.base_sha
        return f"{self.text('merge-base', base, pull.head_sha)}..{pull.head_sha}"

    def list_commits(self, pull: ServerPullRequest) -> list[str]:
        return self.text("rev-list", "--reverse", self.get_range(pull)).split()

    def read_diff(self, pull: ServerPullRequest) -> bytes:
        return self.run("diff", "--no-color", "--full-index", "-M", self.get_range(pull))

    def list_files(self, pull: ServerPullRequest) -> list[ChangedFile]:
        span = self.get_range(pull)
        counts = {}
        rows = self.run("diff", "-M", "--numstat", "-z", span).decode(errors="replace").split("\0")
        while rows and rows[0]:
            added, removed, path = rows.pop(0).split("\t")
            if not path:
                _, path = rows.pop(0), rows.pop(0)
            counts[path] = tuple(0 if n == "-" else int(n) for n in (added, removed))
        files = []
        marks = self.run("diff", "-M", "--name-status", "-z", span).decode(errors="replace").split("\0")
        while marks and marks[0]:
            mark, path = marks.pop(0)[0], marks.pop(0)
            previous, path = (path, marks.pop(0)) if mark in "RC" else (None, path)
            files.append(ChangedFile(path, CHANGES[mark], *counts[path], previous))
        return sorted(files, key=lambda f: f.path)


class GitCommit:
    """A commit, read when more than its id is requested."""

    def __init__(self, reader: GitReader, oid: str) -> None:
        self.reader = reader
        self.oid = oid

    @cached_property
    def _read(self) -> list[str]:
        form = "%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
        return self.reader.run("show", "-s", f"--format={form}", self.oid).decode(errors="replace").split("\0")

    @property
    def tree(self) -> str:
        return self._read[0]

    @property
    def parents(self) -> list[str]:
        return self._read[1].split()

    @property
    def author(self) -> tuple[str, str, str]:
        return (self._read[2], self._read[3], self._read[4])

    @property
    def committer(self) -> tuple[str, str, str]:
        return (self._read[5], self._read[6], self._read[7])

    @property
    def message(self) -> str:
        return self._read[8].rstrip("\n")
