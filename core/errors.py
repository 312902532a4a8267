"""Errors other than a stage's verdict, as a tree.

::

    MergemillError            exit  cause
    ├── UsageError              2   the command line is wrong
    ├── InputError              3   an input is unusable (not a repository, unknown package, unknown task)
    ├── MachineError            4   this machine lacks a requirement; the advice is the command that provides it
    ├── Transient              75   network, disk or engine failed; the same command continues later
    └── CancelledRunError     130   Ctrl-C stopped a container

An unsuitable change raises none of these: it gives a `taskdb.records.Rejection`, a result. Any other exception is a
bug.
"""

from __future__ import annotations

import errno
import os
from typing import ClassVar

_NOT_PERMITTED = (errno.EACCES, errno.EPERM, errno.EROFS)


class MergemillError(Exception):
    """Base of the tree. `str(error)` is a line for people; `advice` is the next step, or empty."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice

    def format_line(self) -> str:
        """Return message and advice on a single line."""
        return f"{self} ({self.advice})" if self.advice else str(self)


class UsageError(MergemillError):
    """Unknown option, source scheme or format."""

    exit_code = 2


class InputError(MergemillError):
    """Unusable input: not a repository, a shallow clone, an unknown package, a malformed line."""

    exit_code = 3


class MachineError(MergemillError):
    """Missing requirement of the machine: no Docker engine, no base image. `advice` is the command that provides it."""

    exit_code = 4


class Transient(MergemillError):  # noqa: N818 - the architecture's word for a kind of failure
    """Failure of network, disk or engine during a run. Retried with backoff, then left for the next run; no verdict."""

    exit_code = 75


class CancelledRunError(MergemillError):
    """Ctrl-C during a container's run. Not retried; no verdict."""

    exit_code = 130


def make_write_error(what: str, error: OSError, *, advice: str = "") -> InputError | Transient:
    """Return the error for a file or folder that cannot be written: InputError where writing is not permitted.

    `what` names it, such as `cannot write the list FILE`; `advice` is for a failure that may pass, such as a full disk.
    """
    reason = error.strerror or str(error)
    if error.errno in _NOT_PERMITTED:
        return InputError(f"{what}: {reason}", advice="make it writable for this user, or choose another place")
    return Transient(f"{what}: {reason}", advice=advice)


def as_disk_error(error: BaseException) -> InputError | Transient | None:
    """Return a full disk as a Transient error and a file without permission as InputError; None for other errors."""
    if not isinstance(error, OSError):
        return None
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        at = f" at {where}" if where else ""
        return Transient(f"the disk is full{at}", advice="free some space, then run the same command again")
    if where and error.errno in _NOT_PERMITTED:
        advice = "give this user the right to it, or choose another place"
        return InputError(f"cannot access {where}: {error.strerror}", advice=advice)
    return None
