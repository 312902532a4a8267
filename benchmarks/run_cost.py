"""Where the time of one run of the tests goes, and how much of it lies beyond the test process.

    python -m benchmarks.run_cost [--languages python,go] [--runs N] [--page docs/evidence/measured.md]

The small projects of `benchmarks.fairness` become tasks, one per language, and the gold patch of each is graded again
and again, with one evaluation. No container is prepared: a run begins when one is asked for and
ends when its verdict is there. The host's and the container's clock are the same, so moments inside of the container,
which the command and the evaluation script write to files, can be compared with those of this process. Printed are
medians; the exit code is 1 where more than GOAL seconds of a run lie beyond its test process. Nothing else should run.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from backends.sandbox.container import Container
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.engine import DockerEngine
from backends.sandbox.execution import ExecResult
from backends.sandbox.pool import WarmContainer
from backends.services import Services
from benchmarks.fairness.projects import PROJECTS
from benchmarks.fairness.suite import open_task
from benchmarks.page_table import write_table
from taskdb.records import Task
from verifiers import select_reward
from verifiers.grade import grade

GOAL = 0.6
"""Seconds of a run beyond its test process, at the median."""
MIN_RUNS = 15
BEGIN, REMOVED = "begin", "removed"
PHASES: Mapping[str, str] = {
    "created": "the container is created",
    "started": "it is started",
    "begun": "command and files are sent and unpacked",
    "prepared": "the patch is applied",
    "tests": "protected files are restored, the hidden tests are written",
    "tested": "the test process",
    "finished": "processes are ended, the report is converted",
    "returned": "the files are returned, the container ends",
    "explained": "the engine is asked whether it lacked memory",
    "judged": "the report is read and stored, and the score made",
}
"""Moment at which a phase ends -> the phase, in their order."""
TEST_PHASE = "tested"
WARM_PHASES = frozenset({"created", "started"})
"""Moments that pass during another run where runs follow each other."""
STAMP = 'printf %s "$EPOCHREALTIME" > '
COMMAND = f'{STAMP}"$0/begun"; "$@"; code=$?; {STAMP}"$0/finished"; exit $code'
"""Script around a command: notes its begin and its end in the folder of the run, its first argument."""


@dataclass
class RunClock:
    """Moments of one run: name -> seconds since the epoch."""

    moments: dict[str, float] = field(default_factory=dict)

    def note(self, name: str) -> None:
        """Note the time now."""
        self.moments[name] = time.time()

    def note_files(self, files: Mapping[str, bytes]) -> None:
        """Note the moments that the run left in files: path -> content."""
        for path, content in files.items():
            name = posixpath.basename(path)
            if name == "times":
                start, end = (int(word) / 1e9 for word in content.split()[:2])
                self.moments |= {"tests": start, "tested": end}
            elif name in PHASES:
                self.moments[name] = float(content.replace(b",", b"."))

    def compute_seconds(self) -> dict[str, float]:
        """Return the seconds of each phase, and those of the removal, which no one waits for.

        Raises:
            RuntimeError: a phase did not end, or the moments are not in the order of the phases.
        """
        names = [BEGIN, *PHASES, REMOVED]
        if missing := [name for name in names if name not in self.moments]:
            raise RuntimeError(f"a run has no moment {', '.join(missing)}")
        times = [self.moments[name] for name in names]
        if times != sorted(times):
            raise RuntimeError(f"the phases of a run are out of order: {self.moments}")
        return {name: end - start for name, start, end in zip(names[1:], times, times[1:], strict=False)}


@contextmanager
def time_runs(clock: RunClock) -> Iterator[None]:
    """Let the runs of the block, one at a time, note their moments. The containers are those of a Docker engine."""
    create, initialize, run = DockerEngine.create_container, WarmContainer.__init__, WarmContainer.run
    has_lacked_memory = Container.has_lacked_memory

    def create_timed(engine: DockerEngine, *args: Any, **options: Any) -> Container:
        container = create(engine, *args, **options)
        clock.note("created")
        return container

    def start_timed(warm: WarmContainer, container: Container) -> None:
        initialize(warm, container)
        clock.note("started")

    def explain_timed(container: Container) -> bool:
        clock.note("returned")
        answer = has_lacked_memory(container)
        clock.note("explained")
        return answer

    def run_timed(  # noqa: PLR0917 - the signature of the method
        warm: WarmContainer,
        command: Sequence[str],
        files: Mapping[str, bytes],
        collect: Sequence[str],
        env: Mapping[str, str],
        seconds: float | None = None,
    ) -> ExecResult:
        folder, files = add_stamp(files)
        stamps = [f"{folder}/{name}" for name in ("begun", "prepared", "finished")]
        result = run(warm, ["/bin/bash", "-c", COMMAND, folder, *command], files, [*collect, *stamps], env, seconds)
        clock.note_files(result.files)
        return result

    with (
        mock.patch.object(DockerEngine, "create_container", create_timed),
        mock.patch.object(WarmContainer, "__init__", start_timed),
        mock.patch.object(WarmContainer, "run", run_timed),
        mock.patch.object(Container, "has_lacked_memory", explain_timed),
    ):
        yield


def add_stamp(files: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """Return the folder of a run, and its files with an evaluation script that notes when it begins."""
    path = next(path for path in files if posixpath.basename(path) == "evaluate.sh")
    folder = posixpath.dirname(path)
    first, end, rest = files[path].partition(b"\n")
    return folder, {**files, path: first + end + f"{STAMP}{folder}/prepared\n".encode() + rest}


def measure_runs(
    grade_gold: Callable[[], float | None], flush: Callable[[], None], runs: int
) -> list[dict[str, float]]:
    """Return the seconds of the phases of each run, after one that warms the caches.

    Args:
        grade_gold: function that grades the gold patch with one evaluation and returns its score.
        flush: function that waits until the containers are removed.
        runs: number of runs.

    Raises:
        RuntimeError: the gold patch did not earn 1.
    """
    seconds = []
    for _ in range(runs + 1):
        clock = RunClock()
        with time_runs(clock):
            clock.note(BEGIN)
            value = grade_gold()
            clock.note("judged")
        flush()
        clock.note(REMOVED)
        if value != 1.0:
            raise RuntimeError(f"the gold patch earned {value}")
        seconds.append(clock.compute_seconds())
    return seconds[1:]


def measure_task(task: Task, services: Services, runs: int) -> list[dict[str, float]]:
    """Return the seconds of the phases of each run of a task's gold patch.

    Raises:
        RuntimeError: the gold patch did not earn 1.
    """
    sandbox = services.sandbox
    if not isinstance(sandbox, DockerSandbox):
        raise TypeError(f"containers of {type(sandbox).__name__} are not measured")
    gold, task = select_reward(task).make_gold(task, services), limit_evaluations(task, services)
    return measure_runs(lambda: grade(task, services, gold).value, sandbox.flush, runs)


def limit_evaluations(task: Task, services: Services) -> Task:
    """Return a task whose gradings end with their first evaluation, whatever its controls need."""
    if task.evaluations == 1 or task.blind_controls is None:
        return task
    document = json.loads(services.artifacts.get(task.blind_controls))
    limited = services.artifacts.put(json.dumps(document | {"evaluations": 1}).encode())
    return task.model_copy(update={"blind_controls": limited})


def compute_cost(seconds: Mapping[str, float], *, warm: bool = False) -> float:
    """Return the seconds of a run beyond its test process.

    `warm`: without those that pass during another run where runs follow each other.
    """
    excluded = {TEST_PHASE, *(WARM_PHASES if warm else ())}
    return sum(seconds[name] for name in PHASES if name not in excluded)


def find_misses(results: Mapping[str, Sequence[Mapping[str, float]]]) -> list[str]:
    """Return the languages whose runs cost more than GOAL at the median."""
    return [language for language, runs in results.items() if median(map(compute_cost, runs)) > GOAL]


def render_table(results: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Return the table of medians in Markdown, a column for each language."""
    rows = {text: [median(run[name] for run in runs) for runs in results.values()] for name, text in PHASES.items()}
    rows |= {
        f"**beyond the test process** (goal: at most {GOAL:g})": [
            median(compute_cost(run) for run in runs) for runs in results.values()
        ],
        "the same, of the fastest run": [min(map(compute_cost, runs)) for runs in results.values()],
        "the median, where the container was started during another run": [
            median(compute_cost(run, warm=True) for run in runs) for runs in results.values()
        ],
        "afterwards, in the background: it is removed": [
            median(run[REMOVED] for run in runs) for runs in results.values()
        ],
    }
    lines = ["| median seconds | " + " | ".join(results) + " |", "|---|" + "---:|" * len(results)]
    lines += [f"| {text} | " + " | ".join(f"{value:.3f}" for value in row) + " |" for text, row in rows.items()]
    return "\n".join(lines) + "\n"


def describe_machine(runs: int) -> str:
    """Return commit, number of runs and load as a line."""
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True)
    load = os.getloadavg()[0]
    return f"Commit {commit.stdout.strip()}, {runs} runs each; load {load:.1f} on {os.cpu_count()} cores at the end.\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", default=",".join(PROJECTS))
    parser.add_argument("--runs", type=int, default=MIN_RUNS, help=f"at least {MIN_RUNS} for a page")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    if options.page and options.runs < MIN_RUNS:
        parser.error(f"--page needs {MIN_RUNS} runs")
    results = {}
    for language in options.languages.split(","):
        with tempfile.TemporaryDirectory() as folder, open_task(PROJECTS[language], Path(folder)) as made:
            results[language] = measure_task(made.task, made.services, options.runs)
    table = f"{render_table(results)}\n{describe_machine(options.runs)}"
    sys.stdout.write(table)
    if options.page:
        write_table(options.page, "benchmarks.run_cost", table)
    misses = find_misses(results)
    if misses:
        print(f"goal missed: {', '.join(misses)}")
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())
