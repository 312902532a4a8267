"""A throw-away git directory that reads another repository's objects and keeps its own index, objects and attributes.

What git prints of a commit must not depend on whose clone it is read from. So the diffs that become patches are made
here: no configuration, no `info/attributes`, no grafts and no replaced objects of the clone's, and nothing is ever
written to it; trees made for a check land here and go with it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.git import GitError, Repository


class Scratch:
    """A bare git directory with the objects of `source` as alternates."""

    def __init__(self, folder: Path, source: Repository) -> None:
        self.folder = folder
        objects = source.git("rev-parse", "--git-path", "objects").strip()
        (folder / "objects" / "info").mkdir(parents=True)
        (folder / "refs").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        alternate = (source.path / os.fsdecode(objects)).resolve()
        (folder / "objects" / "info" / "alternates").write_bytes(_quoted(os.fsencode(alternate)) + b"\n")
        self.all_binary = folder / "all-binary"
        self.all_binary.write_text("* -diff\n")
        self.repository = Repository(folder)

    def diff(self, base: str, merge: str, *options: str, paths: tuple[str, ...] = (), binary: bool = False) -> bytes:
        """A patch from one commit or tree to another, complete: binary files whole, full object names.

        Args:
            base: commit or tree before.
            merge: commit or tree after.
            options: further options, such as `-M`.
            paths: only these, taken literally; empty means all.
            binary: treat every file as binary.
        """
        attributes = ("-c", f"core.attributesFile={self.all_binary}") if binary else ()
        literal = tuple(os.fsdecode(path) for path in paths)
        return self.repository.git(
            *attributes, "--literal-pathspecs", "diff-tree", "-r", "-p", "--binary", "--full-index",
            "--src-prefix=a/", "--dst-prefix=b/", "--no-textconv", "--no-ext-diff", "--diff-algorithm=myers",
            "--unified=3", *options, base, merge, "--", *literal,
        )  # fmt: skip

    def applied(self, base: str, *patches: str) -> str | None:
        """The tree that `patches`, applied one after the other, make of `base`; None when one does not apply."""
        env = {"GIT_INDEX_FILE": str(self.folder / "index")}
        self.repository.git("read-tree", base, env=env)
        for patch in patches:
            if not patch:
                continue
            try:
                self.repository.git(
                    "apply", "--cached", "--whitespace=nowarn", "-", data=patch.encode(), env=env
                )  # fmt: skip
            except GitError:
                return None
        return self.repository.git("write-tree", env=env).decode().strip()


def _quoted(path: bytes) -> bytes:
    """A line of an alternates file: in C quotes when the path begins with one or holds a line's end."""
    if not path.startswith((b'"', b"#")) and b"\n" not in path:
        return path
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


@contextmanager
def scratch(source: Repository) -> Iterator[Scratch]:
    """A scratch beside `source`, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mergemill-scratch-", ignore_cleanup_errors=True) as folder:
        yield Scratch(Path(folder), source)
