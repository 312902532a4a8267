"""Git index in a scratch repository, to compute the tree that patches and edits give."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from backends.git import GitError, GitRepository
from backends.scratch import DIFF_OPTIONS, open_scratch


class ScratchIndex:
    """Tree of a commit with patches and edits applied to it; new objects are kept in a temporary folder.

    A context manager. Its methods raise `GitError` when git fails. `repository` reads the original objects and the new
    objects, until the index is closed.
    """

    def __init__(self, source: GitRepository, base: str) -> None:
        self.source = source
        self.base = base

    def __enter__(self) -> ScratchIndex:
        with ExitStack() as stack:
            self.repository = stack.enter_context(open_scratch(self.source)).repository
            self.run_git("read-tree", self.base)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def run_git(self, *arguments: str, data: bytes | None = None) -> bytes:
        """Run git on this index and return its standard output."""
        return self.repository.run_git(*arguments, data=data)

    def apply(self, patch: bytes, *options: str) -> None:
        """Apply a patch to the current tree.

        Args:
            patch: patch in the format of `git diff --binary`; an empty patch changes nothing.
            options: options of `git apply`, such as `--3way`.
        """
        if patch.strip():
            self.run_git("apply", "--cached", "--whitespace=nowarn", *options, data=patch)

    def read_file(self, path: str) -> bytes | None:
        """Return a file's content, or None when there is no such file."""
        try:
            return self.run_git("cat-file", "blob", f":{path}")
        except GitError:
            return None

    def write_file(self, path: str, content: bytes) -> None:
        """Set a file's content; the mode is kept, and a new file is not executable."""
        oid = self.run_git("hash-object", "-w", "--stdin", data=content).decode().strip()
        mode = self.run_git("ls-files", "-s", "--", f":(literal){path}").split(b" ")[0].decode() or "100644"
        self.run_git("update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")

    def remove_files(self, paths: Iterable[str]) -> None:
        """Remove files, by rows of the index: git's other ways need a work tree."""
        rows = b"".join(b"0 %b\t%b\0" % (b"0" * 40, path.encode(errors="surrogateescape")) for path in paths)
        if rows:
            self.run_git("update-index", "-z", "--index-info", data=rows)

    def write_tree(self) -> str:
        """Write the tree and return its object id; the object is removed with this index."""
        return self.run_git("write-tree").decode().strip()

    def diff(self, since: str = "") -> bytes:
        """Return the patch to the current tree from the base, or from another commit or tree of this index."""
        return self.run_git("diff-index", "--cached", *DIFF_OPTIONS, "-M", since or self.base)
