"""An engine that is not there, dies in mid-run, or answers with errors: a proxy before the real one is cut."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox import owner
from backends.sandbox.base import Limits
from backends.sandbox.docker import DockerSandbox
from mergemill.errors import MachineError, Transient

LIMITS = Limits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=100_000)
ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


class Cable:
    """A Unix socket that leads to the engine until it is cut; then nobody answers."""

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

    def cut(self) -> None:
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


@pytest.fixture
def cable(tmp_path, monkeypatch) -> Iterator[Cable]:
    cable = Cable(tmp_path / "docker.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{cable.path}")
    yield cable
    cable.cut()
    monkeypatch.undo()
    mine = f"name={owner.new_name().rpartition('-')[0]}"
    left = subprocess.run(["docker", "ps", "-aq", "--filter", mine], capture_output=True, text=True, check=True)
    for container in left.stdout.split():
        subprocess.run(["docker", "rm", "-f", container], capture_output=True, check=False)


@pytest.fixture
def answering(tmp_path, monkeypatch):
    """Start an engine that gives one answer to everything."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "wrong.sock"))
    server.listen()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/wrong.sock")

    def serve(answer: bytes) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = server.accept()[0]
                with client:
                    client.recv(65536)
                    client.sendall(answer)

    def start(answer: bytes) -> None:
        threading.Thread(target=serve, args=(answer,), daemon=True).start()

    yield start
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def test_no_engine_is_a_machine_error_that_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(MachineError) as raised:
        DockerSandbox()
    assert raised.value.advice == "scripts/setup docker"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", b"nonsense\r\n\r\n"])
def test_something_else_behind_the_socket_is_a_machine_error(answering, answer):
    answering(answer)
    with pytest.raises(MachineError):
        DockerSandbox()


@pytest.mark.docker
def test_an_engine_that_dies_in_mid_run_is_transient(cable, base):
    sandbox = DockerSandbox()
    threading.Timer(1.0, cable.cut).start()
    started = time.monotonic()
    with pytest.raises(Transient, match="engine"):
        sandbox.run(base, ["sleep", "20"], limits=LIMITS)
    assert time.monotonic() - started < 10


@pytest.mark.docker
def test_an_engine_that_died_between_two_runs_is_transient(cable, base):
    sandbox = DockerSandbox()
    assert sandbox.run(base, ["true"], limits=LIMITS).exit_code == 0
    cable.cut()
    for use in (lambda: sandbox.run(base, ["true"], limits=LIMITS), lambda: sandbox.image(base), sandbox.reap):
        with pytest.raises(Transient) as raised:
            use()
        assert "scripts/setup docker" in raised.value.advice


@pytest.mark.docker
def test_an_engine_that_dies_while_a_file_is_sent_is_transient(cable, base):
    sandbox = DockerSandbox()
    threading.Timer(0.3, cable.cut).start()
    with pytest.raises(Transient):
        sandbox.run(base, ["true"], limits=LIMITS, files={"/tmp/large": bytes(400_000_000)})
