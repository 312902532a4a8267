"""What more workers give, and what a driver costs: `python -m benchmarks.scaling [--page FILE]`.

Real runs, on an engine of its own that has base images alone each time (`--engine`, root on Linux): tasks per hour with
1, 2 and 4 workers, as ratios to one. Workers share the machine's processors, so they can give no more than those.

All else is the driver's alone: changes go through the pipeline's runner with stages that return made records. Printed
for SQLite, and with `--postgresql` for a temporary server:

- milliseconds of the driver for each certified task (goal: at most 20), with stages that return at once, and how many
  sandboxes one driver feeds at that rate if a task keeps one busy for as long as the cost benchmark measured;
- the same with workers of a Ray cluster on this machine (`--ray`), whose processes take their part of the processors;
- how busy `--fed` (1,000) workers are whose stages wait, `--feed-seconds` (30) for each task (goal: 0.9 of the time);
- memory of the driver with all changes queued, as a ratio to that with a hundredth of them (goal: at most 1.2).

With `--check` the exit code is 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from backends.cluster.base import Cluster
from backends.cluster.local import LocalCluster
from backends.cluster.nodes import NodeFunctions, NodeReport, WorkerNeeds
from benchmarks.isolated_engine import IsolatedEngine, remove_built_images, start_engine
from benchmarks.page_table import write_table
from mergemill.execution.progress import JsonLinesProgress
from mergemill.pipeline.pipeline import RETRY_POLICY, ChangeEvent, PipelineRun, PipelineStep, process_change
from taskdb.records import Candidate, PullRequest, Record, Stage
from taskdb.records.lineage import Lineage
from taskdb.records.tags import Tags
from taskdb.store import Store
from tests import records
from tests.cli import make_command_environment
from tests.sample import ALIKE, make_sample
from tests.scopes import make_scope
from tests.taskdb.conftest import PostgresServer, find_programs

MOST_MILLISECONDS = 20.0
MOST_MEMORY_RATIO = 1.2
TASK_SECONDS = 105.0
"""Wall seconds of a certified task in one worker, measured by benchmarks.cost (docs/evidence/measured.md)."""
SOURCE = "git:greet"
WORKERS = (1, 2, 4)
SAMPLES = ("greet", "salute", "hail", "cheer")
FED_WORKERS = 1000
FEED_SECONDS = 30.0
"""Seconds of a task in a worker that waits: less than a third of TASK_SECONDS, so that the driver has more to do."""
LEAST_BUSY = 0.9


@dataclass(frozen=True)
class MinedChange:
    """A change that passes all rules."""

    pull_request: PullRequest
    result: Candidate
    tags: Tags
    similarity_keys: tuple[int, ...] = ()


def mine(source: str, services: Any, *, changes: int) -> Iterator[MinedChange]:
    """Yield changes, newest first."""
    del services
    for number in range(changes, 0, -1):
        pull = records.make_pull_request(number, source=source)
        yield MinedChange(pull, records.make_candidate(pull), records.make_tags(pull))


def list_steps(seconds: float = 0.0) -> tuple[PipelineStep, ...]:
    """Return stages that return made records; those of a task wait for so many seconds together."""

    def wait(record: Record) -> Record:
        time.sleep(seconds / 5)
        return record

    return (
        PipelineStep(Stage.BUILD, "environment", lambda it, _: wait(records.make_environment(it.candidate))),
        PipelineStep(Stage.VERIFY, "verification", lambda it, _: wait(_verify(it))),
        PipelineStep(Stage.JUDGE, "verdict", lambda it, _: wait(records.make_verdict(it.require_verification()))),
        PipelineStep(Stage.DERIVE, "task", lambda it, _: wait(_derive(it))),
        PipelineStep(Stage.CERTIFY, "certificate", lambda it, _: wait(records.make_certificate(it.require_task()))),
    )


def _verify(lineage: Lineage) -> Record:
    return records.make_verification(lineage.require_environment())


def _derive(lineage: Lineage) -> Record:
    return records.make_task(lineage.require_verification(), lineage.candidate)


def process(lineage: Lineage) -> Iterator[ChangeEvent]:
    """Take a change through the stages: function of a map, for workers of other processes, too."""
    return process_change(list_steps(), make_services(), RETRY_POLICY, lambda: False, lineage)


def make_services() -> Any:
    """Return what the runner itself needs of services."""
    return SimpleNamespace(images=SimpleNamespace(hold=nullcontext))


def check_node() -> NodeReport:
    """Return that a node can be used."""
    return NodeReport(name="node", version="1")


def do_nothing() -> None:
    """Stop nothing."""


def open_ray(stack: ExitStack, workers: int) -> Cluster:
    """Open a Ray cluster on this machine until the end of the stack."""
    from backends.cluster.ray_cluster.cluster import RayCluster  # noqa: PLC0415 - Ray is an extra

    cluster = RayCluster(
        address=None,
        needs=WorkerNeeds(cpus=1, memory_bytes=100 << 20, workers=workers),
        functions=NodeFunctions(check=check_node, stop=do_nothing, drain=do_nothing),
        version="1",
        notify=lambda text: print(text, file=sys.stderr),
    )
    return stack.enter_context(cluster)


def time_driver(url: str, cluster: Cluster, changes: int) -> dict[str, float]:
    """Run changes through the pipeline; return tasks, and milliseconds for each, of the clock and of this process."""
    with Store.open(url) as store:
        run = PipelineRun(store, make_services(), cluster, JsonLinesProgress(out=StringIO()), 2)
        run.make_function = lambda _: process
        started, cpu = time.perf_counter(), time.process_time()
        run.process(list_steps(), run.mine(partial(mine, changes=changes), make_scope(sources=[SOURCE])))
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        return {"tasks": run.n_certified, "wall": 1000 * seconds / run.n_certified, "cpu": 1000 * cpu / run.n_certified}


def measure_busy(url: str, workers: int, seconds: float, rounds: int = 3) -> float:
    """Return the share of the time in which workers were busy that wait in their stages, so many changes for each."""
    with Store.open(url) as store:
        cluster = LocalCluster(workers=workers)
        run = PipelineRun(store, make_services(), cluster, JsonLinesProgress(out=StringIO()), workers)
        started = time.perf_counter()
        miner = partial(mine, changes=rounds * workers)
        run.process(list_steps(seconds), run.mine(miner, make_scope(sources=[SOURCE])))
        return run.n_certified * seconds / (workers * (time.perf_counter() - started))


def time_real_runs(bases: Sequence[str], *, ray: bool) -> str:
    """Make tasks of small repositories for real, with more and more workers; return a table.

    Raises:
        CalledProcessError: a run fails.
    """
    folder = Path(tempfile.mkdtemp(prefix="mm-scaling-", dir="/var/tmp"))  # overlay needs a real file system
    lines = ["| workers | of | tasks | seconds | tasks an hour | ratio |", "|---|---:|---:|---:|---:|---:|"]
    try:
        for name in SAMPLES:
            make_sample(folder / f"ada__{name}")
        with start_engine(folder / "engine", bases) as engine:
            for kind, shown in (("local", "threads"), ("ray", "Ray"))[: 2 if ray else 1]:
                rates: list[float] = []
                for workers in WORKERS:
                    remove_built_images(engine)
                    tasks, seconds = _run_for_real(folder, kind, workers, engine)
                    rates.append(3600 * tasks / seconds)
                    numbers = f"{tasks} | {seconds:.0f} | {rates[-1]:.0f} | {rates[-1] / rates[0]:.2f}"
                    lines.append(f"| {shown} | {workers} | {numbers} |")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "\n".join(lines)


def _run_for_real(folder: Path, cluster: str, workers: int, engine: IsolatedEngine) -> tuple[int, float]:
    """Return certified tasks and seconds of a run that begins with nothing."""
    place = folder / f"{cluster}-{workers}"
    place.mkdir()
    command = ["mergemill", "run", *(f"git:../ada__{name}" for name in SAMPLES), "--json"]
    command += ["--cluster", cluster, "--workers", str(workers)]
    environment = make_command_environment(DOCKER_HOST=engine.host, RAY_AUTH_MODE="disabled", **ALIKE)
    started = time.perf_counter()
    done = subprocess.run(command, cwd=place, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - started
    return json.loads(done.stdout.splitlines()[-1])["certified"], seconds


def measure_memory(url: str, changes: int) -> float:
    """Return the highest memory, in MB, of a process that begins with so many pending changes and processes some."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--memory-of", url, "--changes", str(changes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["megabytes"])


