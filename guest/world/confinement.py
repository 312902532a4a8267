"""Rights that a process gives up before it reads a foreign program: files, rights, memory, further processes."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

MAX_DESCRIPTORS = os.sysconf("SC_OPEN_MAX")
CHANNEL = 3
"""Descriptor by which such a process is connected with ours."""
EMPTY_FOLDER = "/run/mergemill-empty"
"""Root folder of these processes: it holds nothing, so that there is no /proc, no program and no place to write."""


@dataclass(frozen=True)
class Confinement:
    """Limits of a process. `uid` is used by no other process of the container at the time."""

    uid: int
    memory_bytes: int


def make_empty_folder() -> None:
    """Make the folder that processes are locked into."""
    Path(EMPTY_FOLDER).mkdir(mode=0o555, exist_ok=True)


def enter_empty_folder() -> None:
    """Lock this process, and those forked from it, into the empty folder; the kernel ends them first for memory.

    The process must be root with CHROOT among its capabilities.
    """
    score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)  # Python's own files would touch, and so copy, far more
    os.write(score, b"1000")
    os.close(score)
    os.chroot(EMPTY_FOLDER)
    os.chdir("/")


def give_up_rights(limits: Confinement) -> None:
    """Give up rights for good. The process must be root with SETUID among its capabilities.

    The user has a process, this one, so none can be started; files cannot get a length.
    """
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


def keep_descriptors(output: int, channel: int) -> None:
    """Close all descriptors but an empty input, `output` for what is printed, and `channel`, which becomes CHANNEL.

    Both are above CHANNEL.
    """
    for source, target in ((output, 1), (output, 2), (channel, CHANNEL)):
        os.dup2(source, target)
    os.closerange(CHANNEL + 1, MAX_DESCRIPTORS)


def read_nothing() -> None:
    """Let this process, and those forked from it, read nothing from descriptor 0."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
