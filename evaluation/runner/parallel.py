"""Runs in containers of an image, a few in parallel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from backends.sandbox.base import ContainerPool, Sandbox
from backends.sandbox.execution import ResourceLimits

MAX_PARALLEL_RUNS = 2
"""Containers of a task that run at the same time."""

T = TypeVar("T")
PoolJob = Callable[[ContainerPool, bool], T]
"""Takes a container pool and whether no later job uses that pool."""


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
    queue = deque(enumerate(jobs))
    results: dict[int, T] = {}

    def work() -> None:
        with sandbox.open_pool(image, limits=limits) as pool:
            try:
                while queue:
                    number, job = queue.popleft()
                    results[number] = job(pool, not queue)
            except IndexError:  # another worker took the last job
                return
            except BaseException:
                queue.clear()
                raise

    width = min(max_parallel, len(jobs))
    if width < 2:
        work()
    else:
        with ThreadPoolExecutor(width, thread_name_prefix="mergemill-evaluation") as threads:
            for future in [threads.submit(work) for _ in range(width)]:
                future.result()
    return [results[number] for number in range(len(jobs))]
