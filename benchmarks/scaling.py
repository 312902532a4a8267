"""What a driver costs: `python -m benchmarks.scaling [--page FILE]`.

Changes go through the pipeline's runner with stages that return made records at once, so that all time is the
driver's: reading, handing out, storing and showing. Printed for SQLite, and with `--postgresql` for a temporary server:

- milliseconds of the driver for each certified task (goal: at most 20), and how many sandboxes one driver feeds at that
  rate if a task keeps one busy for as many seconds as the cost benchmark measured;
- the same with workers of a Ray cluster on this machine (`--ray`), whose processes take their part of the processors;
- memory of the driver with all changes queued, as a ratio to that with a hundredth of them (goal: at most 1.2).

With `--check` the exit code is 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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
from benchmarks.page_table import write_table
from mergemill.pipeline import RETRY_POLICY, ChangeEvent, PipelineRun, PipelineStep, process_change
from mergemill.progress import JsonLinesProgress
from taskdb.lineage import Lineage
from taskdb.records import Candidate, PullRequest, Record, Stage
from taskdb.store import Store
from taskdb.tags import Tags
from tests import records
from tests.scopes import make_scope
from tests.taskdb.conftest import PostgresServer, find_programs

MOST_MILLISECONDS = 20.0
MOST_MEMORY_RATIO = 1.2
TASK_SECONDS = 105.0
"""Wall seconds of a certified task in one worker, measured by benchmarks.cost (docs/measured.md)."""
SOURCE = "git:greet"


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


def list_steps() -> tuple[PipelineStep, ...]:
    """Return stages that return made records at once."""
    return (
        PipelineStep(Stage.BUILD, "environment", lambda it, _: records.make_environment(it.candidate)),
        PipelineStep(Stage.VERIFY, "verification", lambda it, _: records.make_verification(it.require_environment())),
        PipelineStep(Stage.JUDGE, "verdict", lambda it, _: records.make_verdict(it.require_verification())),
        PipelineStep(Stage.DERIVE, "task", _derive),
        PipelineStep(Stage.CERTIFY, "certificate", lambda it, _: records.make_certificate(it.require_task())),
    )


def _derive(lineage: Lineage, services: Any) -> Record:
    del services
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
    from backends.cluster.ray_cluster import RayCluster  # noqa: PLC0415 - Ray is an extra

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
        run.process(list_steps(), store.find_open_chains(scope))
    highest = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"megabytes": int(highest.split()[1]) / 1024}))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=main.__doc__)
    parser.add_argument("--changes", type=int, default=2000, help="changes of each run that is timed")
    parser.add_argument("--queued", type=int, default=100_000, help="changes of the queue whose memory is measured")
    parser.add_argument("--postgresql", action="store_true", help="measure a temporary server, too")
    parser.add_argument("--ray", action="store_true", help="measure workers of Ray, too")
    parser.add_argument("--memory-of", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    options = parser.parse_args()
    if options.memory_of:
        run_some(options.memory_of)
        return
    with ExitStack() as stack:
        tables, is_missed = measure(stack, options)
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
            found = time_driver(make_url(f"time-{len(lines)}"), opened, options.changes)
            fed = TASK_SECONDS * 1000 / found["wall"]
            is_missed |= found["wall"] > MOST_MILLISECONDS
            numbers = f"{found['tasks']:,.0f} | {found['wall']:.1f} | {found['cpu']:.1f} | {fed:,.0f}"
            lines.append(f"| {database} | {cluster} | {numbers} |")
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
