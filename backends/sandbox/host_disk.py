"""Free space where an engine keeps the data that its containers write.

A command that finds the disk of its host full fails as a command does that has a bug: no report, a patch that does not
apply, a test that cannot write. Only the host knows better, so it looks while a command runs.
"""

from __future__ import annotations

import os

from core.errors import Transient

LEAST_FREE_BYTES = 32 << 20
"""ext4 counts up to 16 MB as free that nobody can have."""
LEAST_FREE_FILES = 100
FULL_ADVICE = "free disk space, for example: mergemill images prune"


class HostDisk:
    """File system of an engine's folder `root`. That of an engine on another machine is never found full."""

    def __init__(self, root: str) -> None:
        self._root = root if os.path.isdir(root) else None  # noqa: PTH112 - a path of the engine

    def is_full(self) -> bool:
        """Return whether no container can write now; root's reserve counts as free, since containers run as root."""
        if self._root is None:
            return False
        try:
            usage = os.statvfs(self._root)
        except OSError:
            return False
        has_files = not usage.f_files or usage.f_ffree > LEAST_FREE_FILES  # some file systems have no limit of files
        return usage.f_bfree * usage.f_frsize < LEAST_FREE_BYTES or not has_files


class DiskObserver:
    """Whether a disk was full at any of the moments at which it was looked at, the beginning and the end included."""

    def __init__(self, disk: HostDisk) -> None:
        self._disk = disk
        self._was_full = disk.is_full()

    def look(self) -> None:
        """Look now."""
        self._was_full = self._was_full or self._disk.is_full()

    def require(self) -> None:
        """Look for the last time.

        Raises:
            Transient: the disk was full, so the command's outcome is not evidence.
        """
        self.look()
        if self._was_full:
            raise Transient("the disk of the Docker engine is full", advice=FULL_ADVICE)
