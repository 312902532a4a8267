"""Locks among all processes of this machine, whoever started them and wherever they keep their data.

Files in a folder that everybody may write to, one a name; `flock` on them, so that a dead holder's lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mergemill.errors import Transient

FOLDERS = ("/run/lock", "/var/lock", "/tmp")  # noqa: S108 - the same for all users is what is wanted
"""The first that this process can write to is used; where none is, the folder for temporary files."""


@contextlib.contextmanager
def machine_lock(scope: str, name: str) -> Iterator[None]:
    """One holder at a time of a name within a scope, across threads and processes; others wait.

    Raises:
        Transient: the lock's file cannot be made.
    """
    with os.fdopen(lock_file(scope, name), "rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def lock_file(scope: str, name: str) -> int:
    """A descriptor of the file on which the lock of a name is taken; the caller closes it.

    Raises:
        Transient: it cannot be made.
    """
    key = hashlib.sha256(scope.encode()).hexdigest()[:12]
    path = _folder() / f"mergemill-{key}-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.lock"
    try:
        return _opened(path)
    except OSError as error:
        raise Transient(f"cannot lock {path}: {error.strerror}") from error


def _folder() -> Path:
    folders = (Path(folder) for folder in FOLDERS)
    return next((f for f in folders if f.is_dir() and os.access(f, os.W_OK | os.X_OK)), Path(tempfile.gettempdir()))


def _opened(path: Path) -> int:
    """A descriptor of the file. Another user's is opened for reading: kernels refuse more in folders like these."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDONLY | flags)
    except FileNotFoundError:
        pass
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o644)
    except FileExistsError:
        return os.open(path, os.O_RDONLY | flags)
    os.fchmod(handle, 0o644)  # whatever the umask: others must be able to read it
    return handle
