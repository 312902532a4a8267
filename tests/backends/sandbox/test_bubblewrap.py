"""What the sandbox of namespaces keeps a command from: files, network, processes and disk of this machine."""

from __future__ import annotations

import http.server
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from backends.sandbox.base import ContainerSession
from backends.sandbox.bubblewrap import IMAGE, BubblewrapSandbox, create_sandbox
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.mounts import Mount
from core.config import Settings
from core.errors import MachineError, UsageError
from tests.namespaces import require_bubblewrap

LIMITS = ResourceLimits(seconds=30, memory_mb=512, disk_mb=64, pids=64, cpus=1, output_bytes=10_000)


@pytest.fixture
def sandbox() -> BubblewrapSandbox:
    require_bubblewrap()
    return create_sandbox(Settings().sandbox, lambda _: None)


@pytest.fixture
def session(sandbox: BubblewrapSandbox) -> Iterator[ContainerSession]:
    with sandbox.open_session(IMAGE, limits=LIMITS, network=False) as opened:
        yield opened


def test_files_of_this_machine_are_not_there(session: ContainerSession, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the key")
    command = f"cat {tmp_path}/secret {Path.home()}/.bashrc /etc/shadow; ls /home /var; ls -A /root"
    seen = session.run(command, seconds=10)
    assert "the key" not in seen.output
    assert seen.output.count("No such file or directory") == 5
    assert session.run("touch /usr/here /usr/bin/ls", seconds=10).output.count("Read-only file system") == 2


def test_no_server_of_this_machine_answers(session: ContainerSession) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        tried = session.run(f"(exec 3<>/dev/tcp/127.0.0.1/{server.server_port}) && echo open; echo after", seconds=10)
        server.shutdown()
        thread.join()
    assert tried.output.split()[-1] == "after"
    assert "open" not in tried.output.split()


def test_no_process_of_this_machine_is_seen_or_killed(session: ContainerSession) -> None:
    seen = session.run(f"ls -d /proc/[0-9]* | wc -l; kill -9 {os.getpid()}; echo after", seconds=10)
    assert int(seen.output.split()[0]) < 10
    assert seen.output.endswith("after\n")


def test_a_link_leads_no_file_operation_out(session: ContainerSession, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("untouched")
    links = f"ln -s {tmp_path}/target /tmp/file; ln -s {tmp_path} /tmp/folder; ln -s /etc/passwd /tmp/own"
    session.run(links, seconds=10)
    assert session.read_file("/tmp/file") is None
    assert session.read_file("/tmp/folder/target") is None
    assert session.read_file("/tmp/own") is None
    session.write_files({"/tmp/file": b"new"})
    assert session.read_file("/tmp/file") == b"new"
    assert (tmp_path / "target").read_text() == "untouched"


def test_a_mounted_folder_is_read_only_and_its_pipes_are_open(sandbox: BubblewrapSandbox, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("for all")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        mount = Mount(source=str(tmp_path), target="/run/shared")
        with sandbox.open_session(IMAGE, limits=LIMITS, mounts=[mount]) as session:
            done = session.run("cat /run/shared/note; echo hello > /run/shared/pipe; touch /run/shared/new", seconds=10)
        assert done.output.startswith("for all")
        assert "Read-only file system" in done.output
        assert os.read(reader, 100) == b"hello\n"
    finally:
        os.close(reader)
    assert not (tmp_path / "new").exists()
    with (
        pytest.raises(UsageError, match="no volumes"),
        sandbox.open_session(IMAGE, limits=LIMITS, mounts=[replace(mount, source="a-volume")]),
    ):
        pass


def test_large_files_and_much_memory_are_refused(session: ContainerSession) -> None:
    written = session.run("head -c 200000000 /dev/zero > /tmp/big; stat -c %s /tmp/big", seconds=20)
    assert int(written.output.split()[-1]) <= LIMITS.disk_bytes
    assert "exhausted" in session.run("head -c 2000000000 /dev/zero | tail -n 1 | wc -c", seconds=120).output


def test_many_files_that_fill_the_disk_end_the_command(session: ContainerSession) -> None:
    fill = "for n in $(seq 40); do head -c 10000000 /dev/zero > /tmp/$n; sleep 0.05; done; sleep 5"
    assert session.run(fill, seconds=20).killed_by == "disk"


def test_deleted_files_that_are_held_open_fill_the_disk_too(session: ContainerSession) -> None:
    fill = 'for n in {10..40}; do eval "exec $n> /tmp/$n"; rm /tmp/$n; head -c 10000000 /dev/zero >& $n; done; sleep 9'
    assert session.run(fill, seconds=20).killed_by == "disk"


def test_what_others_write_ends_no_command(session: ContainerSession, tmp_path: Path) -> None:
    def fill() -> None:
        time.sleep(1)
        for number in range(4):
            (tmp_path / str(number)).write_bytes(bytes(LIMITS.disk_bytes // 2))

    with ThreadPoolExecutor() as threads:
        filled = threads.submit(fill)
        assert session.run("sleep 4; echo end", seconds=20).output == "end\n"
        filled.result()


def test_files_in_memory_are_limited(session: ContainerSession) -> None:
    size = session.run("df --output=size -BM /dev/shm | tail -1", seconds=20).output
    assert size.strip() == f"{LIMITS.memory_mb // 2}M"
    fill = "for n in $(seq 20); do head -c 60000000 /dev/zero > /dev/shm/$n; done; touch /dev/mine"
    output = session.run(fill, seconds=20).output
    assert "No space left" in output
    assert "Read-only file system" in output


def test_without_the_program_one_line_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="needs bubblewrap") as raised:
        create_sandbox(Settings().sandbox, lambda _: None)
    assert raised.value.advice == "apt-get install -y bubblewrap"
