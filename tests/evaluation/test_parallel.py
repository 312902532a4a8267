"""Jobs in parallel: their order, their failures, and how many containers are prepared for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from backends.sandbox.base import ContainerPool, Sandbox
from backends.sandbox.execution import ResourceLimits
from evaluation.runner.parallel import PoolJob, run_parallel

LIMITS = ResourceLimits(seconds=1, memory_mb=1, disk_mb=1, pids=1, cpus=1, output_bytes=1)


@dataclass
class CountingSandbox:
    """Sandbox whose pools count the containers that they would start."""

    started: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @contextmanager
    def open_pool(self, image: str, *, limits: ResourceLimits) -> Iterator[CountingPool]:
        """Open a pool, which has a container."""
        yield CountingPool(self)


@dataclass
class CountingPool:
    """Pool of a `CountingSandbox`."""

    sandbox: CountingSandbox
    has_container: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start a container."""
        self.sandbox.started.append(1)
        self.has_container = True

    def work(self, number: int, *, last: bool) -> int:
        """Use a container up."""
        if not self.has_container:
            self.start()
        self.has_container = False
        if not last:
            self.start()
        time.sleep(self.sandbox.seconds * (number % 2 + 1))
        return number


def make_job(number: int) -> PoolJob[int]:
    return lambda pool, last: cast("CountingPool", pool).work(number, last=last)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 8])
def test_results_have_the_order_of_the_jobs_and_hardly_a_container_is_spare(n_jobs: int, width: int) -> None:
    sandbox = CountingSandbox(seconds=0.002)
    jobs = [make_job(number) for number in range(n_jobs)]
    assert run_parallel(cast("Sandbox", sandbox), "image", LIMITS, jobs, width) == list(range(n_jobs))
    assert 0 <= len(sandbox.started) - n_jobs < min(width, n_jobs)


def test_after_a_failure_no_job_begins() -> None:
    begun = []

    def fail(pool: ContainerPool, last: bool) -> Any:
        begun.append(last)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_parallel(cast("Sandbox", CountingSandbox()), "image", LIMITS, [fail] * 9, 2)
    assert len(begun) <= 2
