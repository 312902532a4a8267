"""Tar archives of the tree of a commit, read from git objects: files, links and folders, and nothing of git."""

from __future__ import annotations

import io
import itertools
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from backends.git import GitRepository, TreeEntry

OWNER_ID = 1000
"""Uid and gid of user `mergemill` in every image."""
_BATCH_SIZE = 500
"""Blobs read at once, so that a large tree is never in memory completely."""
_SUBMODULE, _LINK, _EXECUTABLE = "160000", "120000", "100755"


@dataclass(frozen=True, kw_only=True)
class TreeWriter:
    """Writes the files of a commit into a tar. Submodules become empty folders, and `.gitattributes` is ignored.

    Attributes:
        at: folder of the tree in the tar; empty for its root.
        is_read_only: whether the tree belongs to root, and its files have no write permission; else it belongs to user
            `mergemill`.
    """

    at: str = ""
    is_read_only: bool = False
    _seen: set[str] = field(default_factory=set)

    def write(self, repository: GitRepository, commit: str, tar: tarfile.TarFile) -> None:
        """Add the files of a commit to a tar; equal commits give equal members.

        Raises:
            GitError: objects are missing.
        """
        for member, content in self._iterate_members(repository, commit):
            tar.addfile(member, io.BytesIO(content))

    def _iterate_members(self, repository: GitRepository, commit: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
        entries = iter(repository.ls_tree(commit))
        while batch := list(itertools.islice(entries, _BATCH_SIZE)):
            contents = repository.read_blobs(entry.oid for entry in batch if entry.mode != _SUBMODULE)
            for entry in batch:
                path = "/".join(filter(None, (self.at.strip("/"), entry.path)))
                yield from self._make_parent_folders(path)
                yield self._make_member(path, entry, b"" if entry.mode == _SUBMODULE else next(contents))

    def _make_parent_folders(self, path: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
        """Yield the parent folders of a file that are not there yet; without an entry they would belong to root."""
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            if folder not in self._seen:
                self._seen.add(folder)
                yield self._make_info(folder, tarfile.DIRTYPE, 0o755), b""

    def _make_member(self, path: str, entry: TreeEntry, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if entry.mode == _SUBMODULE:
            return self._make_info(path, tarfile.DIRTYPE, 0o755), b""
        if entry.mode == _LINK:
            link = self._make_info(path, tarfile.SYMTYPE, 0o777)
            link.linkname = os.fsdecode(content)
            return link, b""
        mode = 0o755 if entry.mode == _EXECUTABLE else 0o644
        file = self._make_info(path, tarfile.REGTYPE, mode & ~0o222 if self.is_read_only else mode)
        file.size = len(content)
        return file, content

    def _make_info(self, path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.mtime = kind, mode, 0
        info.uid = info.gid = 0 if self.is_read_only else OWNER_ID
        return info


@contextmanager
def open_read_only_tree(repository: GitRepository, commit: str, *, at: str) -> Iterator[IO[bytes]]:
    """Yield the tree of a commit as a tar to be unpacked at `/`, owned by root and without write permission.

    Args:
        repository: repository that has the commit's tree, with or without history.
        commit: the commit.
        at: absolute path of the tree.

    Raises:
        GitError: objects are missing.
    """
    with tempfile.TemporaryFile() as spool:
        with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as tar:
            TreeWriter(at=at, is_read_only=True).write(repository, commit, tar)
        spool.seek(0)
        yield spool
