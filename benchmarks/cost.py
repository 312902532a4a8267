"""What a certified task costs: CPU seconds, wall seconds, gigabytes and dollars, for each stage, cold and warm.

    python -m benchmarks.cost SOURCE... [--limit N] [--until DAY] [--workers N] [--price DOLLARS] [--work DIR]
                              [--base PATTERN]... [--page PAGE] [--check]

Every stage of the pipeline runs over the sources, one command after another, in a new database: first on an engine
of its own that has base images alone (cold), then in another new database on the same engine (warm: every layer
exists). CPU seconds are those of the commands, the engine and all containers, counted by the kernel, so other work of
the machine is not in them. Wall seconds and the dollars of the machine depend on it: those are the whole machine's
for the wall time, at `--price` per core and hour. Dollars of the CPU seconds are what a task costs where all cores are
kept busy. CPU seconds beyond the tests are those without the CPU seconds of the test processes, which the evaluation
scripts meter inside of the containers; compilers that the test command starts are test processes.

With `--work` the same command continues a run that was interrupted: what each stage has used is kept, and what was
being done at that moment is done, and counted, again.

`--check` exits with 1 where a warm or cold task costs more than CPU_GOAL or DOLLAR_GOAL.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

from benchmarks.isolated_engine import IsolatedEngine, measure_bytes, start_engine
from benchmarks.page_table import write_table
from benchmarks.run_meter import RunMeter, meter_tests
from mergemill.cli import run_command_line
from taskdb.records import Certificate
from taskdb.store import Store

SAVE_SECONDS = 30
STAGES = ("mine", "build", "verify", "judge", "derive", "certify")
CPU_GOAL = 60.0
"""CPU seconds per certified task beyond its test runs."""
DOLLAR_GOAL = 0.01
PRICE = 0.04
"""Dollars per core and hour: about what clouds ask for a core with 4 GiB on demand."""


@dataclass(frozen=True)
class Usage:
    """What the machine has used: CPU seconds of all cores, wall seconds, bytes on disk, CPU seconds of tests."""

    cpu_seconds: float
    wall_seconds: float
    disk_bytes: float
    test_cpu_seconds: float

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.cpu_seconds + other.cpu_seconds,
            self.wall_seconds + other.wall_seconds,
            self.disk_bytes + other.disk_bytes,
            self.test_cpu_seconds + other.test_cpu_seconds,
        )

    def count_dollars(self, price: float, cores: int) -> float:
        """Return the price of all cores for the wall time. `price`: dollars per core and hour."""
        return self.wall_seconds * cores * price / 3600

    def count_busy_dollars(self, price: float) -> float:
        """Return the price of the CPU seconds alone. `price`: dollars per core and hour."""
        return self.cpu_seconds * price / 3600


NOTHING = Usage(0, 0, 0, 0)


@dataclass(frozen=True)
class PhaseCost:
    """Cost of one run of all stages."""

    name: str
    stages: Mapping[str, Usage]
    tasks: int
    """Certified tasks."""

    @property
    def total(self) -> Usage:
        """Sum of the stages."""
        return sum(self.stages.values(), NOTHING)

    @property
    def cpu_beyond_tests(self) -> float:
        """CPU seconds per task beyond its test runs."""
        return (self.total.cpu_seconds - self.total.test_cpu_seconds) / self.tasks

    def misses_goal(self, price: float, cores: int) -> bool:
        """Return whether a task costs too much."""
        return self.cpu_beyond_tests > CPU_GOAL or self.total.count_dollars(price, cores) / self.tasks > DOLLAR_GOAL


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--limit", type=int, default=10, help="candidates per source")
    parser.add_argument("--until", help="newest day of a change")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--price", type=float, default=PRICE)
    parser.add_argument("--base", action="append", metavar="PATTERN", help="tags of the base images to begin with")
    parser.add_argument("--work", type=Path, help="folder for databases, engine and usage, kept; else a temporary one")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    pipeline = [*options.sources, "--limit", str(options.limit), "--workers", str(options.workers)]
    pipeline += ["--until", options.until] if options.until else []
    cores = os.cpu_count() or 1
    signal.signal(signal.SIGTERM, _interrupt)
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        log = UsageLog.open(work / "usage.json", pipeline)
        with (
            start_engine(work / "engine", options.base or ["*"], keep=options.work is not None) as engine,
            mock.patch.dict(os.environ, DOCKER_HOST=engine.host),
            meter_tests() as meter,
        ):
            phases = [
                run_phase(name, pipeline, work / name, engine=engine, meter=meter, log=log) for name in ("cold", "warm")
            ]
    table = render_table(phases, options.price, cores)
    sys.stdout.write(table)
    if options.page:
        write_table(options.page, "benchmarks.cost", table)
    return int(options.check and any(phase.misses_goal(options.price, cores) for phase in phases))


def _interrupt(number: int, frame: object) -> None:
    """End by an exception, so that the engine is stopped."""
    del number, frame
    raise KeyboardInterrupt


@dataclass
class UsageLog:
    """What each stage has used, in a file, so that an interrupted run can be continued.

    A stage is named by phase and stage, with a blank between them.
    """

    path: Path
    pipeline: list[str]
    """Sources and settings of the run."""
    stages: dict[str, Usage]
    """Stage -> what it has used up to now."""
    disk_before: dict[str, float]
    """Stage -> bytes on disk when it began."""
    finished: list[str]

    @classmethod
    def open(cls, path: Path, pipeline: Sequence[str]) -> UsageLog:
        """Return the log in a file, or a new one.

        Raises:
            SystemExit: the file is that of other sources or settings.
        """
        if not path.exists():
            return cls(path, list(pipeline), {}, {}, [])
        stored = json.loads(path.read_text())
        if stored["pipeline"] != list(pipeline):
            raise SystemExit(f"{path} is of other sources or settings: name another folder with --work")
        stages = {name: Usage(**usage) for name, usage in stored["stages"].items()}
        return cls(path, stored["pipeline"], stages, stored["disk_before"], stored["finished"])

    def save(self) -> None:
        """Write the file in place of the one before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = self.path.with_suffix(".new")
        content = asdict(self)
        del content["path"]
        written.write_text(json.dumps(content, indent=1))
        written.replace(self.path)

    @contextmanager
    def measure(
        self,
        name: str,
        read_cpu: Callable[[], float],
        read_test_cpu: Callable[[], float],
        measure_disk: Callable[[], float],
    ) -> Iterator[None]:
        """Add what the block uses to a stage: all seconds now and then, for a kill, and the bytes, too, at its end.

        Args:
            name: of the stage.
            read_cpu: returns the CPU seconds used so far.
            read_test_cpu: returns those of them that tests used.
            measure_disk: returns the bytes on disk.
        """
        earlier, ended = self.stages.get(name, NOTHING), threading.Event()
        if name not in self.disk_before:
            self.disk_before[name] = measure_disk()
        cpu, test_cpu, wall = read_cpu(), read_test_cpu(), time.monotonic()

        def add(disk: float) -> None:
            used = Usage(read_cpu() - cpu, time.monotonic() - wall, disk, read_test_cpu() - test_cpu)
            self.stages[name] = earlier + used
            self.save()

        def add_repeatedly() -> None:
            while not ended.wait(SAVE_SECONDS):
                add(0)

        thread = threading.Thread(target=add_repeatedly, daemon=True)
        add(0)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            add(measure_disk() - self.disk_before[name] - earlier.disk_bytes)


