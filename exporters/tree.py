"""The tree at a task's base commit as an archive: what a rendered Dockerfile puts into /testbed."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mergemill.errors import InputError

if TYPE_CHECKING:
    from backends.git import Repository, TreeEntry

OWNER = 1000
"""uid and gid of user `mergemill` in every image."""
_AT_ONCE = 500
"""Blobs read through one pipe, so that a large tree is never in memory as a whole."""


def write_tree(repository: Repository, commit: str, path: Path) -> None:
    """Write the files of a commit to `path` as a .tar.gz: the same commit gives the same bytes.

    Links stay links, submodules are empty folders, `.gitattributes` is not asked (export-ignore would drop files).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for member, content in _members(repository, commit):
            tar.addfile(member, io.BytesIO(content))
    path.chmod(0o644)


def read_tree(path: Path) -> Iterator[tuple[str, bytes]]:
    """(path, content) of the regular files that `write_tree` packed.

    Raises:
        InputError: it is no such archive.
    """
    try:
        with tarfile.open(path, mode="r|gz") as tar:
            for member in tar:
                if member.isreg() and (content := tar.extractfile(member)):
                    yield member.name, content.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _members(repository: Repository, commit: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    entries = iter(repository.ls_tree(commit))
    folders: set[str] = set()
    while batch := list(itertools.islice(entries, _AT_ONCE)):
        contents = repository.blobs(entry.oid for entry in batch if entry.mode != "160000")
        for entry in batch:
            yield from _folders_above(entry.path, folders)
            yield _member(entry, b"" if entry.mode == "160000" else next(contents))


def _folders_above(path: str, seen: set[str]) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """The folders of a file that were not written yet: without entries of their own they would belong to root."""
    parts = path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        folder = "/".join(parts[:depth])
        if folder not in seen:
            seen.add(folder)
            yield _info(folder, tarfile.DIRTYPE, 0o755), b""


def _member(entry: TreeEntry, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if entry.mode == "160000":
        return _info(entry.path, tarfile.DIRTYPE, 0o755), b""
    if entry.mode == "120000":
        link = _info(entry.path, tarfile.SYMTYPE, 0o777)
        link.linkname = os.fsdecode(content)
        return link, b""
    file = _info(entry.path, tarfile.REGTYPE, 0o755 if entry.mode == "100755" else 0o644)
    file.size = len(content)
    return file, content


def _info(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.mtime = kind, mode, 0
    info.uid = info.gid = OWNER
    return info
