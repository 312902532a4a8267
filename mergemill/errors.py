"""Everything that can go wrong outside a stage's verdict, as one tree.

::

    MergemillError            exit  advice
    ├── UsageError              2   the command's words are wrong
    ├── InputError              3   what was given cannot be used (not a repository, unknown package, unknown task)
    ├── MachineError            4   this machine lacks something; the advice is the command that provides it
    └── Transient              75   the network, the disk or the engine failed; the same command goes on later

An unsuitable change is none of these: it is a `taskdb.records.Rejection`, a result. Any other exception is a bug.
This module and `mergemill.config` are the only two of the application that the stages may import.
"""

from __future__ import annotations

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
