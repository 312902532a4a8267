"""Limits and results of commands that run in a container."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import Transient


class ContainerLossError(Transient):
    """A container was ended or removed from outside: neither its command nor one of its limits ended it.

    Only SIGKILL ends the first process of a container, and the kernel delivers that signal from outside alone.
    """


@dataclass(frozen=True, kw_only=True)
class ResourceLimits:
    """Limits of a container.

    `seconds` is wall time, `*_mb` are mebibytes, `output_bytes` is how much of stdout and stderr together is kept.
    """

    seconds: float
    memory_mb: int
    disk_mb: int
    pids: int
    cpus: float
    output_bytes: int

    @property
    def disk_bytes(self) -> int:
        """`disk_mb` in bytes."""
        return self.disk_mb * 1024 * 1024

    @property
    def shm_mb(self) -> int:
        """Size of /dev/shm in mebibytes: half of the memory, as Linux gives to a file system in memory.

        Its files count towards `memory_mb`.
        """
        return self.memory_mb // 2


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """Result of a command that ended.

    `killed_by` is `time`, `memory`, `disk` or None; where it is set, `exit_code` is that of the signal.
    """

    exit_code: int
    output: str
    """stdout and stderr, interleaved; head and tail where it was longer than the limit."""
    files: Mapping[str, bytes]
    """Content of the collected files that exist after the command."""
    seconds: float
    killed_by: str | None
