"""Measure the submissions of runs: judgements of models, and runs of tests, for the metrics that read them.

A submission that was measured before, of any run on the set, is not measured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from backends.llm.parallel import ParallelCalls
from core.errors import MergemillError
from mergemill.bench.measurements import (
    MeasurementKey,
    load_measurements,
    make_key,
    read_run_measurements,
    write_measurements,
)
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.rollouts import Rollout
from taskdb.store import Store

if TYPE_CHECKING:
    from mergemill.execution.progress import CountProgress


class Measurer(Protocol):
    """Maker of the measurements of a metric."""

    @property
    def metric(self) -> str:
        """Name of the metric."""

    @property
    def maker(self) -> str:
        """Version of the measurement, with the judge."""

    def applies_to(self, task: Task) -> bool:
        """Return whether the metric has columns for a task."""

    def measure(self, task: Task, submission: bytes) -> Mapping[str, Any]:
        """Return the measurement of a submission as JSON data.

        Raises:
            Transient: engine, model, disk or network failed.
        """

    def stop(self) -> None:
        """End the work that other threads wait for."""


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A run, whose record names its measurements, and the errors of submissions that were not measured."""

    run: BenchRun
    measured: int
    """Submissions that were measured now."""
    errors: tuple[MergemillError, ...] = ()


def measure_run(
    store: Store,
    artifacts: Artifacts,
    run: BenchRun,
    measurers: Sequence[Measurer],
    *,
    workers: int,
    progress: CountProgress,
) -> MeasuredRun:
    """Measure the submissions of a run that nothing is known of, and store the run with all measurements of it.

    Raises:
        InputError: the endpoint rejects the first request, or an artifact does not exist.
    """
    bench_set = store.get(BenchSet, run.parent)
    known = load_measurements(store, artifacts, bench_set)
    tasks = store.get_many(Task, [subject.id for subject in bench_set.subjects])
    rollouts = [rollout for rollout in store.get_many(Rollout, run.rollouts).values() if rollout.value is not None]
    wanted = _list_wanted(rollouts, tasks, measurers)
    items = [key for key in wanted if key not in known.results]
    by_name = {measurer.metric: measurer for measurer in measurers}

    def work(key: MeasurementKey) -> Mapping[str, Any]:
        submission = artifacts.get(submitted) if (submitted := wanted[key].submission) else b""
        return by_name[key.metric].measure(tasks[key.task], submission)

    def stop() -> None:
        for measurer in measurers:
            measurer.stop()

    calls = ParallelCalls(work=work, workers=workers, report=lambda *_: progress.advance(), stop=stop)
    progress.total = len(items)
    with progress:
        results = calls.run(items)
    measured = {key: result for key, result in zip(items, results, strict=True) if isinstance(result, Mapping)}
    errors = tuple(result for result in results if isinstance(result, MergemillError))
    if measured or any(known.get_maker(key.metric) != key.maker for key in wanted):
        run = _store(store, artifacts, run, {key: known.results.get(key) or measured.get(key) for key in wanted})
    return MeasuredRun(run=run, measured=len(measured), errors=errors)


def _list_wanted(
    rollouts: Sequence[Rollout], tasks: Mapping[str, Task], measurers: Sequence[Measurer]
) -> dict[MeasurementKey, Rollout]:
    """Return the key of each measurement of a run -> a rollout with its submission, in a fixed order."""
    keys = {
        make_key(measurer.metric, measurer.maker, rollout): rollout
        for measurer in measurers
        for rollout in rollouts
        if rollout.parent in tasks and measurer.applies_to(tasks[rollout.parent])
    }
    return {key: keys[key] for key in sorted(keys)}


def _store(
    store: Store, artifacts: Artifacts, run: BenchRun, results: Mapping[MeasurementKey, Mapping[str, Any] | None]
) -> BenchRun:
    """Store a run with measurements, those of other metrics and judges included; return its record."""
    own = read_run_measurements(artifacts, run)
    own.add_newest({key: result for key, result in results.items() if result is not None})
    at = store.clock()
    stored = BenchRun.model_validate(run.model_dump() | {"result": write_measurements(artifacts, own, at), "at": at})
    store.add(stored)
    return stored
