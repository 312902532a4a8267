"""Measure the queue of rollouts: `python -m benchmarks.sampling --db FILE [--queue N] [--rollouts N] [--page PAGE]`.

Works on a copy of a database file with certified tasks and of the store in its folder. Measured are

- the queue: seconds to plan N rollouts, to store them, and to plan them again when all but a tenth are stored, as the
  command that goes on does, and the memory of the process;
- the driver: wall seconds of a rollout of `noop`, in its container and graded, with `--workers` at once, and as a ratio
  to the limit: to open the same container and to grade the same submission on the same number of threads, without
  queue, plan, record or driver. Both are measured in turn, in `--rounds` rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import verifiers
from backends.services import Services
from benchmarks.page_table import write_table
from core.config import Settings
from core.settings.storage import StorageSettings
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import SampleRequest, list_pending, select_tasks
from mergemill.agents.sampling.run import sample
from mergemill.execution.services import make_services
from samplers.rollouts.container import open_rollout_container
from samplers.scaffolds.base import Scaffold
from samplers.scaffolds.noop import NoopScaffold
from samplers.scaffolds.react import ReactScaffold
from samplers.subjects.task_subject import make_task_subject
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus
from taskdb.store import Store

T = TypeVar("T")
BATCH = 100
"""Records that are stored at once; sampling stores each rollout alone."""


@dataclass(frozen=True, kw_only=True)
class QueueFigures:
    """Seconds of one queue, and the memory of the process after it."""

    size: int
    plan: float
    store: float
    go_on: float
    left: int
    megabytes: int


def measure_queue(storage: StorageSettings, size: int) -> QueueFigures:
    """Plan, store and plan again a queue of at least `size` rollouts."""
    with Store.open(storage.db, create=False, writes=True) as store:
        tasks = select_tasks(store, _make_request(NoopScaffold(), 1))
        request = _make_request(ReactScaffold(), -(-size // len(tasks)))
        plan, (n_planned, pending) = _time(lambda: list_pending(store, tasks, request))
        done = [_make_record(rollout.plan) for rollout in pending[: len(pending) * 9 // 10]]
        batches = [done[start : start + BATCH] for start in range(0, len(done), BATCH)]
        stored, _ = _time(lambda: [store.add(*batch) for batch in batches])
        go_on, (_, left) = _time(lambda: list_pending(store, tasks, request))
    if len(left) != len(pending) - len(done):
        raise SystemExit(f"{len(left)} rollouts are left of {len(pending)}, {len(done)} of them stored")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return QueueFigures(size=n_planned, plan=plan, store=stored, go_on=go_on, left=len(left), megabytes=peak)


def measure_driver(settings: Settings, rollouts: int, rounds: int) -> tuple[list[float], list[float]]:
    """Return wall seconds per rollout by `sample`, and by its containers and gradings alone, of each round."""
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        tasks = select_tasks(store, _make_request(NoopScaffold(), 1))
    each = -(-rollouts // len(tasks))
    services = make_services(settings, engine=True)
    driven, bare = [], []
    for number in range(1, rounds + 1):
        limit = settings.cluster.workers
        with ThreadPoolExecutor(limit) as threads:
            seconds, _ = _time(lambda: list(threads.map(lambda task: run_bare(task, services), tasks * each)))
        bare.append(seconds / (len(tasks) * each))
        progress = SamplingProgress()
        seconds, exit_code = _time(lambda: sample(_make_request(NoopScaffold(), number * each), settings, progress))  # noqa: B023
        if exit_code or progress.totals.statuses["done"] != len(tasks) * each:
            raise SystemExit(f"sampling ended with {exit_code}: {dict(progress.totals.statuses)}")
        driven.append(seconds / (len(tasks) * each))
    return driven, bare


def run_bare(task: Task, services: Services) -> None:
    """Open the container of a rollout, and grade an empty submission."""
    reward = verifiers.select_reward(task)
    subject = make_task_subject(task, services, reward.submission)
    with open_rollout_container(
        task.image, subject, services, seconds=60, programs=(), gateway_folder=None
    ) as container:
        submission = container.collect_submission()
    verifiers.grade(task, services, submission)


def render_result(queue: QueueFigures, driven: Sequence[float], bare: Sequence[float], workers: int) -> str:
    """Return what was measured as Markdown."""
    ratios = [value / other for value, other in zip(driven, bare, strict=True)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return "\n".join(
        [
            "| | |",
            "|---|---:|",
            f"| plan {queue.size:,} rollouts | {queue.plan:.2f} s |",
            f"| store nine tenths of them, {BATCH} at once | {queue.store:.2f} s |",
            f"| plan again: {queue.left:,} are left | {queue.go_on:.2f} s |",
            f"| memory of the process at its peak | {queue.megabytes:,} MB |",
            f"| one rollout of `noop` with {workers} at once | {statistics.median(driven):.2f} s |",
            f"| its container and its grading alone | {statistics.median(bare):.2f} s |",
            f"| ratio, median and range of {len(ratios)} rounds | {statistics.median(ratios):.2f} ({spread}) |",
            "",
            f"Machine: {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end.",
            "",
        ]
    )


def _time(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _make_request(scaffold: Scaffold, attempts: int) -> SampleRequest:
    filters = TaskFilters(status="certified", kind=("bugfix", "feature"))
    return SampleRequest(filters=filters, scaffolds=(scaffold,), model="queue", attempts=attempts)


def _make_record(plan: RolloutPlan) -> Rollout:
    return Rollout(
        parent=plan.task,
        name=plan.name,
        plan=plan.key,
        scaffold=plan.scaffold,
        scaffold_version=plan.scaffold_version,
        model=plan.model,
        attempt=plan.attempt,
        status=RolloutStatus.DONE,
        value=0.0,
    )


def main(arguments: Sequence[str]) -> int:
    """Measure, print and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampling")
    parser.add_argument("--db", required=True, type=Path, help="database file; its store lies in the same folder")
    parser.add_argument("--queue", type=int, default=20_000)
    parser.add_argument("--rollouts", type=int, default=12, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--page", type=Path, help="a page into which the result is written, such as docs/guide/agents/rollouts.md"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(options.db.parent, Path(folder) / "copy")
        settings = Settings(db=f"sqlite:///{copy / options.db.name}", workers=options.workers)
        driven, bare = measure_driver(settings, options.rollouts, options.rounds)
        queue = measure_queue(settings.storage, options.queue)
    result = render_result(queue, driven, bare, options.workers)
    print(result)
    if options.page:
        write_table(options.page, "benchmarks.sampling", result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
