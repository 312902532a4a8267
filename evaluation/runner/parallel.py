"""Runs in containers of an image, a few in parallel."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from backends.sandbox.base import ContainerPool, Sandbox
from backends.sandbox.execution import ResourceLimits

MAX_PARALLEL_RUNS = 2
"""Containers of a task that run at the same time."""

T = TypeVar("T")
PoolJob = Callable[[ContainerPool, bool], T]
"""Takes a container pool and whether the pool need not prepare a container for a later job."""


def run_parallel(
    sandbox: Sandbox,
    image: str,
    limits: ResourceLimits,
    jobs: Sequence[PoolJob[T]],
    max_parallel: int = MAX_PARALLEL_RUNS,
) -> list[T]:
    """Run the jobs, at most `max_parallel` at a time, and return their results in the order of the jobs.

    Raises:
        Transient: the engine failed. An exception of a job is raised as well; jobs that have not begun are dropped.
    """
    width = min(max_parallel, len(jobs))
    queue = _JobQueue(jobs, width)
    results: dict[int, T] = {}

    def work() -> None:
        with sandbox.open_pool(image, limits=limits) as pool:
            last = False
            try:
                while taken := queue.take(has_container=not last):
                    number, job, last = taken
                    results[number] = job(pool, last)
            except BaseException:
                queue.clear()
                raise

    if width < 2:
        work()
    else:
        with ThreadPoolExecutor(width, thread_name_prefix="mergemill-evaluation") as threads:
            for future in [threads.submit(work) for _ in range(width)]:
                future.result()
    return [results[number] for number in range(len(jobs))]


class _JobQueue(Generic[T]):
    """Jobs that have not begun, and the number of containers that are prepared for them.

    Args:
        jobs: all jobs.
        width: number of pools, each of which begins with a prepared container.
    """

    def __init__(self, jobs: Sequence[PoolJob[T]], width: int) -> None:
        self._jobs = deque(enumerate(jobs))
        self._n_prepared = width
        self._lock = threading.Lock()

    def take(self, *, has_container: bool) -> tuple[int, PoolJob[T], bool] | None:
        """Return the next job, its number, and whether its pool need not prepare a container; None at the end.

        `has_container`: whether the job's pool has prepared a container. No more are prepared than jobs are left.
        """
        with self._lock:
            if not self._jobs:
                return None
            number, job = self._jobs.popleft()
            self._n_prepared -= has_container
            is_last = len(self._jobs) <= self._n_prepared
            self._n_prepared += not is_last
            return number, job, is_last

    def clear(self) -> None:
        """Drop the jobs."""
        with self._lock:
            self._jobs.clear()
