"""A proxy in front of the real engine that can be disconnected, to simulate a dead engine."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from pathlib import Path

ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


class EngineSocketProxy:
    """A Unix socket that forwards to the engine until it is disconnected; after that it does not answer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(ENGINE)
            self._ends += [client, engine]
            thread = threading.Thread(target=self._pump, args=(client, engine))
            self._threads.append(thread)
            thread.start()

    @staticmethod
    def _pump(client: socket.socket, engine: socket.socket) -> None:
        with client, engine, selectors.DefaultSelector() as both, contextlib.suppress(OSError):
            both.register(client, selectors.EVENT_READ, engine)
            both.register(engine, selectors.EVENT_READ, client)
            while True:
                for key, _ in both.select():
                    data = key.fileobj.recv(65536)
                    if not data:
                        return
                    key.data.sendall(data)

    def disconnect(self) -> None:
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._threads[0].join()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
