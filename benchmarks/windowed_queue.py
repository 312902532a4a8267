"""Simulate what the order in which a trainer takes rollouts costs, and which rollouts it prefers.

    python -m benchmarks.windowed_queue [--running 1000] [--rollouts 20000] [--seed 0]
        [--page docs/guide/agents/objectives.md]

The queue is `mergemill_client.queue.WindowedQueue` itself (on PYTHONPATH: `client`), time is simulated. Latencies are
log-normal with mean 1, but one in a hundred is 50. The trainer takes at once whatever the queue gives it, so all
waiting is for rollouts.
"""

from __future__ import annotations

import argparse
import heapq
import math
from bisect import bisect, insort
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mergemill_client.queue import WindowedQueue

from benchmarks.page_table import write_table

SLOW_SHARE, SLOW_LATENCY = 0.01, 50.0
GREEDY = 10**9
"""A window without a bound: whatever is done is taken."""


@dataclass(frozen=True, kw_only=True)
class QueueCase:
    """A queue, and how rollouts are run that wait in it."""

    name: str
    capacity: int
    window: int
    running: int
    """Rollouts that run at a time."""
    limit: float = math.inf
    """Time after which a rollout is given up and dropped."""


@dataclass(frozen=True, kw_only=True)
class QueueRun:
    """What a trainer saw of a queue."""

    rate: float
    """Rollouts taken per unit of time."""
    overtaken: int
    """The most later rollouts that were taken before one."""
    early_latency: float
    """Mean latency of the first rollouts taken, as many as run at a time, over the mean of all."""
    early_slow: float
    """Share of slow ones among them."""
    dropped: int


def draw_latencies(number: int, seed: int) -> list[float]:
    """Return latencies of rollouts, some of which are slow."""
    random = Random(seed)  # noqa: S311 - a simulation
    return [SLOW_LATENCY if random.random() < SLOW_SHARE else random.lognormvariate(-0.5, 1.0) for _ in range(number)]


def simulate(latencies: Sequence[float], case: QueueCase) -> QueueRun:
    """Return what a trainer saw until the last rollout began; those that still wait or run then are not counted."""
    queue: WindowedQueue[None] = WindowedQueue(case.capacity, case.window)
    running: list[tuple[float, int]] = []
    taken: list[int] = []
    begun = dropped = 0
    now = 0.0
    while begun < len(latencies):
        while len(running) < case.running and len(queue) < case.capacity and begun < len(latencies):
            begun = queue.submit(timeout=0) + 1
            heapq.heappush(running, (now + min(latencies[begun - 1], case.limit), begun - 1))
        now, position = heapq.heappop(running)
        if latencies[position] > case.limit:
            queue.drop(position)
            dropped += 1
        else:
            queue.finish(position, None)
        taken += _take_ready(queue)
    early = [latencies[position] for position in taken[: case.running]]
    return QueueRun(
        rate=len(taken) / now,
        overtaken=count_overtaken(taken),
        early_latency=sum(early) / len(early) / (sum(latencies) / len(latencies)),
        early_slow=early.count(SLOW_LATENCY) / len(early),
        dropped=dropped,
    )


def _take_ready(queue: WindowedQueue[None]) -> list[int]:
    """Return the positions of all rollouts that can be taken now."""
    taken = []
    while True:
        try:
            taken.append(queue.take(timeout=0)[0])
        except TimeoutError:
            return taken


def count_overtaken(taken: Sequence[int]) -> int:
    """Return the most larger positions that stand before one."""
    most, earlier = 0, list[int]()
    for position in taken:
        most = max(most, len(earlier) - bisect(earlier, position))
        insort(earlier, position)
    return most


def make_cases(running: int) -> list[QueueCase]:
    """Return the cases of the table."""

    def make(name: str, size: int, window: float, limit: float = math.inf) -> QueueCase:
        capacity = size * running
        return QueueCase(
            name=name, capacity=capacity, window=max(1, round(window * capacity)), running=running, limit=limit
        )

    return [
        make("strict order", 1, 0),
        make("W = 0.3 N", 1, 0.3),
        make("W = N", 1, 1),
        make("strict order, N = 4 times the running", 4, 0),
        make("W = 0.3 N, N = 4 times the running", 4, 0.3),
        make("W = 0.3 N, dropped after 10", 1, 0.3, limit=10),
        make("W = 0.3 N, N = 4 times the running, dropped after 10", 4, 0.3, limit=10),
        make("whatever is done (no bound)", 1, GREEDY),
    ]


def render_table(latencies: Sequence[float], cases: Sequence[QueueCase]) -> str:
    """Return a Markdown table with a row for each case."""
    lines = [
        "| order | rollouts per unit of time | most overtaken | latency of the first | slow among them | dropped |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases:
        run = simulate(latencies, case)
        cells = [f"{run.rate:.0f}", f"{run.overtaken:,}", f"{run.early_latency:.2f}", f"{100 * run.early_slow:.1f} %"]
        lines.append(f"| {' | '.join((case.name, *cells, str(run.dropped)))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, and write it into a page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--running", type=int, default=1000, help="rollouts that run at a time")
    parser.add_argument("--rollouts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="a page whose table is replaced")
    arguments = parser.parse_args()
    table = render_table(draw_latencies(arguments.rollouts, arguments.seed), make_cases(arguments.running))
    print(table)
    if arguments.page:
        write_table(arguments.page, "benchmarks.windowed_queue", table)


if __name__ == "__main__":
    main()
