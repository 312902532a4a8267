"""An index beside a repository that nobody writes to, to see what patches make of a tree."""

from __future__ import annotations

import tempfile
from pathlib import Path

from backends.git import GitError, Repository


class ScratchIndex:
    """The tree of a commit with patches and other contents laid over it; objects made here go to a temporary folder.

    A context manager; the methods raise `GitError` where git refuses.
    """

    def __init__(self, repository: Repository, base: str) -> None:
        self.repository = repository
        self.base = base

    def __enter__(self) -> ScratchIndex:
        self.folder = tempfile.TemporaryDirectory(prefix="mergemill-")
        root = Path(self.folder.name)
        (root / "objects").mkdir()
        self.env = {
            "GIT_INDEX_FILE": str(root / "index"),
            "GIT_OBJECT_DIRECTORY": str(root / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.repository.objects),
        }
        self.git("read-tree", self.base)
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()

    def git(self, *arguments: str, data: bytes | None = None) -> bytes:
        """Run git on this index; its standard output."""
        return self.repository.git(*arguments, data=data, env=self.env)

    def apply(self, patch: bytes, *options: str) -> None:
        """Lay a patch over the tree as it is now.

        Args:
            patch: as `git diff --binary` writes it; an empty one changes nothing.
            options: of `git apply`, such as `--3way`.
        """
        if patch:
            self.git("apply", "--cached", "--whitespace=nowarn", *options, data=patch)

    def read(self, path: str) -> bytes | None:
        """A file's content, or None when there is no such file."""
        try:
            return self.git("cat-file", "blob", f":{path}")
        except GitError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """Give a file another content; a new one is no program."""
        oid = self.git("hash-object", "-w", "--stdin", data=content).decode().strip()
        mode = self.git("ls-files", "-s", "--", f":(literal){path}").split(b" ")[0].decode() or "100644"
        self.git("update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")

    def tree(self) -> str:
        """The tree's object id; the object is gone with this index."""
        return self.git("write-tree").decode().strip()

    def diff(self, since: str = "") -> bytes:
        """The patch to here from the base, or from another commit or a `tree()` of this index."""
        return self.git(
            "diff-index", "--cached", "--binary", "--full-index", "-M", "--src-prefix=a/", "--dst-prefix=b/",
            "--no-textconv", "--no-ext-diff", "--diff-algorithm=myers", "--unified=3", since or self.base,
        )  # fmt: skip
