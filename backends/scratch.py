"""Throw-away git directories that read another repository's objects and keep their own index, objects and attributes.

The output of git for a commit must not depend on the clone that holds it. Therefore patches are made, applied and
committed here: the clone's configuration, `info/attributes`, grafts and replaced objects have no effect, and nothing is
written to the clone, not even a timestamp. `ScratchIndex` and `open_patched_commit` are built on the same directory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from backends.git import GitError, GitRepository
from backends.sandbox.container_names import make_folder_prefix

TreeEntries = dict[str, tuple[str, str]]
"""Files of a tree: path -> (mode, blob id)."""

DIFF_OPTIONS = (
    "--binary",
    "--full-index",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-textconv",
    "--no-ext-diff",
    "--diff-algorithm=myers",
    "--unified=3",
)
"""Options that make a patch complete and independent of the user's configuration."""


class ScratchRepository:
    """Bare repository in `folder` whose alternates are the objects of `source`."""

    def __init__(self, folder: Path, source: GitRepository) -> None:
        self.folder = folder
        self.repository = _init_bare(folder / "scratch.git")
        alternates = self.repository.path / "objects" / "info" / "alternates"
        alternates.write_bytes(_quote_alternate(os.fsencode(source.objects_folder)) + b"\n")
        self._copied_blobs: set[str] = set()

    @cached_property
    def _sealed(self) -> GitRepository:
        """Second bare repository, without alternates."""
        return _init_bare(self.folder / "sealed.git")

    @cached_property
    def _all_binary(self) -> Path:
        """Attribute file that marks every file as binary."""
        path = self.folder / "all-binary"
        path.write_text("* -diff\n")
        return path

    def diff(self, base: str, merge: str, *options: str, paths: tuple[str, ...] = (), binary: bool = False) -> bytes:
        """Return the patch from a commit or tree to another, with whole binary files and full object names.

        Args:
            base: commit or tree before.
            merge: commit or tree after.
            options: further options, such as `-M`.
            paths: only these, taken literally; empty stands for all.
            binary: treat every file as binary.
        """
        attributes = ("-c", f"core.attributesFile={self._all_binary}") if binary else ()
        command = ("--literal-pathspecs", "diff-tree", "-r", "-p", *DIFF_OPTIONS, *options, base, merge, "--", *paths)
        return self.repository.run_git(*attributes, *command)

    def list_entries(self, commit: str, paths: Collection[str]) -> TreeEntries:
        """Return mode and blob of those `paths` (surrogate escapes) that are files of a commit or tree."""
        rows = self.repository.run_git("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths).split(b"\0")[:-1]
        entries = {}
        for row in rows:
            head, _, raw = row.partition(b"\t")
            mode, _kind, oid = head.decode().split()
            path = raw.decode(errors="surrogateescape")
            if path in paths:  # the others lie below a folder of that name
                entries[path] = (mode, oid)
        return entries

    def apply_patches(self, entries: TreeEntries, *patches: str) -> TreeEntries | None:
        """Apply `patches` to these files, in sequence; None when a patch does not apply.

        The patches are applied in a second git directory that holds copies of the files and has no alternates: git
        updates the modification time of every object that it finds in an alternate, which would write to the clone.
        """
        env = {"GIT_INDEX_FILE": str(self._sealed.path / "index")}
        (self._sealed.path / "index").unlink(missing_ok=True)
        if blobs := sorted({oid for _, oid in entries.values()} - self._copied_blobs):
            pack = self.repository.run_git("pack-objects", "--stdout", "-q", data="\n".join([*blobs, ""]).encode())
            self._sealed.run_git("unpack-objects", "-q", data=pack)
            self._copied_blobs.update(blobs)
        rows = b"".join(
            f"{mode} {oid}\t{path}\0".encode(errors="surrogateescape") for path, (mode, oid) in entries.items()
        )
        self._sealed.run_git("update-index", "-z", "--index-info", data=rows, env=env)
        for patch in filter(None, patches):
            try:
                self._sealed.run_git("apply", "--cached", "--whitespace=nowarn", "-", data=patch.encode(), env=env)
            except GitError:
                return None
        return dict(map(_parse_index_entry, self._sealed.run_git("ls-files", "-s", "-z", env=env).split(b"\0")[:-1]))

    def check_attributes(self, files: bytes, names: Sequence[str], paths: Sequence[str]) -> bytes:
        """Return the output of `git check-attr -z` for `paths`.

        Args:
            files: attribute files in the format of `git update-index -z --index-info`.
            names: attributes to look up.
            paths: files to look them up for (surrogate escapes).
        """
        env = {"GIT_INDEX_FILE": str(self.repository.path / "attributes-index")}
        (self.repository.path / "attributes-index").unlink(missing_ok=True)
        self.repository.run_git("update-index", "-z", "--index-info", data=files, env=env)
        data = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
        return self.repository.run_git("check-attr", "--cached", "-z", "--stdin", *names, data=data, env=env)


def _init_bare(folder: Path) -> GitRepository:
    """Create an empty bare git directory without templates."""
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    return GitRepository(folder)


def _parse_index_entry(row: bytes) -> tuple[str, tuple[str, str]]:
    head, _, path = row.partition(b"\t")
    mode, oid, _stage = head.decode().split()
    return path.decode(errors="surrogateescape"), (mode, oid)


def _quote_alternate(path: bytes) -> bytes:
    """Return a line of an alternates file, C-quoted when the path starts with a quote or `#` or holds a newline."""
    if not path.startswith((b'"', b"#")) and b"\n" not in path:
        return path
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


@contextmanager
def open_scratch(source: GitRepository) -> Iterator[ScratchRepository]:
    """Open a scratch repository on the objects of `source`; it is removed on exit."""
    with tempfile.TemporaryDirectory(prefix=make_folder_prefix("scratch"), ignore_cleanup_errors=True) as folder:
        yield ScratchRepository(Path(folder), source)
