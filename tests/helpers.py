"""Tiny real git repositories, made in four lines."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class TinyRepo:
    """A git repository that a test makes commit by commit. File contents are text or bytes; None deletes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.minute = 0
        if not (path / ".git").exists():
            self._initialise()

    def _initialise(self) -> None:
        """Make what `git init -b main` makes but for examples of hooks, without a process of git."""
        folder = self.path / ".git"
        for name in ("hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (folder / name).mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
        settings = ("repositoryformatversion = 0", "filemode = true", "bare = false", "logallrefupdates = true")
        (folder / "config").write_text("\n\t".join(("[core]", *settings)) + "\n")

    def git(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """Run git in the repository; return its output, stripped."""
        when = f"2024-03-01T12:{self.minute:02d}:00+0000"
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            check=True,
            capture_output=True,
            env=os.environ
            | {
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_AUTHOR_NAME": "Ada",
                "GIT_AUTHOR_EMAIL": "ada@example.org",
                "GIT_AUTHOR_DATE": when,
                "GIT_COMMITTER_NAME": "Ada",
                "GIT_COMMITTER_EMAIL": "ada@example.org",
                "GIT_COMMITTER_DATE": when,
            }
            | dict(env or {}),
        )
        return done.stdout.decode(errors="surrogateescape").strip()

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files into the work tree."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, files: Mapping[str, str | bytes | None], *, author: str | None = None) -> str:
        """Write files and commit everything, one minute after the last commit; return the commit id."""
        self.minute += 1
        self.write(files)
        self.git("add", "-A")
        # Git would start a process after each commit that looks whether the repository needs a clean-up.
        quick = ("-c", "maintenance.auto=false")
        self.git(*quick, "commit", "-q", "--allow-empty", "-m", message, *(["--author", author] if author else []))
        return self.read_head()

    def read_head(self) -> str:
        """Return the commit id of HEAD, after a commit: its file is there, and a process of git is spared."""
        folder = self.path / ".git"
        head = (folder / "HEAD").read_text().strip()
        return (folder / head.removeprefix("ref: ")).read_text().strip() if head.startswith("ref: ") else head

    def pack(self) -> PackedRepo:
        """Return the repository with its work tree, for copies of it."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as tar:
            tar.add(self.path, ".")
        return PackedRepo(content.getvalue(), self.minute)


@dataclass(frozen=True)
class PackedRepo:
    """A repository from which equal ones are made, without the processes of git that made it.

    Attributes:
        content: tar of its folder.
        minute: minute of its last commit.
    """

    content: bytes
    minute: int

    def unpack(self, path: Path) -> TinyRepo:
        """Return a copy of the repository at `path`."""
        with tarfile.open(fileobj=io.BytesIO(self.content)) as tar:
            tar.extractall(path)  # noqa: S202 - of this process
        repo = TinyRepo.__new__(TinyRepo)
        repo.path, repo.minute = path, self.minute
        repo.git("update-index", "-q", "--refresh")  # it has the inodes of the first repository's files
        return repo
