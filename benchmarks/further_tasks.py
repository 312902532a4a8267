"""Cost of a further task of an environment: runs of the tests, CPU and wall seconds, for each kind.

    python -m benchmarks.further_tasks SOURCE... [--kind KIND]... [--limit N] [--first N] [--number N]
                                       [--base PATTERN]... [--work DIR] [--check]

The sources are mined and built on an engine of its own. For each kind their environments then give `--first` tasks
each, which pay for the work that is done once for an environment, and `--number` further tasks, which are measured:
derived and certified. CPU seconds are those of the commands, the engine and all containers, counted by the kernel;
those beyond the tests are without the test processes, which the evaluation scripts meter. Runs are those with a task's
own script: of bugs and removals that give no task, too, but not those of the search in the tree of the environment.

`--check` exits with 1 where a task of any kind takes more than CONTROL_RUNS runs for its controls, more than OTHER_RUNS
others to be derived, or more than CPU_GOAL CPU seconds beyond its tests, certification included.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.isolated_engine import ControlGroup, start_engine
from benchmarks.run_meter import RunMeter, meter_tests
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from mergemill.cli import run_command_line
from taskdb.records import Certificate, RunVariant, Task
from taskdb.store import Store

CONTROL_RUNS = 2
"""Runs that confirm the controls of a task."""
OTHER_RUNS = 3
"""Further runs that derive a task."""
CPU_GOAL = 20.0
"""CPU seconds of a task beyond its tests."""


@dataclass
class RunCounter:
    """Runs with tasks' own scripts so far, by their variant; any thread may add to it."""

    runs: Counter[RunVariant] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, variant: RunVariant) -> None:
        """Add a run."""
        with self._lock:
            self.runs[variant] += 1


@contextmanager
def count_runs() -> Iterator[RunCounter]:
    """Count the runs of evaluators in the block; a series in a container, of forms of tests, is a run."""
    counter, run, run_series = RunCounter(), Evaluator.run, Evaluator.run_series

    def run_counted(evaluator: Evaluator, variant: RunVariant, **options: Any) -> EvaluationRun:
        counter.add(variant)
        return run(evaluator, variant, **options)

    def run_series_counted(evaluator: Evaluator, *args: Any, **options: Any) -> list[EvaluationReport] | None:
        counter.add(RunVariant.CONTROL)
        return run_series(evaluator, *args, **options)

    with (
        mock.patch.object(Evaluator, "run", run_counted),
        mock.patch.object(Evaluator, "run_series", run_series_counted),
    ):
        yield counter


@dataclass(frozen=True, kw_only=True)
class StageCost:
    """Usage of the further tasks of a kind in a stage."""

    cpu_seconds: float
    test_cpu_seconds: float
    wall_seconds: float
    control_runs: int
    other_runs: int


@dataclass(frozen=True, kw_only=True)
class KindCost:
    """Cost of the further tasks of a kind. `tasks`: derived; `certified`: those of them with a certificate."""

    kind: str
    tasks: int
    certified: int
    derive: StageCost
    certify: StageCost

    @property
    def cpu_beyond_tests(self) -> float:
        """CPU seconds per task beyond its tests."""
        stages = (self.derive, self.certify)
        return sum(stage.cpu_seconds - stage.test_cpu_seconds for stage in stages) / self.tasks

    def list_misses(self) -> list[str]:
        """Return the goals that are exceeded, a line each."""
        control, other = self.derive.control_runs / self.tasks, self.derive.other_runs / self.tasks
        misses = []
        if control > CONTROL_RUNS:
            misses.append(f"{self.kind}: {control:.2f} runs for controls, {CONTROL_RUNS} are allowed")
        if other > OTHER_RUNS:
            misses.append(f"{self.kind}: {other:.2f} other runs, {OTHER_RUNS} are allowed")
        if self.cpu_beyond_tests > CPU_GOAL:
            misses.append(f"{self.kind}: {self.cpu_beyond_tests:.1f} CPU s beyond the tests, {CPU_GOAL:g} are allowed")
        return misses


