"""Tunnel: a Unix socket of this machine as a socket in a pod that has no network.

A container of the pod in which nothing foreign runs offers the socket (`relay.py`); its connections come here by exec.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from backends.sandbox.container import POLL_SECONDS
from backends.sandbox.kubernetes.api import STDERR, STDOUT, ExecStream
from core.errors import Transient
from guest.pod import POD_FOLDER

log = logging.getLogger(__name__)

RELAY_SCRIPT = POD_FOLDER / "relay.py"
FRAME = struct.Struct(">IBI")
OPEN, DATA, END, CLOSE, READY = range(5)
CHUNK = 1 << 15
PATIENCE = 120.0
"""Seconds that a connection waits for a server that is started again."""
PAUSE = 0.5
START_SECONDS = 60.0
"""Longest wait for the socket in the pod."""


class SocketTunnel:
    """Carries the connections of a socket in a pod to a socket of this machine, until it is closed.

    Args:
        open_relay: function that starts the relay in the pod.
        source: path of the socket on this machine.

    Raises:
        Transient: the relay cannot be started.
    """

    def __init__(self, open_relay: Callable[[], ExecStream], source: Path) -> None:
        self._open_relay = open_relay
        self._source = source
        self._closed = threading.Event()
        self._ready = threading.Event()
        self._stream = open_relay()
        self._thread = threading.Thread(target=self._serve, name="mergemill-tunnel", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            self.close()
            raise Transient(f"the tunnel for {source} does not open", advice="run the same command again later")

    def close(self) -> None:
        """End the relay and its connections."""
        self._closed.set()
        self._thread.join()

    def _serve(self) -> None:
        """Serve a relay after the other: its exec breaks where the API server is started again."""
        while not self._closed.is_set():
            with contextlib.closing(RelayConnections(self._stream, self._source, self._ready)) as connections:
                connections.serve(self._closed)
            while not self._closed.wait(PAUSE):
                try:
                    self._stream = self._open_relay()
                    break
                except Transient as error:
                    log.info("the tunnel to a pod is interrupted: %s", error)


class RelayConnections:
    """Connections of a relay.

    Args:
        stream: exec of the relay.
        source: path of the socket on this machine.
        ready: set once the socket in the pod is there.
    """

    def __init__(self, stream: ExecStream, source: Path, ready: threading.Event) -> None:
        self._stream = stream
        self._source = source
        self._ready = ready
        self._queues: dict[int, SimpleQueue[bytes | None]] = {}
        self._writing = threading.Lock()
        self._is_open = True

    def serve(self, closed: threading.Event) -> None:
        """Read frames until the relay ends or `closed` is set."""
        pending = bytearray()
        while not closed.is_set() and (message := self._stream.read(POLL_SECONDS / 4)) is not None:
            channel, data = message
            if channel == STDERR:
                log.info("relay: %s", data.decode(errors="replace").strip())
            if channel != STDOUT:
                continue
            pending += data
            while len(pending) >= FRAME.size:
                number, kind, length = FRAME.unpack_from(pending)
                if len(pending) < FRAME.size + length:
                    break
                payload = bytes(pending[FRAME.size : FRAME.size + length])
                del pending[: FRAME.size + length]
                self._take(number, kind, payload)

    def _take(self, number: int, kind: int, payload: bytes) -> None:
        if kind == OPEN:
            self._queues[number] = SimpleQueue()
            threading.Thread(target=self._carry, args=(number, self._queues[number]), daemon=True).start()
        elif kind == READY:
            self._ready.set()
        elif (queue := self._queues.get(number)) is not None:
            queue.put(payload if kind == DATA else None)

    def _carry(self, number: int, queue: SimpleQueue[bytes | None]) -> None:
        """Carry both directions of a connection."""
        try:
            with contextlib.suppress(OSError), self._connect() as server:
                threading.Thread(target=_send_queue, args=(queue, server), daemon=True).start()
                while data := server.recv(CHUNK):
                    self._send(number, DATA, data)
        finally:
            self._queues.pop(number, None)
            queue.put(None)
            with contextlib.suppress(OSError):
                self._send(number, CLOSE)

    def _connect(self) -> socket.socket:
        """Return a connection to the server, which may be missing while it is started again."""
        deadline = time.monotonic() + PATIENCE
        while True:
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._source))
            except OSError:
                server.close()
                if not self._is_open or time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)
            else:
                return server

    def _send(self, number: int, kind: int, payload: bytes = b"") -> None:
        with self._writing:
            self._stream.write(FRAME.pack(number, kind, len(payload)) + payload)

    def close(self) -> None:
        """Close the stream and end all connections."""
        self._is_open = False
        self._stream.close()
        for queue in list(self._queues.values()):
            queue.put(None)


def _send_queue(queue: SimpleQueue[bytes | None], server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while (data := queue.get()) is not None:
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)
