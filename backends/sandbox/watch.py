"""Watch over the resources that a running container uses.

Finds one that fills its disk, and slows down one that is greedy.

The limits of processes and disk hold, but the load that a container costs beyond its CPUs is not accounted to it: the
kernel writes back and removes its files, and copies and frees the memory of processes that may not start. Control
groups of version 1 cannot limit buffered writes either. A container that does much of it gets a smaller share of its
CPUs, so that it does less.
"""

from __future__ import annotations

import logging
import time
from typing import Protocol

from backends.sandbox.execution import ResourceLimits

log = logging.getLogger(__name__)

FIRST_CHECK = 1.0
"""Seconds until use is measured first; short runs are not measured."""
CHECK_SHARE = 0.02
"""Share of the time that measuring may take: the engine walks all new files each time."""
LONGEST_PAUSE = 10.0
"""Seconds between two checks at most, however long measuring takes on a busy machine."""
GREEDY_WRITE_RATE = 200 * 1024 * 1024
"""Bytes per second by which the files of a container with all its CPUs grow between two checks to make it greedy."""
GREEDY_CPU_SHARE = 0.2
"""Share of its CPUs that is left to a greedy container."""


class WatchedContainer(Protocol):
    """A running container, as far as the watch needs it."""

    id: str
    limits: ResourceLimits

    def count_written_bytes(self) -> int:
        """Return the bytes of the files that the container has written."""

    def count_processes(self) -> int:
        """Return how many processes it has."""

    def set_cpu_share(self, share: float) -> None:
        """Leave it this share of its CPUs."""


class UsageWatch:
    """Watches a command in a container, by a thread."""

    def __init__(self, container: WatchedContainer) -> None:
        self._container = container
        self._checked = time.monotonic()
        self._written = 0
        self._cpu_share = 1.0
        self.next_check = self._checked + FIRST_CHECK
        """Monotonic seconds at which `check` is due."""

    def check(self) -> bool:
        """Slow the container down while it is greedy; return whether it has used its disk limit and must be ended.

        Greedy is a container whose files grow fast for its share of the CPUs, or that has as many processes as it may.
        """
        started = time.monotonic()
        written = self._container.count_written_bytes()
        is_full = written >= self._container.limits.disk_bytes
        if not is_full:
            allowed = GREEDY_WRITE_RATE * self._cpu_share * (started - self._checked)
            is_greedy = written - self._written > allowed or self._has_all_processes()
            self._set_cpu_share(GREEDY_CPU_SHARE if is_greedy else 1.0)
        self._written, self._checked = written, started
        seconds = time.monotonic() - started
        self.next_check = started + seconds + min(max(FIRST_CHECK, seconds / CHECK_SHARE), LONGEST_PAUSE)
        return is_full

    def close(self) -> None:
        """Give a container that goes on its CPUs back."""
        self._set_cpu_share(1.0)

    def _has_all_processes(self) -> bool:
        return self._container.count_processes() >= self._container.limits.pids

    def _set_cpu_share(self, share: float) -> None:
        if share != self._cpu_share:
            log.info("container %s has %.0f %% of its CPUs now", self._container.id[:12], 100 * share)
            self._container.set_cpu_share(share)
            self._cpu_share = share
