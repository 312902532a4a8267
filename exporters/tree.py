"""Archives of trees, which a rendered Dockerfile unpacks: that of the base commit, or that around a review."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backends.overlay import open_task_tree
from backends.tree_tar import TreeWriter
from core.errors import InputError

if TYPE_CHECKING:
    from backends.git import GitRepository
    from backends.services import Services
    from taskdb.records import Task

MAX_MEMBERS = 5_000_000
"""Files in an archive that is read."""
MAX_BYTES = 16 << 30
"""Bytes of all files in an archive that is read; more is not a repository but an attack on the reader's disk."""
TREE_ARCHIVE = "tree.tar.gz"
"""Name of the archive in a build context."""
READ_ONLY = "read-only"
"""In place of a setup patch: archives of trees that no agent changes."""
_LEVEL = 6
"""Of gzip: against 9, half the time and 0.6 % more bytes."""


class TreeArchives:
    """Archives of the trees that the tasks of a bundle start from: equal trees are packed once.

    Further archives of a tree are further names (hard links) of the first, or copies where the disk has no links.
    """

    MAX_KEPT = 1000
    """Archives that are found again; tasks of a change are neighbours."""

    def __init__(self) -> None:
        self._paths: dict[tuple[str, str | None], Path] = {}
        """Base commit and setup patch, or commit under review and READ_ONLY -> an archive of that tree."""

    def write(self, task: Task, path: Path, services: Services) -> None:
        """Write the archive of the tree that the agent starts from.

        Raises:
            InputError: the base tree is neither in the store nor in a clone of the task's source.
        """
        key = (task.base_commit, task.setup_patch)
        if self._copy_known(key, path):
            return
        with open_task_tree(task, services) as (history, commit):
            write_tree(history, commit, path)
        self._add(key, path)

    def write_read_only(self, task: Task, commit: str, path: Path, services: Services) -> None:
        """Write the archive of the tree of a review, whose files a reviewer may read and not change.

        Raises:
            InputError: the tree is neither in the store nor in a clone of the task's source.
        """
        key = (commit, READ_ONLY)
        if self._copy_known(key, path):
            return
        write_tree(services.clones.open_tree(task.source, task.repo, commit), commit, path, is_read_only=True)
        self._add(key, path)

    def _copy_known(self, key: tuple[str, str | None], path: Path) -> bool:
        """Give a tree that is packed another name, or copy it; return False where it is not packed yet."""
        known = self._paths.get(key)
        if known is None:
            return False
        if not _link_file(known, path):
            shutil.copyfile(known, path)
            path.chmod(0o644)
            self._add(key, path)
        return True

    def _add(self, key: tuple[str, str | None], path: Path) -> None:
        self._paths[key] = path
        if len(self._paths) > self.MAX_KEPT:
            del self._paths[next(iter(self._paths))]


def _link_file(known: Path, path: Path) -> bool:
    """Give a file a further name; return False where the disk has no links, or no more of this file."""
    try:
        path.hardlink_to(known)
    except OSError:
        return False
    return True


def write_tree(repository: GitRepository, commit: str, path: Path, *, is_read_only: bool = False) -> None:
    """Write the files of a commit to `path` as a .tar.gz; equal commits give equal bytes.

    Links stay links, submodules become empty folders, and `.gitattributes` is ignored (export-ignore would drop files).

    Args:
        repository: repository that has the commit's tree.
        commit: the commit.
        path: archive to write.
        is_read_only: whether the files belong to root and cannot be changed by others.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=_LEVEL) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        TreeWriter(is_read_only=is_read_only).write(repository, commit, tar)
    path.chmod(0o644)


def read_tree(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of the regular files that `write_tree` packed. Nothing is unpacked to disk.

    Raises:
        InputError: the archive cannot be read, or holds an entry that no tree holds: hard links, devices, paths that
            lead out of it, more than MAX_MEMBERS files or MAX_BYTES bytes.
    """
    n_bytes = 0
    try:
        with tarfile.open(path, mode="r|gz") as tar:
            for number, member in enumerate(tar):
                n_bytes += max(member.size, 0)
                if problem := _find_problem(member, number, n_bytes):
                    raise InputError(f"{path} is not the archive of a tree: {problem}")
                if member.isreg() and (content := tar.extractfile(member)):
                    yield member.name, content.read()
    except (OSError, EOFError, ValueError, OverflowError, zlib.error, tarfile.TarError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _find_problem(member: tarfile.TarInfo, number: int, n_bytes: int) -> str | None:
    """Return why a member cannot be part of a tree; None if it can. `n_bytes`: claimed by it and those before it."""
    if number >= MAX_MEMBERS or n_bytes > MAX_BYTES or member.size < 0:
        return f"it claims more than {MAX_MEMBERS} files or {MAX_BYTES} bytes"
    if not (member.isreg() or member.isdir() or member.issym()):
        return f"{member.name[:200]!r} is a hard link or a device"
    if {"", ".", "..", ".git"} & set(member.name.rstrip("/").split("/")):
        return f"{member.name[:200]!r} leads out of it"
    return None
