"""Run the benchmark: `python -m benchmarks.taskdb [--sizes 10000,100000] [--postgresql] [--check]`.

Databases of each size are generated in FOLDER (with `--postgresql` also copied to a temporary server) and removed
again unless `--keep`; with `--url URL` an existing database is measured. Printed for each, medians of interleaved runs:

- every documented query in milliseconds, and as a ratio to SQL written by hand on the same file (goal: at most 1.3, or
  at most 1 ms more);
- rows a second of tasks streamed from the database into Parquet, as a ratio to pyarrow with ready rows (goal: 0.5);
- peak memory of listing 20 tasks, of streaming all, of reading what is left to do (goal: at most 1.2 times that of the
  smallest size);
- with `--formats`, tasks a second of `mergemill export` as a whole;
- bytes a task, and the seconds of `mergemill tasks list` beyond a bare Python process (goal: 0.5).

With `--check` the exit code is 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from backends.base_trees import BaseTreeStore
from benchmarks.taskdb.copying import copy_database
from benchmarks.taskdb.measure import (
    MEMORY_TARGETS,
    Clock,
    Comparison,
    compare_queries,
    measure_bytes,
    measure_memory,
    read_processor_seconds,
    time_bundles,
    time_export,
    time_processes,
)
from benchmarks.taskdb.queries import list_queries, make_library_execute, open_driver
from benchmarks.taskdb.write import write_artifacts, write_database, write_trees
from core.errors import MachineError
from mergemill.cli import COLLECTION_THRESHOLD
from taskdb.artifacts import Artifacts
from taskdb.store import Store

MOST_RATIO = 1.3
MOST_EXTRA_SECONDS = 0.001
"""What the library and the making of records may take where the SQL takes less: a transaction and a statement through
SQLAlchemy take 0.15 ms, whatever they read."""
LEAST_EXPORT_RATIO = 0.5
MOST_MEMORY_GROWTH = 1.2
MOST_PROCESS_SECONDS = 0.5


@dataclass(kw_only=True)
class SizeReport:
    """Figures of one database."""

    name: str
    n_tasks: int
    comparisons: list[Comparison]
    rows_per_second: tuple[float, float]
    memory: dict[str, int]
    n_bytes: int
    process_seconds: tuple[float, float]
    bundles: dict[str, float] = field(default_factory=dict)
    """Format -> tasks a second of `mergemill export`."""
    generation_seconds: float = 0.0
    smallest_memory: dict[str, int] = field(default_factory=dict)
    """Peaks with the smallest database of the same kind."""

    def list_missed_goals(self) -> list[str]:
        """Return a line for each goal that is missed."""
        missed = [
            f"{comparison.name}: ratio {comparison.ratio:.2f}"
            for comparison in self.comparisons
            if comparison.ratio > MOST_RATIO and comparison.ours - comparison.by_hand > MOST_EXTRA_SECONDS
        ]
        streamed, alone = self.rows_per_second
        if streamed / alone < LEAST_EXPORT_RATIO:
            missed.append(f"export: ratio {streamed / alone:.2f}")
        for target, peak in self.memory.items():
            if peak > MOST_MEMORY_GROWTH * self.smallest_memory.get(target, peak):
                missed.append(f"memory of {target}: {peak / self.smallest_memory[target]:.2f} times the smallest size")
        listing, bare = self.process_seconds
        if listing - bare > MOST_PROCESS_SECONDS:
            missed.append(f"mergemill tasks list: {listing - bare:.2f} s beyond a bare Python process")
        return [f"{self.name}, {self.n_tasks} tasks: {line}" for line in missed]


def measure_database(name: str, url: str, artifacts: Path, repetitions: int, clock: Clock) -> SizeReport:
    """Measure one database."""
    with Store.open(url) as store, open_driver(url) as execute:
        (n_tasks,) = execute("SELECT count(*) FROM task_listing", {})[0]
        asked = list_queries(store, execute, Artifacts(artifacts))
        comparisons = compare_queries(asked, execute, make_library_execute(store), repetitions, clock)
    return SizeReport(
        name=name,
        n_tasks=n_tasks,
        comparisons=comparisons,
        rows_per_second=time_export(url, max(2, repetitions // 2), clock),
        memory={target: measure_memory(url, target) for target in MEMORY_TARGETS},
        n_bytes=measure_bytes(url),
        process_seconds=time_processes(url, repetitions, clock),
    )


def render_report(report: SizeReport) -> str:
    """Return the figures of one database as a Markdown table."""
    head = f"### {report.name}, {report.n_tasks:,} tasks"
    lines = [head, "", "| query | ms | by hand | ratio | by hand, through SQLAlchemy |", "|---|---:|---:|---:|---:|"]
    for comparison in report.comparisons:
        seconds = [f"{1000 * side:.2f}" for side in (comparison.ours, comparison.by_hand, comparison.by_library)]
        lines.append(f"| {comparison.name} | {seconds[0]} | {seconds[1]} | {comparison.ratio:.2f} | {seconds[2]} |")
    streamed, alone = report.rows_per_second
    listing, bare = report.process_seconds
    peaks = ", ".join(f"{target} {peak / 1e6:.0f} MB" for target, peak in report.memory.items())
    lines += [
        "",
        f"- export: {streamed:.0f} rows a second, pyarrow alone {alone:.0f}, ratio {streamed / alone:.2f}",
        f"- peak memory: {peaks}",
        f"- {report.n_bytes / report.n_tasks:.0f} bytes a task ({report.n_bytes / 1e9:.2f} GB)",
        f"- `mergemill tasks list`: {listing:.2f} s, a bare Python process {bare:.2f} s",
    ]
    lines += [
        f"- `mergemill export --format {name}`: {rate:.0f} tasks a second" for name, rate in report.bundles.items()
    ]
    if report.generation_seconds:
        lines.append(f"- written in {report.generation_seconds:.0f} s")
    return "\n".join(lines) + "\n"


@contextmanager
def open_servers(folder: Path, *, postgresql: bool) -> Iterator[dict[str, Callable[[int], str]]]:
    """Start what the databases need; yield name of a kind -> function that returns the URL of a database of a size.

    SQLite comes first, since the rows of the others are copied from it.

    Raises:
        MachineError: PostgreSQL is not installed.
    """
    kinds: dict[str, Callable[[int], str]] = {"SQLite": partial(_make_sqlite_url, folder)}
    if not postgresql:
        yield kinds
        return
    from tests.taskdb.conftest import ADVICE, PostgresServer, find_programs  # noqa: PLC0415 - the server of the tests

    programs = find_programs()
    if programs is None:
        raise MachineError("PostgreSQL is not installed", advice=ADVICE)
    with tempfile.TemporaryDirectory(prefix="mergemill-pg-") as place:
        server = PostgresServer(programs, Path(place))
        server.start()
        try:
            yield kinds | {"PostgreSQL": lambda _size: server.create_database()}
        finally:
            server.run("pg_ctl", "-w", "-m", "immediate", "stop")


def _make_sqlite_url(folder: Path, size: int) -> str:
    return f"sqlite:///{folder}/{size}/m.db"


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="tasks of the generated databases")
    parser.add_argument("--url", help="measure this database of the generator instead")
    parser.add_argument("--artifacts", type=Path, help="its artifacts")
    parser.add_argument("--folder", type=Path, help="generate databases here (default: a temporary folder)")
    parser.add_argument("--postgresql", action="store_true", help="measure PostgreSQL too, on a temporary server")
    parser.add_argument("--formats", default="", help="also measure `mergemill export` in these formats")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2, help="processes that generate rows")
    parser.add_argument("--keep", action="store_true", help="keep the databases")
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="measure processor time instead of elapsed time, for a machine that others use; not for PostgreSQL, "
        "whose server is another process",
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    return parser.parse_args()


def main() -> int:
    """Measure and print."""
    options = parse_arguments()
    gc.set_threshold(COLLECTION_THRESHOLD)  # as every command does
    reports: list[SizeReport] = []
    if options.url:
        artifacts = options.artifacts or Path()
        clock = _choose_clock(options)
        reports.append(measure_database("database", options.url, artifacts, options.repetitions, clock))
        print(render_report(reports[-1]), flush=True)
    else:
        _measure_generated(options, reports)
    missed = [line for report in reports for line in report.list_missed_goals()]
    print("\n".join(["missed goals:", *missed] if missed else ["all goals are met"]))
    return 1 if missed and options.check else 0


def _choose_clock(options: argparse.Namespace) -> Clock:
    return read_processor_seconds if options.cpu else time.perf_counter


def _measure_generated(options: argparse.Namespace, reports: list[SizeReport]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="mergemill-benchmark-", dir=options.folder)).resolve()
    artifacts = folder / "artifacts"
    write_artifacts(artifacts)
    try:
        with open_servers(folder, postgresql=options.postgresql) as kinds:
            smallest: dict[str, dict[str, int]] = {}
            for size in map(int, options.sizes.split(",")):
                for kind, get_url in kinds.items():
                    report = _measure_size(kind, get_url(size), size, artifacts, options)
                    report.smallest_memory = smallest.setdefault(kind, report.memory)
                    reports.append(report)
                    print(render_report(report), flush=True)
                if not options.keep:
                    shutil.rmtree(folder / str(size), ignore_errors=True)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _measure_size(kind: str, url: str, size: int, artifacts: Path, options: argparse.Namespace) -> SizeReport:
    started = time.perf_counter()
    if kind == "PostgreSQL":
        copy_database(_make_sqlite_url(artifacts.parent, size), url)
    else:
        write_database(url, size, workers=options.workers)
    seconds = time.perf_counter() - started
    report = measure_database(kind, url, artifacts, options.repetitions, _choose_clock(options))
    report.generation_seconds = seconds
    if formats := options.formats.split(",") if options.formats else []:
        with Store.open(url) as store:
            write_trees(store, BaseTreeStore(artifacts.parent / "trees"))
        report.bundles = time_bundles(url, artifacts.parent, formats)
    return report


if __name__ == "__main__":
    sys.exit(main())