def run_phase(
    name: str, pipeline: Sequence[str], folder: Path, *, engine: IsolatedEngine, meter: RunMeter, log: UsageLog
) -> PhaseCost:
    """Run all stages in a database of its own.

    Args:
        name: for the table and the progress.
        pipeline: sources and settings of each stage.
        folder: for database and artifacts.
        engine: the engine that DOCKER_HOST names.
        meter: counts the tests.
        log: what is finished in it is not run again.

    Raises:
        SystemExit: a stage fails, or no task is certified.
    """
    folder.mkdir(parents=True, exist_ok=True)
    db = f"sqlite:///{folder}/cost.db"

    def measure_disk() -> float:
        return measure_bytes(folder) + measure_bytes(engine.data)

    for stage in STAGES:
        key = f"{name} {stage}"
        if key in log.finished:
            continue
        with log.measure(key, engine.group.read_cpu_seconds, lambda: meter.cpu_seconds, measure_disk):
            code = run_command_line(["--quiet", stage, *pipeline, "--db", db])
        if code:
            raise SystemExit(code)
        log.finished.append(key)
        log.save()
        print(f"{key}: {log.stages[key].wall_seconds:.0f} s", file=sys.stderr, flush=True)
    with Store.open(db, create=False) as store:
        tasks = sum(1 for _ in store.load_all(Certificate))
        if not tasks:
            raise SystemExit("no task was certified, so there is nothing to divide by")
        stages = {stage: log.stages[f"{name} {stage}"] for stage in STAGES}
        return PhaseCost(name, stages, tasks)


def render_table(phases: Sequence[PhaseCost], price: float, cores: int) -> str:
    """Return the table in Markdown: a row for each stage and the sum, per certified task."""
    lines = [
        "| | stage | CPU s | of them in tests | wall s | GB | dollars of the machine | dollars of the CPU seconds |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for phase in phases:
        for stage, usage in (*phase.stages.items(), (f"all, {phase.tasks} tasks", phase.total)):
            seconds = [used / phase.tasks for used in (usage.cpu_seconds, usage.test_cpu_seconds, usage.wall_seconds)]
            gigabytes = usage.disk_bytes / phase.tasks / 1e9
            dollars = usage.count_dollars(price, cores) / phase.tasks
            busy = usage.count_busy_dollars(price) / phase.tasks
            lines.append(
                f"| {phase.name} | {stage} | {' | '.join(f'{value:.1f}' for value in seconds)} | {gigabytes:.3f} "
                f"| {dollars:.5f} | {busy:.5f} |"
            )
        lines.append(f"| {phase.name} | beyond the tests | {phase.cpu_beyond_tests:.1f} | | | | | |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
