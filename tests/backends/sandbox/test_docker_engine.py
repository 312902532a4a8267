"""Engines that are missing, die during a run or answer with errors; a proxy before the real engine is disconnected."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from backends.sandbox import container_names
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from core.errors import CancelledRunError, MachineError, Transient
from tests.socket_proxy import EngineSocketProxy

LIMITS = ResourceLimits(seconds=30, memory_mb=256, disk_mb=100, pids=64, cpus=1, output_bytes=100_000)


@pytest.fixture
def cable(tmp_path, monkeypatch) -> Iterator[EngineSocketProxy]:
    cable = EngineSocketProxy(tmp_path / "docker.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{cable.path}")
    yield cable
    cable.disconnect()
    monkeypatch.undo()
    mine = f"name={container_names.make_container_name().rpartition('-')[0]}"
    left = subprocess.run(["docker", "ps", "-aq", "--filter", mine], capture_output=True, text=True, check=True)
    for container in left.stdout.split():
        subprocess.run(["docker", "rm", "-f", container], capture_output=True, check=False)


@pytest.fixture
def start_fake_engine(tmp_path, monkeypatch):
    """Start an engine with one answer to all requests."""
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
def test_something_else_behind_the_socket_is_a_machine_error(start_fake_engine, answer):
    start_fake_engine(answer)
    with pytest.raises(MachineError):
        DockerSandbox()


@pytest.mark.docker
def test_an_engine_that_dies_in_mid_run_is_transient(cable, base):
    sandbox = DockerSandbox()
    threading.Timer(1.0, cable.disconnect).start()
    started = time.monotonic()
    with pytest.raises(Transient, match="engine"):
        sandbox.run(base, ["sleep", "20"], limits=LIMITS)
    assert time.monotonic() - started < 10


@pytest.mark.docker
def test_an_engine_that_died_between_two_runs_is_transient(cable, base):
    sandbox = DockerSandbox()
    assert sandbox.run(base, ["true"], limits=LIMITS).exit_code == 0
    cable.disconnect()
    for use in (lambda: sandbox.run(base, ["true"], limits=LIMITS), lambda: sandbox.images.inspect(base), sandbox.reap):
        with pytest.raises(Transient) as raised:
            use()
        assert "scripts/setup docker" in raised.value.advice


@pytest.mark.docker
def test_an_engine_that_dies_while_a_file_is_sent_is_transient(cable, base):
    sandbox = DockerSandbox()
    threading.Timer(0.3, cable.disconnect).start()
    with pytest.raises(Transient):
        sandbox.run(base, ["true"], limits=LIMITS, files={"/tmp/large": bytes(400_000_000)})


@pytest.mark.docker
@pytest.mark.parametrize("command", [["sleep", "60"], ["sh", "-c", "exec >&- 2>&-; sleep 60"]])
def test_stop_ends_a_command_at_once_without_a_result(base, command):
    sandbox = DockerSandbox()
    threading.Timer(1.0, sandbox.stop).start()
    started = time.monotonic()
    with pytest.raises(CancelledRunError):
        sandbox.run(base, command, limits=LIMITS)
    with pytest.raises(CancelledRunError):
        sandbox.images.build(base, ["true"], "mergemill-sandbox-test/never:made", limits=LIMITS)
    assert time.monotonic() - started < 8
    assert sandbox.images.inspect("mergemill-sandbox-test/never:made") is None
    sandbox.flush()
