"""Mounts that a session mounts, as a pod has it: copies of volumes and folders, and tunnels to sockets."""

from __future__ import annotations

import functools
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from backends.sandbox.mounts import Mount
from core.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class SocketMount:
    """A socket of this machine and the path in the pod at which it is offered."""

    source: Path
    target: str

    @property
    def folder(self) -> str:
        """Folder of the socket in the pod."""
        return str(PurePosixPath(self.target).parent)


@dataclass(frozen=True, kw_only=True)
class CopyMount:
    """A volume or folder of which the pod has a copy: a tar that is unpacked in the folder `root`."""

    root: str
    write_tar: Callable[[IO[bytes]], None]


def split_mounts(
    mounts: Sequence[Mount], copy_volume: Callable[[Mount, IO[bytes]], None]
) -> tuple[list[SocketMount], list[CopyMount]]:
    """Return the sockets and copies that stand for mounts.

    Args:
        mounts: read-only mounts.
        copy_volume: function that writes a volume as a tar whose paths begin with the last part of the mount's target.

    Raises:
        UsageError: a folder has something else than files and sockets, such as pipes.
    """
    sockets, copies = [], []
    for mount in mounts:
        if not Path(mount.source).is_absolute():
            copies.append(_build_copy(mount, copy_volume))
            continue
        files = _list_files(Path(mount.source))
        paths = [path for path in files if path.is_socket()]
        sockets += [SocketMount(source=path, target=_place(path, mount)) for path in paths]
        if strange := [path for path in files if not (path.is_socket() or path.is_symlink() or path.is_file())]:
            raise UsageError(f"--sandbox kubernetes cannot mount {strange[0]}", advice="--sandbox docker")
        if len(files) > len(paths):
            copies.append(_build_copy(mount, _copy_folder))
    return sockets, copies


def _build_copy(mount: Mount, copy: Callable[[Mount, IO[bytes]], None]) -> CopyMount:
    return CopyMount(root=str(PurePosixPath(mount.target).parent), write_tar=functools.partial(copy, mount))


def _list_files(source: Path) -> list[Path]:
    """Return a folder's files, or the file itself."""
    return [path for path in source.rglob("*") if not path.is_dir()] if source.is_dir() else [source]


def _place(path: Path, mount: Mount) -> str:
    """Return the path in the pod of a file below a mount's source."""
    return str(PurePosixPath(mount.target) / path.relative_to(mount.source).as_posix())


def _copy_folder(mount: Mount, out: IO[bytes]) -> None:
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(mount.source, arcname=PurePosixPath(mount.target).name, filter=_own_by_root)


def _own_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
