"""A source distribution's files, read without ever unpacking it to disk.

An archive is a stranger's: nothing may lie or point outside its one top folder, nothing may be a device, and there are
limits on how much comes out of it. What packaging tools generate is dropped, so that only the project's own files
differ from release to release.
"""

from __future__ import annotations

import posixpath
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mergemill.errors import InputError

MAX_FILES = 20_000
MAX_BYTES = 200 * 1024 * 1024
"""Most that one archive may hold, uncompressed; also most that is downloaded."""

_GENERATED = re.compile(
    r"^(PKG-INFO|setup\.py\.orig)$|(^|/)[^/]+\.egg-info(/|$)|(^|/)(__pycache__|\.git)(/|$)|\.py[co]$"
)


class UnsafeSdistError(InputError):
    """An archive that cannot be read or may not be; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a tree: mode as git writes it (100644, 100755, 120000) and content; a link's content is its target."""

    mode: str
    content: bytes


def read(path: Path) -> dict[str, File]:
    """The project's files in an archive by their path below its top folder, sorted.

    Raises:
        UnsafeSdistError: the archive is damaged, too large, or reaches outside itself.
    """
    try:
        members = _zip(path) if path.name.endswith(".zip") else _tar(path)
        whole = dict(_bounded(members))
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise UnsafeSdistError(f"{path.name} cannot be read: {error}") from error
    tops = {name.partition("/")[0] for name in whole if "/" in name}
    if len(tops) != 1:
        raise UnsafeSdistError(f"{path.name} has {len(tops)} top folders instead of one")
    top = f"{tops.pop()}/"
    inner = {name.removeprefix(top): file for name, file in whole.items() if name.startswith(top)}
    kept = {name: file for name, file in sorted(inner.items()) if name and not _GENERATED.search(name)}
    for name, file in kept.items():
        if file.mode == "120000" and _outside(posixpath.join(posixpath.dirname(name), _text(file.content))):
            raise UnsafeSdistError(f"{path.name}: the link {name} points outside")
    if not kept:
        raise UnsafeSdistError(f"{path.name} is empty")
    return kept


def _bounded(members: Iterator[tuple[str, File]]) -> Iterator[tuple[str, File]]:
    """The members under clean names, as long as they are few and small enough."""
    n = total = 0
    for raw, file in members:
        name = raw.removeprefix("./")
        if _outside(name):
            raise UnsafeSdistError(f"{raw!r} lies outside")
        n, total = n + 1, total + len(file.content)
        if n > MAX_FILES or total > MAX_BYTES:
            raise UnsafeSdistError(f"more than {MAX_FILES} files or {MAX_BYTES // 1024**2} MB")
        yield posixpath.normpath(name), file


def _tar(path: Path) -> Iterator[tuple[str, File]]:
    seen: dict[str, File] = {}
    with tarfile.open(path, "r:*", encoding="utf-8", errors="surrogateescape") as archive:
        for member in archive:
            if member.isdir():
                continue
            if member.issym():
                file = File("120000", member.linkname.encode(errors="surrogateescape"))
            elif member.islnk():
                if member.linkname not in seen:
                    raise UnsafeSdistError(f"{path.name}: the hard link {member.name} points outside")
                file = seen[member.linkname]
            elif member.isreg():
                content = archive.extractfile(member)
                if member.size > MAX_BYTES or content is None:
                    raise UnsafeSdistError(f"{path.name}: {member.name} is larger than {MAX_BYTES // 1024**2} MB")
                file = File("100755" if member.mode & stat.S_IXUSR else "100644", content.read())
            else:
                raise UnsafeSdistError(f"{path.name}: {member.name} is neither file nor link")
            seen[member.name] = file
            yield member.name, file


def _zip(path: Path) -> Iterator[tuple[str, File]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            # The size in the directory may lie; a read of one byte more than allowed cannot.
            with archive.open(member) as stream:
                content = stream.read(MAX_BYTES + 1)
            mode = member.external_attr >> 16
            kind = "120000" if stat.S_ISLNK(mode) else "100755" if mode & stat.S_IXUSR else "100644"
            yield member.filename, File(kind, content)


def _outside(name: str) -> bool:
    normal = posixpath.normpath(name)
    return name.startswith("/") or normal == ".." or normal.startswith("../") or "\0" in name or "\\" in name


def _text(content: bytes) -> str:
    return content.decode(errors="surrogateescape")
