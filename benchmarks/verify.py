"""Grade the same gold patches with mergemill and with SWE-bench's harness, in one run.

    python -m benchmarks.verify [--db URL] [--tasks N] [--rounds N] [--workers N]

The tasks are certified pytest tasks of a database, or of a generated repository without `--db`. Each round grades the
gold patch of all of them in four ways, with the same images and the same number of workers:

- `swebench`: `swebench eval` of SWE-bench 5.0.2 with a script such as it has for its own tasks: it applies the test
  patch and runs the task's test command once, as root;
- `mergemill`: as `mergemill grade`, with negative controls, each evaluation in a fresh container;
- `mergemill, no controls`: the same with one evaluation in which every test is real;
- `bundle in swebench`: `swebench eval` of an exported bundle, with all evaluations in one container.

Printed are the medians of the rounds: wall seconds, seconds of processor time of the whole machine (so nothing else
should run), containers created, and bytes written to disks; and two ratios, each the median of those of the rounds,
since the ways of a round run next to each other. Every way must resolve every task and both goals must be met,
otherwise it ends with exit code 1. SWE-bench is installed from PyPI into an environment of its own.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import exporters
from backends.services import Services
from benchmarks.verify_overhead import make_repository
from core.config import Settings
from core.settings.storage import StorageSettings
from mergemill.cli import run_command_line
from mergemill.execution.services import make_services
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task, Verification
from taskdb.store import Store
from tests.exporters.consumers import install
from verifiers import grade, select_reward

SWEBENCH = "swebench==5.0.2"
PLAIN, CONTROLLED, UNCONTROLLED = "swebench", "mergemill", "mergemill, no controls"
"""Ways to grade."""
GOAL = 6.0
"""Times less wall time than SWE-bench's harness, with controls, at least."""
CONTROLS_GOAL = 1.25
"""Times the wall time of a grading without controls, at most."""
PLAIN_SCRIPT = """\
#!/bin/bash
set -uxo pipefail
cd {workdir}
base64 -d > /tmp/test.patch << 'END_OF_PATCH'
{patch}
END_OF_PATCH
git apply -v /tmp/test.patch
export PATH="/opt/venv/bin:$PATH"
: '>>>>> Start Test Output'
{command} -rA -p no:cacheprovider {files}
: '>>>>> End Test Output'
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one round of one way took."""

    wall_seconds: float
    cpu_seconds: float
    containers: int
    written_bytes: int
    resolved: int
    """Number of tasks that the gold patch resolved."""


