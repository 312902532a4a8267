"""Measurements on one generated database: seconds of queries, of a process, of an export, memory and bytes."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import make_url, text

from benchmarks.taskdb.queries import Execute, Query
from core.config import Settings
from exporters.task_table import write_task_table
from mergemill.bundles.export import export_splits
from mergemill.cli import COLLECTION_THRESHOLD
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.store import Store

Clock = Callable[[], float]
MOST_SECONDS = 8.0
"""Further repetitions of a query begin within this time."""
BATCH = 500
EXPORTED = 20_000
"""Rows of the measured export."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Medians of interleaved runs, in seconds."""

    name: str
    ours: float
    by_hand: float
    by_library: float
    """The SQL written by hand, executed through SQLAlchemy."""

    @property
    def ratio(self) -> float:
        """Seconds of the project for each second of the SQL."""
        return self.ours / self.by_hand


def compare_queries(
    asked: Sequence[Query], driver: Execute, library: Execute, repetitions: int, clock: Clock
) -> list[Comparison]:
    """Measure each query and its SQL, on the driver and through SQLAlchemy, in turn."""
    comparisons = []
    for query in asked:
        sides = (query.ours, partial(query.by_hand, driver), partial(query.by_hand, library))
        ours, by_hand, by_library = time_in_turn(sides, repetitions, clock)
        comparisons.append(Comparison(name=query.name, ours=ours, by_hand=by_hand, by_library=by_library))
    return comparisons


def read_processor_seconds() -> float:
    """Return the processor time of this process and of the ones it has waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def time_in_turn(
    functions: Sequence[Callable[[], object]], repetitions: int, clock: Clock = time.perf_counter
) -> list[float]:
    """Return the median seconds of each function, run in turn.

    A round before warms up: it reads from the disk what the first function needs, and the others would find in memory.
    """
    for function in functions:
        function()
    seconds: list[list[float]] = [[] for _ in functions]
    started = clock()
    for _ in range(repetitions):
        for spent, function in zip(seconds, functions, strict=True):
            begun = clock()
            function()
            spent.append(clock() - begun)
        if clock() - started > MOST_SECONDS:
            break
    return [statistics.median(spent) for spent in seconds]


def time_processes(url: str, repetitions: int, clock: Clock) -> tuple[float, float]:
    """Return median seconds of `mergemill tasks list --limit 20` and of a Python process that does nothing."""
    program = str(Path(sys.executable).with_name("mergemill"))
    commands = ([program, "tasks", "list", "--limit", "20", "--db", url], [sys.executable, "-c", "pass"])
    # as Python is by default: it keeps what it has compiled
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["COLUMNS"] = "200"

    def run(command: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(command, check=True, capture_output=True, env=environment)

    listing, bare = time_in_turn([run(command) for command in commands], repetitions, clock)
    return listing, bare


def measure_bytes(url: str) -> int:
    """Return the size of the database on disk."""
    with Store.open(url) as store, store.read_transaction() as connection:
        if make_url(url).get_backend_name() == "postgresql":
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
        pages, size = (connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in ("page_count", "page_size"))
        return int(pages) * int(size)


# ------------------------------------------------------------------------------------------------------- export


def time_export(url: str, repetitions: int, clock: Clock) -> tuple[float, float]:
    """Return rows a second of tasks streamed from the database into Parquet, and of pyarrow with the ready rows.

    Both write the same columns and rows; a test compares them.
    """
    with Store.open(url) as store, tempfile.TemporaryDirectory() as folder:
        ready = list(iter_rows(store, EXPORTED))
        gc.freeze()  # no export has these rows in memory, and a search for cycles would visit them again and again
        streamed, alone = time_in_turn(
            (
                lambda: write_task_table(store, TaskFilters(), Path(folder) / "streamed.parquet", EXPORTED),
                lambda: write_parquet(iter(ready), Path(folder) / "ready.parquet"),
            ),
            repetitions,
            clock,
        )
    gc.unfreeze()
    return len(ready) / streamed, len(ready) / alone


def iter_rows(store: Store, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield tasks as rows: the fields of the record, without those that are trees, and the columns of the view."""
    for number, (task, certificate, facts) in enumerate(queries.iter_tasks(store, TaskFilters()), 1):
        yield facts | _dump_task(task) | {"certified": certificate is not None}
        if number == most:
            return


