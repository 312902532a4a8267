"""A container that is greedy gets a smaller share of its CPUs, as long as it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
import requests

from backends.sandbox import output, watch
from backends.sandbox.container import Container
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.host_disk import HostDisk
from backends.sandbox.output import READ_RATE, ReadPacer
from backends.sandbox.watch import GREEDY_CPU_SHARE, UsageWatch

LIMITS = ResourceLimits(seconds=60, memory_mb=256, disk_mb=4096, pids=64, cpus=1.0, output_bytes=4000)
MEGABYTE = 1024 * 1024
CROWD = """
import os, pathlib, sys, threading, time
wanted, seconds = int(sys.argv[1]), float(sys.argv[2])
try:
    for _ in range(wanted):
        threading.Thread(target=time.sleep, args=(seconds,)).start()
except RuntimeError:
    pass
files = [pathlib.Path("/sys/fs/cgroup", name) for name in ("cpu/cpu.cfs_quota_us", "cpu.max")]
(file,) = [file for file in files if file.exists()]
read = lambda: file.read_text().split()[0]
first, end = read(), time.monotonic() + seconds
while read() == first and time.monotonic() < end:
    time.sleep(0.1)
print(read(), flush=True)
os._exit(0)
"""
"""Starts so many threads and prints the quota of the container when it has changed, or after some seconds."""


@dataclass
class StubContainer:
    """Container whose use the test sets."""

    limits: ResourceLimits = LIMITS
    id: str = "0" * 64
    written: int = 0
    processes: int = 1
    shares: list[float] = field(default_factory=list)

    def count_written_bytes(self) -> int:
        return self.written

    def count_processes(self) -> int:
        return self.processes

    def set_cpu_share(self, share: float) -> None:
        self.shares.append(share)


class Clock:
    """Time that passes when the test says so, or when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(watch, "time", clock)
    monkeypatch.setattr(output, "time", clock)
    return clock


def observe(container: StubContainer, clock: Clock, *megabytes: int) -> list[bool]:
    """Check a container each second, after it has written so much."""
    checks = UsageWatch(cast("Any", container))
    events = []
    for size in megabytes:
        container.written += size * MEGABYTE
        clock.sleep(1.0)
        events.append(checks.check())
    checks.close()
    return events


def test_fast_growth_costs_cpus_until_it_ends(clock: Clock) -> None:
    container = StubContainer()
    observe(container, clock, 300, 60, 60, 30, 150)
    assert container.shares == [GREEDY_CPU_SHARE, 1.0]


def test_steady_growth_costs_nothing(clock: Clock) -> None:
    container = StubContainer()
    assert not any(observe(container, clock, *[190] * 20))
    assert container.shares == []


def test_all_processes_in_use_cost_cpus(clock: Clock) -> None:
    container = StubContainer(processes=64)
    observe(container, clock, 0, 0)
    assert container.shares == [GREEDY_CPU_SHARE, 1.0]  # the second by the end of the watch
    container = StubContainer(processes=63)
    observe(container, clock, 0, 0)
    assert container.shares == []


def test_a_full_disk_is_found(clock: Clock) -> None:
    container = StubContainer(limits=replace(LIMITS, disk_mb=100))
    assert observe(container, clock, 99, 1) == [False, True]


def test_output_is_read_at_the_rate_after_a_burst(clock: Clock) -> None:
    pacer, started = ReadPacer(), clock.now
    for _ in range(8 * READ_RATE // MEGABYTE):
        pacer.wait(MEGABYTE)
    assert clock.now - started == pytest.approx(7, abs=0.1)
    clock.now += 100
    started = clock.now
    pacer.wait(READ_RATE)
    assert clock.now == started


class SlowEngine:
    """Engine whose updates of containers wait, as that of a container with output that nobody reads."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.quotas: list[int] = []

    def update_container(self, _: str, cpu_quota: int) -> None:
        assert self.go.wait(60)
        self.quotas.append(cpu_quota)
        if len(self.quotas) == 1:
            raise requests.ReadTimeout("Read timed out.")


def test_output_is_read_while_the_engine_changes_the_cpus(tmp_path: Path) -> None:
    """The first request fails, and the second is made after it."""
    engine = SlowEngine()
    with ThreadPoolExecutor(4) as threads:
        container = Container("0" * 64, lambda: engine, threads, LIMITS, threading.Event(), HostDisk(str(tmp_path)))
        container.set_cpu_share(GREEDY_CPU_SHARE)
        container.set_cpu_share(1.0)
        assert engine.quotas == []
        engine.go.set()
    assert engine.quotas == [20_000, 100_000]


@pytest.mark.docker
def test_a_command_with_too_many_processes_is_slowed_and_the_next_one_is_not(base: str) -> None:
    with DockerSandbox().open_session(base, limits=LIMITS) as shell:
        shell.write_files({"/tmp/crowd.py": CROWD.encode()})
        assert shell.run("python3 /tmp/crowd.py 70 30", seconds=40).output == "20000\n"
        assert shell.run("python3 /tmp/crowd.py 10 2.5", seconds=40).output == "100000\n"
