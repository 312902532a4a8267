"""Worlds in a container that is started when it is first needed, and again after it has ended."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from core.closable import Closable
from core.errors import MergemillError
from worlds.definitions import WorldDefinition
from worlds.server.service import ServedWorld, WorldServer


@dataclass
class _RunningServer:
    """A started server, the worlds it has loaded, and the event that ends it."""

    server: WorldServer
    opened: contextlib.ExitStack
    worlds: dict[str, ServedWorld] = field(default_factory=dict)


class WorldHost(Closable):
    """Server of worlds that is there whenever one is needed. Threads may share it.

    Args:
        open_server: function that starts a server, such as a call of `open_world_server`.
    """

    def __init__(self, open_server: Callable[[], AbstractContextManager[WorldServer]]) -> None:
        self._open_server = open_server
        self._running: _RunningServer | None = None
        self._lock = threading.Lock()
        self.n_started = 0
        """Containers started so far."""

    @property
    def is_running(self) -> bool:
        """Whether a container runs now."""
        running = self._running
        return running is not None and running.server.is_running

    def find(self, definition: WorldDefinition) -> tuple[WorldServer, ServedWorld]:
        """Return a running server and the world in it, loaded at the first call.

        Raises:
            InputError: the program breaks a rule, or the server has too many worlds.
            Transient: no container can be started.
        """
        with self._lock:
            if self._running is not None and not self._running.server.is_running:
                self._end()
            if self._running is None:
                self._start()
            running = self._running
            assert running is not None  # noqa: S101 - for the type checker
            if definition.name not in running.worlds:
                running.worlds[definition.name] = running.server.load(definition)
            return running.server, running.worlds[definition.name]

    def close(self) -> None:
        """End the container."""
        with self._lock:
            self._end()

    def _start(self) -> None:
        with contextlib.ExitStack() as opened:
            server = opened.enter_context(self._open_server())
            self._running = _RunningServer(server, opened.pop_all())
        self.n_started += 1

    def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            with contextlib.suppress(MergemillError):  # it has ended by itself
                running.opened.close()