@dataclass(frozen=True, kw_only=True)
class VerifyBench:
    """The tasks, how to grade them, and a folder for the harness's files."""

    tasks: Sequence[Task]
    files: Mapping[str, Sequence[str]]
    """Id of a task -> its test files; empty for the whole suite."""
    services: Services
    folder: Path
    workers: int

    def grade_with_mergemill(self, tasks: Sequence[Task]) -> int:
        """Grade the gold patch of each task; return how many earn 1."""

        def grade_gold(task: Task) -> float | None:
            return grade(task, self.services, select_reward(task).make_gold(task, self.services)).value

        with ThreadPoolExecutor(self.workers) as threads:
            return sum(value == 1.0 for value in threads.map(grade_gold, tasks))

    def grade_with_swebench(self, rows: Path, name: str) -> int:
        """Evaluate the gold patch of each row with SWE-bench; return how many are resolved."""
        program = install(SWEBENCH, sys.executable) / "swebench"
        words = [str(program), "eval", str(rows), "--gold", "--run-id", name, "-j", str(self.workers)]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        reports = list(self.folder.glob(f"*.{name}.json"))
        if len(reports) != 1:
            raise RuntimeError(f"swebench wrote no report: {done.stdout[-500:]}{done.stderr[-500:]}")
        return len(json.loads(reports[0].read_text())["resolved_ids"])

    def write_plain_rows(self, bundle: Path) -> Path:
        """Write the rows of a bundle with scripts that run the tests once, as SWE-bench's own rows do."""
        by_name = {task.name: task for task in self.tasks}
        path = self.folder / "plain.jsonl"
        with path.open("w") as file:
            for line in (bundle / "tasks.jsonl").read_text().splitlines():
                row = json.loads(line)
                task = by_name[row["instance_id"]]
                file.write(json.dumps(row | {"eval_script": self.render_plain_script(task)}) + "\n")
        return path

    def render_plain_script(self, task: Task) -> str:
        """Return a script that applies the test patch and runs the task's test command."""
        plan = task.require_plan()
        return PLAIN_SCRIPT.format(
            workdir=plan.workdir,
            patch=base64.encodebytes(self.services.artifacts.get(task.test_patch)).decode().strip(),
            command=" ".join(plan.test.argv),
            files=" ".join(self.files[task.id]),
        )

    def measure(self, grade_all: Callable[[], int]) -> Cost:
        """Return what a function takes that grades all tasks."""
        with count_containers() as containers:
            written, busy, started = read_written_bytes(), read_busy_seconds(), time.perf_counter()
            resolved = grade_all()
            wall = time.perf_counter() - started
            subprocess.run(["sync"], check=True)
            return Cost(
                wall_seconds=wall,
                cpu_seconds=read_busy_seconds() - busy,
                containers=containers(),
                written_bytes=read_written_bytes() - written,
                resolved=resolved,
            )


def read_busy_seconds() -> float:
    """Return the seconds of processor time that everything on this machine has used."""
    user, nice, system, _idle, _waiting, irq, softirq = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:8]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def read_written_bytes() -> int:
    """Return the bytes that this machine has written to its disks."""
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(counters["pgpgout"]) * 1024


@contextmanager
def count_containers() -> Iterator[Callable[[], int]]:
    """Yield a function that returns how many containers the engine has created since."""
    since = time.time()

    def count() -> int:
        words = ["docker", "events", "--filter", "event=create", "--filter", "type=container"]
        span = ["--since", f"{since:.9f}", "--until", f"{time.time():.9f}"]
        return len(subprocess.run([*words, *span], capture_output=True, text=True, check=True).stdout.splitlines())

    yield count


def load_tasks(storage: StorageSettings, number: int) -> tuple[list[Task], dict[str, Sequence[str]]]:
    """Return certified pytest tasks that lists of tests decide, and the test files of each."""
    with Store.open(storage.db, create=False) as store:
        selected_tasks = queries.iter_tasks(store, TaskFilters(status="certified", controlled=True))
        tasks = [
            task for task, _, _ in selected_tasks if not task.oracle and task.require_plan().test.framework == "pytest"
        ]
        chosen = tasks[:number]
        return chosen, {task.id: store.get(Verification, task.parent).eval_files for task in chosen}


def render_table(costs: Mapping[str, Sequence[Cost]], n_tasks: int) -> Table:
    """Render the medians; ratios are to SWE-bench's harness."""
    table = Table("way", "wall s", "against swebench", "CPU s", "containers", "MB written", "resolved")
    baseline = median(cost.wall_seconds for cost in costs[PLAIN])
    for name, rounds in costs.items():
        wall = median(cost.wall_seconds for cost in rounds)
        table.add_row(
            name,
            f"{wall:.1f}",
            f"{wall / baseline:.2f}",
            f"{median(cost.cpu_seconds for cost in rounds):.1f}",
            f"{median(cost.containers for cost in rounds):.0f}",
            f"{median(cost.written_bytes for cost in rounds) / 1e6:.0f}",
            f"{min(cost.resolved for cost in rounds)} of {n_tasks}",
        )
    return table