def queue_changes(url: str, changes: int) -> None:
    """Fill a database with candidates for which all stages are pending."""
    with Store.open(url) as store:
        run = PipelineRun(store, make_services(), LocalCluster(workers=1), JsonLinesProgress(out=StringIO()), 1)
        run.process((), run.mine(partial(mine, changes=changes), make_scope(sources=[SOURCE])))


def run_some(url: str, wanted: int = 300) -> None:
    """Process some of the pending changes of a database and print the highest memory of this process."""
    with Store.open(url) as store:
        scope = make_scope(sources=[SOURCE])
        run = PipelineRun(store, make_services(), LocalCluster(workers=2), JsonLinesProgress(out=StringIO()), 2)
        run.max_tasks = wanted
        run.process(list_steps(), store.find_open_lineages(scope))
    highest = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"megabytes": int(highest.split()[1]) / 1024}))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=main.__doc__)
    parser.add_argument("--changes", type=int, default=2000, help="changes of each run that is timed")
    parser.add_argument("--fed", type=int, default=FED_WORKERS, help="workers whose stages wait")
    parser.add_argument("--feed-seconds", type=float, default=FEED_SECONDS, help="time of a task in them")
    parser.add_argument("--queued", type=int, default=100_000, help="changes of the queue whose memory is measured")
    parser.add_argument("--postgresql", action="store_true", help="measure a temporary server, too")
    parser.add_argument("--ray", action="store_true", help="measure workers of Ray, too")
    parser.add_argument("--engine", action="store_true", help="measure real runs on an engine of its own, too")
    parser.add_argument("--base", action="append", metavar="PATTERN", help="tags of the base images of that engine")
    parser.add_argument("--memory-of", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    options = parser.parse_args()
    if options.memory_of:
        run_some(options.memory_of)
        return
    real = time_real_runs(options.base or ["python3.11-*"], ray=options.ray) + "\n" if options.engine else ""
    with ExitStack() as stack:
        tables, is_missed = measure(stack, options)
    tables = f"\n{real}{tables}"
    print(tables)
    if options.page:
        write_table(options.page, "benchmarks.scaling", tables)
    sys.exit(1 if options.check and is_missed else 0)


def measure(stack: ExitStack, options: argparse.Namespace) -> tuple[str, bool]:
    """Measure all; return the tables and whether a goal is missed."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    databases: dict[str, Callable[[str], str]] = {"SQLite": lambda name: f"sqlite:///{folder}/{name}.db"}
    if options.postgresql:
        server = open_server(stack)
        databases["PostgreSQL"] = lambda _: server.create_database()
    clusters: dict[str, Cluster] = {"threads": LocalCluster(workers=2)}
    if options.ray:
        clusters["Ray, 2 processes"] = open_ray(stack, 2)
    lines = [
        "| database | workers | tasks | driver, ms a task | of them CPU | sandboxes it feeds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    is_missed = False
    for database, make_url in databases.items():
        for cluster, opened in clusters.items():
            timing = time_driver(make_url(f"time-{len(lines)}"), opened, options.changes)
            fed = TASK_SECONDS * 1000 / timing["wall"]
            is_missed |= timing["wall"] > MOST_MILLISECONDS
            numbers = f"{timing['tasks']:,.0f} | {timing['wall']:.1f} | {timing['cpu']:.1f} | {fed:,.0f}"
            lines.append(f"| {database} | {cluster} | {numbers} |")
    busy = measure_busy(databases[database]("busy"), options.fed, options.feed_seconds)
    is_missed |= busy < LEAST_BUSY
    fleet = f"{options.fed:,} workers that wait {options.feed_seconds:g} s for each task ({database})"
    lines += ["", f"One driver keeps {fleet} busy for {busy:.1%} of the time (goal: at least {LEAST_BUSY:.0%})."]
    memory = []
    for changes in (max(1, options.queued // 100), options.queued):
        url = databases["SQLite"](f"memory-{changes}")
        queue_changes(url, changes)
        memory.append((changes, measure_memory(url, changes)))
    ratio = memory[1][1] / memory[0][1]
    is_missed |= ratio > MOST_MEMORY_RATIO
    lines += ["", "| queued changes | memory of the driver, MB |", "|---:|---:|"]
    lines += [f"| {changes:,} | {megabytes:.0f} |" for changes, megabytes in memory]
    lines += ["", f"Ratio of the two: {ratio:.2f} (goal: at most {MOST_MEMORY_RATIO})."]
    return "\n" + "\n".join(lines) + "\n\n", is_missed


def open_server(stack: ExitStack) -> PostgresServer:
    """Start a temporary PostgreSQL server until the end of the stack."""
    if (programs := find_programs()) is None:
        raise SystemExit("PostgreSQL is not installed: apt-get install -y postgresql")
    # a socket has a short path, and the server's user must be able to enter the folder
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mergemill-pg-"))
    server = PostgresServer(programs, Path(folder))
    server.start()
    stack.callback(server.run, "pg_ctl", "-w", "-m", "immediate", "stop")
    return server


if __name__ == "__main__":
    main()
