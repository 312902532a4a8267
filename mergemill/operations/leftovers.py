"""Things that killed processes of mergemill left behind: containers, folders for temporary files, half-written files.

Containers and folders are named after their process, so those of living processes are kept. The store may be shared
with other machines, whose processes cannot be seen: there only the files that were not written for GRACE_SECONDS is a
    leftover.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backends.sandbox.container_names import find_orphaned_folders

if TYPE_CHECKING:
    from core.settings.machine import SandboxSettings
    from core.settings.storage import StorageSettings

GRACE_SECONDS = 3600.0
"""Seconds since the last write after which a half-written file of the store counts as left."""
_HALF_WRITTEN = re.compile(r"\.[0-9a-f]{32}")
"""Name of a file that `taskdb.artifacts.write_atomically` did not finish."""
_HALF_CLONE = re.compile(r"\.half-[0-9a-f]{32}|\.new-.+")
"""Name of a clone, or a link to a clone, that was not finished."""
_GIT_LEFTOVER = re.compile(r"tmp_(pack|idx|rev|obj)_\w+|.+\.lock|shallow\.partial")
"""Name of a file that git did not finish; a lock of a dead git keeps every later git from writing."""


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something to remove. `size`: its bytes, None where that is unknown; `remove` returns whether it is gone."""

    kind: str
    """`container`, `folder`, `clone` or `file`."""
    name: str
    size: int | None
    remove: Callable[[], bool]


def find_leftovers(
    sandbox: SandboxSettings, storage: StorageSettings, now: Callable[[], float] = time.time
) -> Iterator[Leftover]:
    """Yield the leftovers of killed processes on this machine, in the store and on the engine.

    Raises:
        MachineError: no engine answers, where `sandbox.kind` is `docker`; all others are yielded before.
        Transient: the engine failed.
    """
    for folder in find_orphaned_folders():
        yield _make_leftover("folder", folder)
    oldest = now() - GRACE_SECONDS
    if storage.store_dir.is_dir():
        yield from (_make_leftover(*entry) for entry in _search_store(storage.store_dir) if _is_older(entry[1], oldest))
    if sandbox.kind == "docker":
        yield from _find_containers()


def _find_containers() -> Iterator[Leftover]:
    from backends.sandbox.docker import DockerSandbox  # noqa: PLC0415 - other sandboxes need no docker SDK

    sandbox = DockerSandbox()
    for container in sandbox.find_orphans():
        remove = partial(sandbox.engine.remover.remove, container)
        yield Leftover(kind="container", name=container[:12], size=None, remove=remove)


def _search_store(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield kind and path of the files that were not finished below a folder of the store."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        in_git = any(part.endswith(".git") for part in here.relative_to(folder).parts)
        halves = [name for name in folders if _HALF_CLONE.fullmatch(name)]
        yield from (("clone", here / name) for name in halves)
        loose = here.name == "objects" and in_git  # folders of finished objects, of which there are many
        folders[:] = [name for name in folders if name not in halves and not (loose and len(name) == 2)]
        pattern = _GIT_LEFTOVER if in_git else _HALF_WRITTEN
        yield from (("file", here / name) for name in files if pattern.fullmatch(name))


def _is_older(path: Path, oldest: float) -> bool:
    """Return whether nothing at or below a path was written since `oldest` (seconds since 1970)."""
    try:
        return all(entry.lstat().st_mtime < oldest for entry in (path, *path.rglob("*")))
    except OSError:
        return False  # somebody works there


def _make_leftover(kind: str, path: Path) -> Leftover:
    return Leftover(kind=kind, name=str(path), size=_measure(path), remove=partial(_remove, path))


def _measure(path: Path) -> int:
    """Return the bytes that a file or folder takes on its disk."""
    total = 0
    for entry in (path, *path.rglob("*")):
        try:
            total += entry.lstat().st_blocks * 512
        except OSError:
            continue
    return total


def _remove(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return not os.path.lexists(path)
