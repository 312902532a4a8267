"""Measure a report of `mergemill bench`: `python -m benchmarks.bench_report`.

A database with a set of subjects and runs of several models on it is made, and the runs are reported and compared with
the first of them, in the same process and in turn with reading the same rows alone: set, tasks and rollouts. Printed
are the seconds of both, medians of `--rounds`, and their ratio, the median of the rounds' ratios.

The exit code is 1 when a report takes more than twice the time of reading its rows.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from backends.base_trees import BaseTreeStore
from mergemill.bench.metrics import DEFAULT_METRICS, load_metric
from mergemill.bench.reports import ReportRequest, build_report
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.sets import freeze
from taskdb.artifacts import Artifacts
from taskdb.queries.bench import list_runs
from taskdb.records import Task
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.rollouts import Rollout
from taskdb.store import Store
from tests import records
from tests.mergemill.bench.making import LIMITS, make_scored

MAX_RATIO = 2.0


def fill_database(url: str, *, subjects: int, runs: int, models: int, seed: int) -> None:
    """Make a database with a set and a run of each model on it, whose models solve different shares of the subjects."""
    draw = random.Random(seed)  # noqa: S311 - values of a benchmark
    with Store.open(url) as store:
        tasks = [add_task(store, number) for number in range(1, subjects + 1)]
        bench_set = freeze(store, "speed", tasks, LIMITS, held_out=False)
        for model in range(models):
            skill = (model + 1) / (models + 1)
            rollouts = [
                make_scored(
                    task,
                    attempt,
                    float(draw.random() < skill),
                    model=f"model-{model}",
                    prompt_tokens=draw.randrange(1_000, 90_000),
                    completion_tokens=draw.randrange(100, 9_000),
                    agent_seconds=draw.uniform(5, 900),
                    latencies=tuple(round(draw.uniform(0.5, 20), 3) for _ in range(20)),
                )
                for task in tasks
                for attempt in range(1, runs + 1)
            ]
            run = BenchRun(
                parent=bench_set.id,
                name=bench_set.name,
                scaffold="react",
                scaffold_version="1",
                model=f"model-{model}",
                runs=runs,
                rollouts=tuple(sorted(rollout.id for rollout in rollouts)),
            )
            store.add(*rollouts, run)


def add_task(store: Store, number: int) -> Task:
    """Add the task of a change of its own and return it."""
    pull = records.make_pull_request(number)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment)
    task = records.make_task(verification, candidate)
    store.add(pull, candidate, environment, verification, task)
    return task


def read_rows(store: Store, runs: Sequence[BenchRun]) -> int:
    """Read the rows of a report and return their number."""
    bench_set = store.get(BenchSet, runs[0].parent)
    tasks = store.get_many(Task, [subject.id for subject in bench_set.subjects])
    return len(tasks) + sum(len(store.get_many(Rollout, run.rollouts)) for run in runs)


def measure(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main(words: Sequence[str] | None = None) -> int:
    """Print the seconds and the ratio; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=500)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="mergemill-") as folder:
        url = f"sqlite:///{folder}/m.db"
        fill_database(url, subjects=options.subjects, runs=options.runs, models=options.models, seed=options.seed)
        with Store.open(url, create=False) as store:
            base, *others = list_runs(store)
            metrics = [load_metric(name) for name in DEFAULT_METRICS]
            request = ReportRequest(runs=others, metrics=metrics, against=base)
            materials = ReviewMaterials(Artifacts(Path(folder) / "artifacts"), BaseTreeStore(Path(folder) / "trees"))
            n_rows = read_rows(store, [base, *others])
            rounds = [
                (
                    measure(lambda: read_rows(store, [base, *others])),
                    measure(lambda: build_report(store, materials, request)),
                )
                for _ in range(options.rounds)
            ]
    reading, reporting = (statistics.median(seconds) for seconds in zip(*rounds, strict=True))
    ratio = statistics.median(report / read for read, report in rounds)
    print(f"{n_rows} rows read in {reading:.2f} s, reported in {reporting:.2f} s: {ratio:.2f} times")
    if ratio > MAX_RATIO:
        print(f"the report takes more than {MAX_RATIO:g} times as long as reading its rows", file=sys.stderr)
    return int(ratio > MAX_RATIO)


if __name__ == "__main__":
    sys.exit(main())
