"""Container sessions of the Docker backend: shared files between commands, and replacement of dead containers."""

from __future__ import annotations

import io
import socket
import struct
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import IO, Any

import pytest

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.mounts import Mount
from backends.sandbox.output import CappedOutput, FrameDecoder
from backends.sandbox.session import _read_until_done, _RunningCommand

pytestmark = pytest.mark.docker
LIMITS = ResourceLimits(seconds=60, memory_mb=256, disk_mb=64, pids=64, cpus=1.0, output_bytes=4000)


@contextmanager
def tree() -> Iterator[IO[bytes]]:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("testbed/setup.py")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"x=1"))
    content.seek(0)
    yield content


def test_commands_run_as_root_with_tree_files_and_environment(base: str) -> None:
    with DockerSandbox().open_session(
        base,
        limits=LIMITS,
        tree=tree,
        files={"/run/mergemill/ca.pem": b"pem"},
        env={"COLOUR": "blue"},
        workdir="/testbed",
    ) as shell:
        first = shell.run(
            "cat setup.py /run/mergemill/ca.pem; echo $COLOUR; id -u; echo 1 > /tmp/a; exit 3", seconds=10
        )
        assert (first.exit_code, first.output) == (3, "x=1pemblue\n0\n")
        assert shell.run("cat /tmp/a", seconds=10).output == "1\n"


def test_a_background_process_does_not_delay_the_result(base: str) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        started = time.monotonic()
        assert shell.run("sleep 50 & echo done", seconds=30).output == "done\n"
        assert time.monotonic() - started < 8


def test_a_long_output_keeps_head_and_tail(base: str) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        text = shell.run("echo first; seq 100000; echo last", seconds=10).output
    assert text.startswith("first\n")
    assert text.endswith("last\n")
    assert len(text) < 4200


def test_a_full_disk_ends_the_container_and_the_next_command_has_a_fresh_one(base: str) -> None:
    fill = "for n in $(seq 400); do head -c 1000000 /dev/zero > /tmp/$n; sleep 0.01; done; sleep 20"
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        assert shell.run(fill, seconds=40).killed_by == "disk"
        assert shell.run("ls /tmp", seconds=10).output == ""


def test_a_container_whose_time_is_up_is_replaced(base: str) -> None:
    with DockerSandbox().open_session(base, limits=replace(LIMITS, seconds=1)) as shell:
        shell.run("echo here > /tmp/a", seconds=10)
        time.sleep(2.5)
        assert shell.run("cat /tmp/a", seconds=10).killed_by == "time"
        assert shell.run("cat /tmp/a", seconds=10).exit_code == 1


def test_files_are_written_and_read_between_commands(base: str) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        assert shell.read_file("/tmp/a") is None
        shell.write_files({"/tmp/a": b"one\xff"}, mode=0o755)
        assert shell.run("stat -c %a /tmp/a; cp /tmp/a /tmp/b; mkdir /tmp/c", seconds=10).output == "755\n"
        assert shell.read_file("/tmp/b") == b"one\xff"
        assert shell.read_file("/tmp/c") is None


def test_a_session_without_network_has_nothing_but_its_own_address(base: str) -> None:
    connect = "exec 3<>/dev/tcp/{}/{}"
    with DockerSandbox().open_session(base, limits=LIMITS, network=False) as shell:
        assert shell.run("cat /proc/net/dev | grep -c :", seconds=10).output == "1\n"
        assert shell.run(connect.format("172.17.0.1", 80), seconds=10).exit_code != 0
        served = "python3 -m http.server 8099 >/dev/null 2>&1 & sleep 1; " + connect.format("127.0.0.1", 8099)
        assert shell.run(served, seconds=20).exit_code == 0


def test_a_volume_is_shared_by_containers_and_can_be_read_only(base: str) -> None:
    volume = f"mergemill-test-{uuid.uuid4().hex[:8]}"
    sandbox = DockerSandbox()
    try:
        mount = Mount(source=volume, target="/opt/shared", read_only=False)
        with sandbox.open_session(base, limits=LIMITS, mounts=[mount]) as shell:
            assert shell.run("echo 1 > /opt/shared/a", seconds=10).exit_code == 0
        with sandbox.open_session(base, limits=LIMITS, mounts=[replace(mount, read_only=True)]) as shell:
            assert shell.run("cat /opt/shared/a", seconds=10).output == "1\n"
            assert shell.run("echo 2 > /opt/shared/a", seconds=10).exit_code != 0
        sandbox.flush()
        assert [stored.name for stored in sandbox.volumes.list_volumes(volume)] == [volume]
    finally:
        sandbox.flush()
        sandbox.volumes.remove(volume)
    assert sandbox.volumes.list_volumes(volume) == []


def test_a_command_of_another_thread_waits_for_the_start(base: str) -> None:
    """A container that is being filled has not ended."""
    is_filling = threading.Event()

    @contextmanager
    def fill_slowly() -> Iterator[IO[bytes]]:
        is_filling.set()
        time.sleep(0.5)
        with tree() as content:
            yield content

    with DockerSandbox().open_session(base, limits=LIMITS, tree=fill_slowly) as shell, ThreadPoolExecutor(1) as pool:
        first = pool.submit(shell.run, "cat /testbed/setup.py", seconds=10)
        assert is_filling.wait(10)
        assert shell.run("cat /testbed/setup.py", seconds=10).output == "x=1"
        assert first.result().output == "x=1"


def test_a_container_that_another_thread_closed_counts_as_ended(base: str) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        assert shell.run("echo 1 > /tmp/a", seconds=10).exit_code == 0
        removed = shell._container  # type: ignore[attr-defined]
        removed.client.remove_container(removed.id, force=True)
        assert shell.run("cat /tmp/a", seconds=10).killed_by == "time"
        assert shell.run("cat /tmp/a", seconds=10).exit_code == 1


class LateOutput:
    """A stream whose output comes when the engine was asked whether the command runs."""

    def __init__(self) -> None:
        self.reader, self.writer = socket.socketpair()
        self.fileno = self.reader.fileno

    def read(self, size: int) -> bytes:
        return self.reader.recv(size)

    def exec_inspect(self, _: str) -> dict[str, bool]:
        self.writer.sendall(struct.pack(">BxxxL", 1, 5) + b"late\n")
        return {"Running": False}


def test_output_that_comes_after_the_end_of_a_command_is_not_lost() -> None:
    stream, output = LateOutput(), CappedOutput(100)
    container: Any = SimpleNamespace(client=stream, stopping=threading.Event())
    disk: Any = SimpleNamespace(look=lambda: None)
    command = _RunningCommand(container, "x", stream, disk)
    assert _read_until_done(command, FrameDecoder(output), deadline=time.monotonic() + 30) is None
    assert output.get_text() == "late\n"
