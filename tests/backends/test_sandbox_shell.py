"""A container that stays: commands see what those before left, and whatever goes wrong ends with it."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO

import pytest

from backends.sandbox.base import Limits
from backends.sandbox.docker import DockerSandbox
from mergemill.errors import Stopped

pytestmark = pytest.mark.docker
LIMITS = Limits(seconds=60, memory_mb=256, disk_mb=64, pids=64, cpus=1.0, output_bytes=4000)


@contextmanager
def tree() -> Iterator[IO[bytes]]:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("testbed/setup.py")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"x=1"))
    content.seek(0)
    yield content


def test_commands_see_what_those_before_left(base: str) -> None:
    with DockerSandbox().shell(
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


def test_a_command_that_is_too_long_is_ended_and_the_container_stays(base: str) -> None:
    with DockerSandbox().shell(base, limits=LIMITS) as shell:
        shell.run("echo here > /tmp/a", seconds=10)
        started = time.monotonic()
        slow = shell.run("echo begin; sleep 60", seconds=1)
        assert time.monotonic() - started < 8
        assert (slow.killed_by, slow.output) == ("time", "begin\n")
        assert shell.run("cat /tmp/a", seconds=10).output == "here\n"


def test_what_a_command_leaves_behind_does_not_hold_up_the_next(base: str) -> None:
    with DockerSandbox().shell(base, limits=LIMITS) as shell:
        started = time.monotonic()
        assert shell.run("sleep 50 & echo done", seconds=30).output == "done\n"
        assert time.monotonic() - started < 8


def test_a_long_output_keeps_head_and_tail(base: str) -> None:
    with DockerSandbox().shell(base, limits=LIMITS) as shell:
        said = shell.run("echo first; seq 100000; echo last", seconds=10).output
    assert said.startswith("first\n")
    assert said.endswith("last\n")
    assert len(said) < 4200


def test_a_full_disk_takes_the_container_with_it_and_the_next_is_fresh(base: str) -> None:
    fill = "for n in $(seq 400); do head -c 1000000 /dev/zero > /tmp/$n; sleep 0.01; done; sleep 20"
    with DockerSandbox().shell(base, limits=LIMITS) as shell:
        assert shell.run(fill, seconds=40).killed_by == "disk"
        assert shell.run("ls /tmp", seconds=10).output == ""


def test_a_container_that_ended_is_followed_by_a_fresh_one(base: str) -> None:
    with DockerSandbox().shell(base, limits=replace(LIMITS, seconds=1)) as shell:
        shell.run("echo here > /tmp/a", seconds=10)
        time.sleep(2.5)
        assert shell.run("cat /tmp/a", seconds=10).killed_by == "time"
        assert shell.run("cat /tmp/a", seconds=10).exit_code == 1


def test_stop_ends_a_command(base: str) -> None:
    sandbox = DockerSandbox()
    with sandbox.shell(base, limits=LIMITS) as shell:
        threading.Timer(1, sandbox.stop).start()
        with pytest.raises(Stopped):
            shell.run("sleep 50", seconds=50)
