"""A command that runs while its engine's disk is full has no result."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.host_disk import LEAST_FREE_BYTES, DiskObserver, HostDisk
from benchmarks.isolated_engine import BASES, start_engine
from benchmarks.small_disk import fill_disk, mount_disk
from core.errors import Transient
from tests.small_base import remove_base

LIMITS = ResourceLimits(seconds=60, memory_mb=256, disk_mb=1000, pids=64, cpus=1, output_bytes=100_000)
WRITE = ["bash", "-c", "for n in 1 2 3 4 5 6; do sleep 0.5; head -c 1000000 /dev/zero > /opt/$n || exit 9; done"]

PACK = r"""
files="/bin/bash $(type -P head sleep timeout true)"
libraries=$(ldd $files | grep -o '/[^ :]* ' | sort -u)
cd / && tar -chf small.tar --no-recursion opt tmp etc/passwd etc/group $files $libraries 2> /dev/null
"""


class ChangingDisk(HostDisk):
    """A disk whose answers are given."""

    def __init__(self, *answers: bool) -> None:
        super().__init__("/")
        self.answers = list(answers)

    def is_full(self) -> bool:
        return self.answers.pop(0)


@pytest.mark.parametrize("answers", [(True, False, False), (False, True, False), (False, False, True)])
def test_a_disk_that_was_full_at_any_time_is_an_error(answers: tuple[bool, ...]) -> None:
    observer = DiskObserver(ChangingDisk(*answers))
    observer.look()
    with pytest.raises(Transient, match="the disk of the Docker engine is full"):
        observer.require()


def test_a_disk_with_room_and_that_of_another_machine_are_not_full(tmp_path: Path) -> None:
    for root in (str(tmp_path), "/there/is/no/such/folder"):
        observer = DiskObserver(HostDisk(root))
        observer.look()
        observer.require()


@pytest.fixture
def disk() -> Iterator[Path]:
    """A disk of its own, with the engine that DOCKER_HOST names."""
    folder = Path(tempfile.mkdtemp(prefix="mm-disk-", dir="/var/tmp"))  # overlay needs a real file system
    try:
        with mount_disk(folder / "disk", 2 << 30) as mounted:
            yield mounted
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def small_base(base: str) -> Iterator[str]:
    """Base image with the programs of these tests alone, which is quickly copied to another engine."""
    sandbox, name = DockerSandbox(), f"{BASES}:small-{uuid.uuid4().hex[:16]}"
    packed = sandbox.run(base, ["bash", "-c", PACK], limits=LIMITS, collect=["/small.tar"])
    assert packed.exit_code == 0, packed.output
    sandbox.images.import_rootfs(io.BytesIO(packed.files["/small.tar"]), name, env={}, labels={})
    yield name
    remove_base(name, sandbox.images)


@pytest.mark.docker
def test_a_disk_is_full_before_nothing_is_left(disk: Path) -> None:
    host_disk = HostDisk(str(disk))
    assert not host_disk.is_full()
    with fill_disk(disk):
        assert host_disk.is_full()
        os.truncate(disk / "full", (disk / "full").stat().st_size - 2 * LEAST_FREE_BYTES)
        assert not host_disk.is_full()


@pytest.mark.docker
@pytest.mark.timeout(180)
def test_a_full_disk_of_the_host_is_no_failure_of_a_command(
    disk: Path, small_base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = small_base
    with start_engine(disk / "engine", [base.partition(":")[2]]) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        sandbox = DockerSandbox()
        assert sandbox.run(base, WRITE, limits=LIMITS).exit_code == 0
        with run_while_full(disk), pytest.raises(Transient, match="the disk of the Docker engine is full"):
            sandbox.run(base, WRITE, limits=LIMITS)
        with sandbox.open_session(base, limits=LIMITS) as session:
            session.run("true", seconds=10)
            with run_while_full(disk), pytest.raises(Transient, match="the disk of the Docker engine is full"):
                session.run(WRITE[-1], seconds=30)
            assert session.run("head -c 1000000 /dev/zero > /opt/after", seconds=10).exit_code == 0


class run_while_full(threading.Thread):  # noqa: N801 - a context manager
    """Fill the disk for 1.5 seconds once a command of the block has written its first file."""

    def __init__(self, disk: Path) -> None:
        super().__init__()
        self.disk, self.left = disk, threading.Event()
        self.before = self.list_written()

    def list_written(self) -> set[Path]:
        """Return the first files of commands, in the layers of their containers."""
        return set((self.disk / "engine" / "data" / "overlay2").glob("*/diff/opt/1"))

    def run(self) -> None:
        while not self.list_written() - self.before and not self.left.wait(0.05):
            pass
        with fill_disk(self.disk):
            self.left.wait(1.5)

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.left.set()
        self.join()
