"""Archive of the tree at a task's base commit, which a rendered Dockerfile unpacks into /testbed."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backends.overlay import open_task_tree
from core.errors import InputError

if TYPE_CHECKING:
    from backends.git import GitRepository, TreeEntry
    from backends.services import Services
    from taskdb.records import Task

OWNER_ID = 1000
"""Uid and gid of user `mergemill` in every image."""
MAX_MEMBERS = 5_000_000
"""Files in an archive that is read."""
MAX_BYTES = 16 << 30
"""Bytes of all files in an archive that is read; more is not a repository but an attack on the reader's disk."""
_LEVEL = 6
"""Of gzip: against 9, half the time and 0.6 % more bytes."""
_BATCH_SIZE = 500
"""Blobs read at once, so that a large tree is never in memory completely."""


class TreeArchives:
    """Archives of the trees that the tasks of a bundle start from: equal trees are packed once.

    Further archives of a tree are further names (hard links) of the first, or copies where the disk has no links.
    """

    MAX_KEPT = 1000
    """Archives that are found again; tasks of a change are neighbours."""

    def __init__(self) -> None:
        self._paths: dict[tuple[str, str | None], Path] = {}
        """Base commit and setup patch -> an archive of that tree."""

    def write(self, task: Task, path: Path, services: Services) -> None:
        """Write the archive of the tree that the agent starts from.

        Raises:
            InputError: the base tree is neither in the store nor in a clone of the task's source.
        """
        key = (task.base_commit, task.setup_patch)
        known = self._paths.get(key)
        if known is None:
            with open_task_tree(task, services) as (history, commit):
                write_tree(history, commit, path)
        elif _link_file(known, path):
            return
        else:
            shutil.copyfile(known, path)
            path.chmod(0o644)
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


def write_tree(repository: GitRepository, commit: str, path: Path) -> None:
    """Write the files of a commit to `path` as a .tar.gz; equal commits give equal bytes.

    Links stay links, submodules become empty folders, and `.gitattributes` is ignored (export-ignore would drop files).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=_LEVEL) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for member, content in _iterate_members(repository, commit):
            tar.addfile(member, io.BytesIO(content))
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


def _iterate_members(repository: GitRepository, commit: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    entries = iter(repository.ls_tree(commit))
    folders: set[str] = set()
    while batch := list(itertools.islice(entries, _BATCH_SIZE)):
        contents = repository.read_blobs(entry.oid for entry in batch if entry.mode != "160000")
        for entry in batch:
            yield from _make_parent_folders(entry.path, folders)
            yield _make_member(entry, b"" if entry.mode == "160000" else next(contents))


def _make_parent_folders(path: str, seen: set[str]) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield the parent folders of a file that are not in `seen`; without an entry they would belong to root."""
    parts = path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        folder = "/".join(parts[:depth])
        if folder not in seen:
            seen.add(folder)
            yield _make_info(folder, tarfile.DIRTYPE, 0o755), b""


def _make_member(entry: TreeEntry, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if entry.mode == "160000":
        return _make_info(entry.path, tarfile.DIRTYPE, 0o755), b""
    if entry.mode == "120000":
        link = _make_info(entry.path, tarfile.SYMTYPE, 0o777)
        link.linkname = os.fsdecode(content)
        return link, b""
    file = _make_info(entry.path, tarfile.REGTYPE, 0o755 if entry.mode == "100755" else 0o644)
    file.size = len(content)
    return file, content


def _make_info(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.mtime = kind, mode, 0
    info.uid = info.gid = OWNER_ID
    return info
