"""Limits of a container of worlds and of the processes in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from backends.sandbox.execution import ResourceLimits

MB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits of a container and of each process of a world or a check in it. `*_mb` are mebibytes."""

    cpus: float = 2.0
    memory_mb: int = 2048
    """Of the container."""
    lifetime_seconds: float = 86_400.0
    """Wall time of the container."""
    process_mb: int = 256
    """Address space of a process, of which Python itself takes about 40."""
    load_seconds: float = 10.0
    """Wall time of a reset."""
    call_seconds: float = 5.0
    """Wall time of a call."""
    check_seconds: float = 5.0
    """Wall time of a check."""
    output_bytes: int = MB
    """Text that a process may print."""
    message_bytes: int = 8 * MB
    """Size of a result and a state together."""
    worlds: int = 50
    episodes: int = 256
    checks_at_once: int = 2
    """Requests whose checks run at the same time."""
    checks_per_request: int = 4
    """Checks of a request that run at the same time."""

    def build_container_limits(self) -> ResourceLimits:
        """Return the limits of the container."""
        return ResourceLimits(
            seconds=self.lifetime_seconds,
            memory_mb=self.memory_mb,
            disk_mb=64,
            pids=self.episodes + self.checks_at_once * (1 + self.checks_per_request) + 64,
            cpus=self.cpus,
            output_bytes=MB,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the limits as `guest.world.server` takes them."""
        return {**asdict(self), "process_bytes": self.process_mb * MB}
