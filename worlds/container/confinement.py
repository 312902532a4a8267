"""What a process gives up before it reads a foreign program: files, rights, memory, further processes."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

EMPTY_FOLDER = "/run/mergemill-empty"
"""Root folder of these processes: it holds nothing, so that there is no /proc, no program and no place to write."""


@dataclass(frozen=True)
class Confinement:
    """Limits of one process. `uid` is used by no other process of the container at the time."""

    uid: int
    memory_bytes: int


def make_empty_folder() -> None:
    """Make the folder that processes are locked into."""
    Path(EMPTY_FOLDER).mkdir(mode=0o555, exist_ok=True)


def confine(limits: Confinement) -> None:
    """Give up rights for good. The process must be root with CHROOT and SETUID among its capabilities.

    The user has one process, this one, so none can be started; files cannot get a length; the kernel ends this process
    before those of the server when the container's memory is used up.
    """
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    os.chroot(EMPTY_FOLDER)
    os.chdir("/")
    for kind, limit in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_NPROC, 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    os.setgroups([])
    os.setresgid(limits.uid, limits.uid, limits.uid)
    os.setresuid(limits.uid, limits.uid, limits.uid)
