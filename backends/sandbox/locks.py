"""Locks among all processes of this machine, of all users and data folders.

Each name is a file in a folder that everybody may write to, locked by `flock`, so that a dead holder's lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from core.errors import Transient, make_write_error

FOLDERS = ("/run/lock", "/var/lock", "/tmp")  # noqa: S108 - it must be the same for all users
"""The first folder that is writable is used, else the folder for temporary files."""


@contextlib.contextmanager
def hold_machine_lock(scope: str, name: str, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a name within a scope exclusively, across threads and processes; others wait.

    Args:
        scope: the scope that the name distinguishes.
        name: name of the thing that is held.
        on_wait: function that is called where another process holds it.

    Raises:
        Transient: the lock file cannot be created.
    """
    with os.fdopen(open_lock_file(scope, name), "rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait:
                on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def hold_free_name(scope: str, names: Iterable[str]) -> Iterator[str]:
    """Hold the first of some names that no other process of this machine holds; yield it.

    Raises:
        Transient: a lock file cannot be created, or all names are held.
    """
    for name in names:
        with os.fdopen(open_lock_file(scope, name), "rb") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield name
            return
    raise Transient(f"other processes hold all of the names for {scope}")


def open_lock_file(scope: str, name: str) -> int:
    """Open the lock file of a name and return its descriptor; the caller closes it.

    Raises:
        Transient: it cannot be created.
    """
    key = hashlib.sha256(scope.encode()).hexdigest()[:12]
    path = _find_folder() / f"mergemill-{key}-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.lock"
    try:
        return _open_file(path)
    except OSError as error:
        raise make_write_error(f"cannot lock {path}", error) from error


def _find_folder() -> Path:
    folders = (Path(folder) for folder in FOLDERS)
    return next((f for f in folders if f.is_dir() and os.access(f, os.W_OK | os.X_OK)), Path(tempfile.gettempdir()))


def _open_file(path: Path) -> int:
    """Return a descriptor of the file. Another user's is opened for reading: kernels deny more in sticky folders."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDONLY | flags)
    except FileNotFoundError:
        pass
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o644)
    except FileExistsError:
        return os.open(path, os.O_RDONLY | flags)
    os.fchmod(handle, 0o644)  # regardless of the umask: other users must be able to read it
    return handle
