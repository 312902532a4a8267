"""A throw-away git directory that reads another repository's objects and keeps its own index, objects and attributes.

What git prints of a commit must not depend on whose clone it is read from. So the diffs that become patches are made
here: no configuration, no `info/attributes`, no grafts and no replaced objects of the clone's, and nothing is ever
written to it, not even a time stamp; what a check makes lands here and goes with it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from backends.git import GitError, Repository

Entries = dict[str, tuple[str, str]]
"""Files of a tree: path to mode and blob."""


class Scratch:
    """Reads the objects of `source` as alternates; `sealed` beside it has objects of its own only."""

    def __init__(self, folder: Path, source: Repository) -> None:
        self.repository = _bare(folder / "reading.git")
        self.sealed = _bare(folder / "sealed.git")
        alternates = self.repository.path / "objects" / "info" / "alternates"
        alternates.write_bytes(_quoted(os.fsencode(source.objects)) + b"\n")
        self.all_binary = folder / "all-binary"
        self.all_binary.write_text("* -diff\n")
        self._copied: set[str] = set()

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

    def entries(self, commit: str, paths: Collection[str]) -> Entries:
        """Mode and blob of those of `paths` (surrogate escapes) that are files of a commit or tree."""
        rows = self.repository.git("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths).split(b"\0")[:-1]
        found = {}
        for row in rows:
            head, _, raw = row.partition(b"\t")
            mode, _kind, oid = head.decode().split()
            path = raw.decode(errors="surrogateescape")
            if path in paths:  # else it lies below a folder of that name
                found[path] = (mode, oid)
        return found

    def applied(self, entries: Entries, *patches: str) -> Entries | None:
        """What `patches`, applied one after the other, make of these files; None when one does not apply.

        This happens in a second git directory that has copies of the files and no alternates: git would mark every
        object as used that it finds in one, which is writing.
        """
        env = {"GIT_INDEX_FILE": str(self.sealed.path / "index")}
        (self.sealed.path / "index").unlink(missing_ok=True)
        if blobs := sorted({oid for _, oid in entries.values()} - self._copied):
            pack = self.repository.git("pack-objects", "--stdout", "-q", data="\n".join([*blobs, ""]).encode())
            self.sealed.git("unpack-objects", "-q", data=pack)
            self._copied.update(blobs)
        rows = b"".join(
            f"{mode} {oid}\t{path}\0".encode(errors="surrogateescape") for path, (mode, oid) in entries.items()
        )
        self.sealed.git("update-index", "-z", "--index-info", data=rows, env=env)
        for patch in filter(None, patches):
            try:
                self.sealed.git("apply", "--cached", "--whitespace=nowarn", "-", data=patch.encode(), env=env)
            except GitError:
                return None
        return dict(map(_entry, self.sealed.git("ls-files", "-s", "-z", env=env).split(b"\0")[:-1]))

    def attributes(self, files: bytes, names: Sequence[str], paths: Sequence[str]) -> bytes:
        """What `git check-attr -z` says of `paths`; `files`: attribute files as `git update-index -z` takes them."""
        env = {"GIT_INDEX_FILE": str(self.repository.path / "attributes-index")}
        (self.repository.path / "attributes-index").unlink(missing_ok=True)
        self.repository.git("update-index", "-z", "--index-info", data=files, env=env)
        asked = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
        return self.repository.git("check-attr", "--cached", "-z", "--stdin", *names, data=asked, env=env)


def _bare(folder: Path) -> Repository:
    """An empty bare git directory without any templates."""
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    return Repository(folder)


def _entry(row: bytes) -> tuple[str, tuple[str, str]]:
    head, _, path = row.partition(b"\t")
    mode, oid, _stage = head.decode().split()
    return path.decode(errors="surrogateescape"), (mode, oid)


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
