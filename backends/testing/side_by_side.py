"""Runs in boxes of one image, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from backends.sandbox.base import Limits, Sandbox, Series

WIDTH = 2
"""How many boxes of one task are at work at a time."""

T = TypeVar("T")
Job = Callable[[Series, bool], T]
"""Is given boxes and whether it is the last that uses them."""


def side_by_side(sandbox: Sandbox, image: str, limits: Limits, jobs: Sequence[Job[T]]) -> list[T]:
    """What each job gives, in their order; at most WIDTH of them at a time.

    Raises:
        Transient: the engine failed; what else a job raises. The jobs that had not begun are given up then.
    """
    todo = deque(enumerate(jobs))
    results: dict[int, T] = {}

    def work() -> None:
        with sandbox.series(image, limits=limits) as boxes:
            try:
                while todo:
                    number, job = todo.popleft()
                    results[number] = job(boxes, not todo)
            except IndexError:  # the other one was quicker
                return
            except BaseException:
                todo.clear()
                raise

    width = min(WIDTH, len(jobs))
    if width < 2:
        work()
    else:
        with ThreadPoolExecutor(width, thread_name_prefix="mergemill-side") as threads:
            for future in [threads.submit(work) for _ in range(width)]:
                future.result()
    return [results[number] for number in range(len(jobs))]
