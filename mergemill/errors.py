"""Everything that can go wrong outside a stage's verdict, as one tree.

::

    MergemillError            exit  advice
    ├── UsageError              2   the command's words are wrong
    ├── InputError              3   what was given cannot be used (not a repository, unknown package, unknown task)
    ├── MachineError            4   this machine lacks something; the advice is the command that provides it
    ├── Transient              75   the network, the disk or the engine failed; the same command goes on later
    └── Stopped               130   Ctrl-C ended what a worker was at

An unsuitable change is none of these: it is a `taskdb.records.Rejection`, a result. Any other exception is a bug.
This module and `mergemill.config` are the only two of the application that the stages may import.
"""

from __future__ import annotations

import errno
from typing import ClassVar


class MergemillError(Exception):
    """Base of the tree. `str(error)` is one line for people; `advice` is what to do next, or empty."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice

    def line(self) -> str:
        """The one line a user sees."""
        return f"{self} ({self.advice})" if self.advice else str(self)


class UsageError(MergemillError):
    """An unknown option, source scheme or format."""

    exit_code = 2


class InputError(MergemillError):
    """Something given is not usable: not a repository, a shallow clone, an unknown package, a malformed line."""

    exit_code = 3


class MachineError(MergemillError):
    """The machine lacks something at the start: no Docker engine, no base image. `advice` is the mending command."""

    exit_code = 4


class Transient(MergemillError):  # noqa: N818 - the word of the architecture: a kind of failure, not a class of errors
    """Network, disk or engine failed in mid-run. Retried with backoff, then left for the next run; never a verdict."""

    exit_code = 75


class Stopped(MergemillError):  # noqa: N818 - nothing failed
    """The user stopped the run while a container was at work. Not tried again, never a verdict."""

    exit_code = 130


def disk_full(error: BaseException) -> Transient | None:
    """What a full disk is told as, wherever it was met; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    where = f" at {error.filename}" if error.filename else ""
    return Transient(f"the disk is full{where}", advice="free some space, then the same command again")