def compute_ratio(costs: Mapping[str, Sequence[Cost]], way: str, other: str) -> float:
    """Return how many times the wall time of another way one way takes, the median over the rounds."""
    pairs = zip(costs[way], costs[other], strict=True)
    return median(cost.wall_seconds / other_cost.wall_seconds for cost, other_cost in pairs)


def find_unresolved(costs: Mapping[str, Sequence[Cost]], n_tasks: int) -> list[str]:
    """Return the ways that did not resolve all tasks in every round."""
    return [way for way, rounds in costs.items() if any(cost.resolved < n_tasks for cost in rounds)]


def find_failures(costs: Mapping[str, Sequence[Cost]], n_tasks: int) -> list[str]:
    """Return a line for each way that did not resolve all tasks, and for each goal that is missed."""
    saving, price = compute_ratio(costs, PLAIN, CONTROLLED), compute_ratio(costs, CONTROLLED, UNCONTROLLED)
    lines = {
        f"goal missed: {saving:.2f} times less wall time, not {GOAL:g}": saving < GOAL,
        f"goal missed: controls take {price:.2f} times the wall time, not {CONTROLS_GOAL:g}": price > CONTROLS_GOAL,
    }
    unresolved = [f"not every gold patch was resolved by {way}" for way in find_unresolved(costs, n_tasks)]
    return [*unresolved, *(line for line, is_missed in lines.items() if is_missed)]


def run_bench(bench: VerifyBench, rounds: int) -> dict[str, list[Cost]]:
    """Grade all tasks in every way, round by round; return way -> what each round took."""
    bundle = bench.folder / "bundle"
    exporters.export_tasks("swebench", bench.tasks, {}, bundle, bench.services)
    plain_rows = bench.write_plain_rows(bundle)
    uncontrolled = [task.model_copy(update={"blind_controls": None}) for task in bench.tasks]
    ways: dict[str, Callable[[str], int]] = {
        PLAIN: lambda word: bench.grade_with_swebench(plain_rows, f"plain{word}"),
        CONTROLLED: lambda _: bench.grade_with_mergemill(bench.tasks),
        UNCONTROLLED: lambda _: bench.grade_with_mergemill(uncontrolled),
        "bundle in swebench": lambda word: bench.grade_with_swebench(bundle / "tasks.jsonl", f"bundle{word}"),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    install(SWEBENCH, sys.executable)
    for number in range(rounds):
        order = list(ways) if number % 2 == 0 else list(reversed(ways))
        for name in order:
            costs[name].append(bench.measure(partial(ways[name], str(number))))
    return costs


def main() -> int:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", help="a database with certified tasks; a generated repository by default")
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = Settings(db=options.db or f"sqlite:///{folder}/bench.db", workers=options.workers)
        if options.db is None:
            make_repository(folder / "bench__burn", 2, options.tasks)
            run_command_line(
                ["run", f"git:{folder}/bench__burn", "--db", settings.storage.db, "--certify-exploits", "off"]
            )
        tasks, files = load_tasks(settings.storage, options.tasks)
        if not tasks:
            sys.stderr.write("the database has no certified pytest task with controls\n")
            return 3
        services = make_services(settings, engine=True)
        bench = VerifyBench(tasks=tasks, files=files, services=services, folder=folder, workers=options.workers)
        costs = run_bench(bench, options.rounds)
    console = Console()
    console.print(render_table(costs, len(tasks)))
    saving, price = compute_ratio(costs, PLAIN, CONTROLLED), compute_ratio(costs, CONTROLLED, UNCONTROLLED)
    evaluations = sum(task.evaluations for task in tasks) / len(tasks)
    console.print(f"against swebench: {saving:.2f} times less wall time (goal: at least {GOAL:g}), controls included")
    console.print(
        f"controls: {price:.2f} times the wall time without (goal: at most {CONTROLS_GOAL:g}), "
        f"{evaluations:.1f} evaluations a task"
    )
    failures = find_failures(costs, len(tasks))
    for failure in failures:
        console.print(failure)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
