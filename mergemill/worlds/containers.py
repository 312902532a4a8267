"""Containers in which the worlds of a command run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from worlds.server.limits import ServerLimits
from worlds.server.service import WorldServer, open_world_server

if TYPE_CHECKING:
    from backends.services import Services

OpenServer = Callable[[], AbstractContextManager[WorldServer]]
"""Starts a server of worlds."""
PYTHON_VERSION = "3.11"
"""Version of Python whose base image worlds run in."""
SPARE_EPISODES = 16
"""Episodes of a container beyond those that are played at once, for those that are being closed."""


def open_world_container(
    services: Services, *, worlds: int = ServerLimits.worlds, episodes: int = ServerLimits.episodes
) -> AbstractContextManager[WorldServer]:
    """Start a server of worlds in the base image of Python, which is made unless it exists.

    Args:
        services: sandbox, base images and settings.
        worlds: worlds that are loaded at once.
        episodes: episodes that are played at once.

    Raises:
        MachineError: no engine answers, or this machine can neither pull nor make the image.
        Transient: network or engine failed.
    """
    from builders.bases import ensure_base  # noqa: PLC0415 - discovery and building start faster without

    limits = ServerLimits(
        cpus=services.settings.limits.cpus, worlds=max(ServerLimits.worlds, worlds), episodes=episodes + SPARE_EPISODES
    )
    return open_world_server(services.sandbox, ensure_base("python", PYTHON_VERSION, services).name, limits)