def _dump_task(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in _FIELDS} | {
        "id": task.id,
        "kind": task.kind.value,
        "FAIL_TO_PASS": [test for test, _ in task.FAIL_TO_PASS],
        "plan": task.plan.model_dump_json() if task.plan else "null",
        "oracle": task.oracle.model_dump_json() if task.oracle else "null",
    }


_TREES = {"changed_code", "injections", "mirror", "published", "weak_tests"}
"""Fields that are trees: columns of the view have what is counted of them."""
_FIELDS = Task.model_fields.keys() - {"plan", "oracle", "FAIL_TO_PASS", "kind"} - _TREES
"""Fields whose values are columns as they are."""


def write_parquet(rows: Iterator[dict[str, Any]], path: Path) -> None:
    """Write rows in batches; the first batch fixes the types."""
    writer: pq.ParquetWriter | None = None
    while batch := [row for row, _ in zip(rows, range(BATCH), strict=False)]:
        table = pa.Table.from_pylist(batch, schema=writer.schema if writer else None)
        if writer is None:
            writer = pq.ParquetWriter(path, _open_nulls(table.schema))
        writer.write_table(table.cast(writer.schema))
    if writer:
        writer.close()


def _open_nulls(schema: pa.Schema) -> pa.Schema:
    """Return the schema with texts where the first batch had no value."""
    return pa.schema([field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in schema])


def time_bundles(url: str, store: Path, formats: Sequence[str]) -> dict[str, float]:
    """Return format -> certified tasks a second of `mergemill export`, files and manifest included.

    `store`: folder with the artifacts and base trees of the generated tasks.
    """
    settings, seconds = Settings(db=url, store=store), dict[str, float]()
    for name in formats:
        with tempfile.TemporaryDirectory(dir=store) as folder:
            begun = time.perf_counter()
            chosen = TaskFilters(status="certified")
            [result] = export_splits(name, Path(folder) / "bundle", None, chosen, settings)
            seconds[name] = len(result.bundle.tasks) / (time.perf_counter() - begun)
    return seconds


# ------------------------------------------------------------------------------------------------------- memory

MEMORY_PROGRAM = """
import sys
from pathlib import Path
from benchmarks.taskdb.measure import run_for_memory
run_for_memory(sys.argv[1], sys.argv[2])
print(Path("/proc/self/status").read_text())
"""
MEMORY_TARGETS = ("list", "stream", "pending")


def measure_memory(url: str, target: str) -> int:
    """Return the peak memory in bytes of a process that lists 20 tasks, streams all, or reads what is left to do."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM, url, target], check=True, capture_output=True, text=True
    )
    # not ru_maxrss, which a process inherits from the one that started it
    kilobytes = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(kilobytes)


def run_for_memory(url: str, target: str) -> None:
    """Do what `measure_memory` measures."""
    gc.set_threshold(COLLECTION_THRESHOLD)
    from mergemill.pipeline.kinds import DEFAULT_KINDS, get_prerequisites  # noqa: PLC0415 - in the measured process alone
    from taskdb.records.work import Scope  # noqa: PLC0415

    with Store.open(url) as store:
        if target == "list":
            queries.list_tasks(store, TaskFilters(), 20)
        elif target == "stream":
            for _ in iter_rows(store):
                pass
        else:
            with suppress(StopIteration):
                next(store.find_open_lineages(Scope(kinds=get_prerequisites(DEFAULT_KINDS))))
