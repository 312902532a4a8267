"""Containers of worlds for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from builders.bases import ensure_base
from mergemill.services import make_services
from worlds.server.service import WorldServer, open_world_server

if TYPE_CHECKING:
    from core.config import Settings

PYTHON_VERSION = "3.11"
"""Version of Python whose base image worlds run in."""


@contextmanager
def open_servers(settings: Settings, number: int) -> Iterator[list[WorldServer]]:
    """Yield so many servers of worlds, each in a container of its own.

    Raises:
        MachineError: no engine answers, or there is no base image.
        Transient: the engine cannot be reached.
    """
    services = make_services(settings, engine=True)
    image = ensure_base("python", PYTHON_VERSION, services).name
    with ExitStack() as opened:
        yield [opened.enter_context(open_world_server(services.sandbox, image)) for _ in range(number)]