@dataclass(frozen=True, kw_only=True)
class Meters:
    """Meters that are read before and after a stage."""

    group: ControlGroup
    tests: RunMeter
    runs: RunCounter

    @contextmanager
    def measure(self, costs: list[StageCost]) -> Iterator[None]:
        """Append the usage of the block."""
        cpu, test_cpu, wall = self.group.read_cpu_seconds(), self.tests.cpu_seconds, time.monotonic()
        runs = Counter(self.runs.runs)
        yield
        used = self.runs.runs - runs
        costs.append(
            StageCost(
                cpu_seconds=self.group.read_cpu_seconds() - cpu,
                test_cpu_seconds=self.tests.cpu_seconds - test_cpu,
                wall_seconds=time.monotonic() - wall,
                control_runs=used[RunVariant.CONTROL],
                other_runs=used.total() - used[RunVariant.CONTROL],
            )
        )


def measure_kind(kind: str, sources: Sequence[str], db: str, meters: Meters, *, first: int, number: int) -> KindCost:
    """Derive and certify the further tasks of a kind.

    Args:
        kind: the kind.
        sources: sources with environments, and options that select their changes.
        db: URL of the database.
        meters: read before and after each stage.
        first: tasks that each environment gives before.
        number: further tasks of each.

    Raises:
        SystemExit: a command fails, or no further task is derived.
    """
    options = ["--from", "environments", "--kind", kind]
    _run(["derive", *sources, *options, "--per-environment", str(first), "--db", db])
    _run(["certify", *sources, "--db", db])
    before = _list_ids(db, kind)
    costs: list[StageCost] = []
    with meters.measure(costs):
        _run(["derive", *sources, *options, "--per-environment", str(first + number), "--db", db])
    with meters.measure(costs):
        _run(["certify", *sources, "--db", db])
    further = _list_ids(db, kind) - before
    if not further:
        raise SystemExit(f"there is no further task of the kind {kind}")
    with Store.open(db, create=False) as store:
        certified = {certificate.parent for certificate in store.load_all(Certificate)}
    derive, certify = costs
    return KindCost(kind=kind, tasks=len(further), certified=len(further & certified), derive=derive, certify=certify)


def _run(arguments: Sequence[str]) -> None:
    if code := run_command_line(["--quiet", *arguments]):
        raise SystemExit(code)


def _list_ids(db: str, kind: str) -> set[str]:
    with Store.open(db, create=False) as store:
        return {task.id for task in store.load_all(Task) if task.kind == kind}


def render_table(costs: Sequence[KindCost]) -> str:
    """Return the table in Markdown: a row for each kind and stage, per further task."""
    lines = [
        "| kind | tasks | certified | stage | control runs | other runs | CPU s | of them in tests | wall s |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    for cost in costs:
        for name, stage in (("derive", cost.derive), ("certify", cost.certify)):
            runs = (stage.control_runs / cost.tasks, stage.other_runs / cost.tasks)
            used = (stage.cpu_seconds, stage.test_cpu_seconds, stage.wall_seconds)
            lines.append(
                f"| {cost.kind} | {cost.tasks} | {cost.certified} | {name} "
                f"| {' | '.join(f'{value:.2f}' for value in runs)} "
                f"| {' | '.join(f'{value / cost.tasks:.1f}' for value in used)} |"
            )
        lines.append(f"| {cost.kind} | | | beyond the tests | | | {cost.cpu_beyond_tests:.1f} | | |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--kind", action="append", metavar="KIND", help="default: injected")
    parser.add_argument("--limit", type=int, default=1, help="environments of each source")
    parser.add_argument("--first", type=int, default=2, help="tasks that each environment gives before")
    parser.add_argument("--number", type=int, default=6, help="further tasks of each environment")
    parser.add_argument("--base", action="append", metavar="PATTERN", help="tags of the base images to begin with")
    parser.add_argument("--work", type=Path, help="folder for database and engine, kept; else a temporary one")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    sources = [*options.sources, "--limit", str(options.limit)]
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        with (
            start_engine(work / "engine", options.base or ["*"], keep=options.work is not None) as engine,
            mock.patch.dict(os.environ, DOCKER_HOST=engine.host),
            meter_tests() as tests,
            count_runs() as runs,
        ):
            db = f"sqlite:///{work}/further.db"
            for stage in ("mine", "build"):
                _run([stage, *sources, "--db", db])
            meters = Meters(group=engine.group, tests=tests, runs=runs)
            costs = [
                measure_kind(kind, sources, db, meters, first=options.first, number=options.number)
                for kind in options.kind or ["injected"]
            ]
    sys.stdout.write(render_table(costs))
    misses = [line for cost in costs for line in cost.list_misses()]
    for line in misses:
        print(line, file=sys.stderr)
    return int(options.check and bool(misses))


if __name__ == "__main__":
    sys.exit(main())
