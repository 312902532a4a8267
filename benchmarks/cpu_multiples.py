"""CPU seconds of a certified task, as a multiple of one test-only and one gold run of the same task, per language.

    python -m benchmarks.cpu_multiples SOURCE... [--limit N] [--kind KIND,...] [--work DIR] [--base PATTERN]...
                                       [--page PAGE] [--check]

The sources are mined and built on an engine of its own; the seconds of that stand below the table, as the tasks of an
environment share it. Then every change with an environment goes through verification, judge, derivation and
certification alone. Each certified task gets one run of its tests without the gold patch and one with it,
in fresh containers and without controls, as a validation takes that trusts every report. CPU seconds are those of
the commands, the engine and all containers, counted by the kernel, so other work of the machine is not in them.

A change that gives several tasks counts once, with its sums. A change without a certified task is in no row: its
number is printed below the table, with the CPU seconds that it took. `--check` exits with 1 where the median of a
language exceeds GOAL.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest import mock

from backends.services import Services
from benchmarks.isolated_engine import start_engine
from benchmarks.page_table import write_table
from core.config import Settings
from mergemill.cli import run_command_line
from mergemill.execution.services import make_services
from taskdb.records import Candidate, Certificate, Environment, RunVariant, Task
from taskdb.store import Store
from verifiers.grade import open_task_evaluator

STAGES = ("verify", "judge", "derive", "certify")
KINDS = "bugfix,feature,performance"
"""Kinds whose gold patch is the change's, so that validation of the usual kind exists for them."""
GOAL = 7.0
SETTLING_SECONDS = 1.0
"""Time in which containers that were used are removed, which counts for the runs before."""


@dataclass(frozen=True, kw_only=True)
class ChangeCost:
    """CPU seconds of a change and of its certified tasks."""

    language: str
    name: str
    tasks: int
    """Certified tasks."""
    stages: float
    """CPU seconds of its stages."""
    pairs: float
    """CPU seconds of a test-only and a gold run of each of its certified tasks."""

    @property
    def multiple(self) -> float:
        """CPU seconds of its stages, for each CPU second of validation."""
        return self.stages / self.pairs


@dataclass(frozen=True, kw_only=True)
class CostMeasurement:
    """Measures changes of a database.

    Attributes:
        db: URL of the database.
        kinds: kinds of tasks, with commas between them.
        read_cpu_seconds: function that returns the CPU seconds used so far.
    """

    db: str
    kinds: str
    read_cpu_seconds: Callable[[], float]

    def run_stages(self, stages: Sequence[str], options: Sequence[str]) -> float:
        """Run stages with some options; return their CPU seconds.

        Raises:
            SystemExit: a stage fails.
        """
        before = self.read_cpu_seconds()
        for stage in stages:
            kinds = [] if stage in ("mine", "build") else ["--kind", self.kinds]
            if code := run_command_line(["--quiet", stage, *options, *kinds, "--db", self.db]):
                raise SystemExit(code)
        time.sleep(SETTLING_SECONDS)
        return self.read_cpu_seconds() - before

    def measure(self, candidate: Candidate, services: Services) -> ChangeCost:
        """Return the cost of a change with an environment."""
        stages = self.run_stages(STAGES, ["--only", candidate.name])
        tasks = self._load_certified(candidate)
        before = self.read_cpu_seconds()
        for task in tasks:
            run_pair(task, services)
        time.sleep(SETTLING_SECONDS)
        pairs = self.read_cpu_seconds() - before
        return ChangeCost(
            language=candidate.language, name=candidate.name, tasks=len(tasks), stages=stages, pairs=pairs
        )

    def list_changes(self) -> list[Candidate]:
        """Return the changes that have an environment, in their order in the database."""
        with Store.open(self.db, create=False) as store:
            built = {environment.parent for environment in store.load_all(Environment)}
            return [candidate for candidate in store.load_all(Candidate) if candidate.id in built]

    def _load_certified(self, candidate: Candidate) -> list[Task]:
        with Store.open(self.db, create=False) as store:
            certified = [store.get(Task, certificate.parent) for certificate in store.load_all(Certificate)]
            return [task for task in certified if task.candidate == candidate.id]


def run_pair(task: Task, services: Services) -> None:
    """Run the tests of a task without its gold patch and with it, as its verification did the first time.

    Raises:
        Transient: the engine failed.
    """
    with open_task_evaluator(task, services) as evaluator:
        evaluator.run(RunVariant.TEST_ONLY)
        evaluator.run(RunVariant.GOLD, patch=services.artifacts.get(task.gold_patch), last=True)


def summarize(costs: Sequence[ChangeCost]) -> dict[str, list[ChangeCost]]:
    """Return language -> its changes with a certified task, in alphabetical order of the languages."""
    by_language: defaultdict[str, list[ChangeCost]] = defaultdict(list)
    for cost in sorted(costs, key=lambda cost: (cost.language, cost.name)):
        if cost.tasks:
            by_language[cost.language].append(cost)
    return dict(by_language)


def render_table(costs: Sequence[ChangeCost], build_seconds: float) -> str:
    """Return the Markdown table with a row for each language, and the lines below it."""
    head = "| language | changes | certified tasks | CPU s of a pair of runs | CPU s of a certified task | "
    lines = [f"{head}multiple, median | most |", "|---|--:|--:|--:|--:|--:|--:|"]
    for language, changes in summarize(costs).items():
        tasks, multiples = sum(cost.tasks for cost in changes), [cost.multiple for cost in changes]
        pair, stages = (sum(values) / tasks for values in zip(*((c.pairs, c.stages) for c in changes), strict=True))
        lines.append(
            f"| {language} | {len(changes)} | {tasks} | {pair:.1f} | {stages:.1f} "
            f"| {median(multiples):.1f} | {max(multiples):.1f} |"
        )
    lost = [cost for cost in costs if not cost.tasks]
    lines += [
        "",
        f"Mining and building {len(costs)} environments took {build_seconds:.0f} CPU s, which no column has.",
        f"{len(lost)} changes gave no certified task and took {sum(cost.stages for cost in lost):.0f} CPU s.",
    ]
    return "\n".join(lines) + "\n"


def list_misses(costs: Sequence[ChangeCost]) -> list[str]:
    """Return a line for each language whose median exceeds the goal."""
    medians: Mapping[str, float] = {
        language: median(cost.multiple for cost in changes) for language, changes in summarize(costs).items()
    }
    return [
        f"{language}: {value:.1f} times one test-only and one gold run, {GOAL:g} are allowed"
        for language, value in medians.items()
        if value > GOAL
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--limit", type=int, default=1, help="changes of each source")
    parser.add_argument("--kind", default=KINDS)
    parser.add_argument("--base", action="append", metavar="PATTERN", help="tags of the base images to begin with")
    parser.add_argument("--work", type=Path, help="folder for database and engine, kept; else a temporary one")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        with (
            start_engine(work / "engine", options.base or ["*"], keep=options.work is not None) as engine,
            mock.patch.dict(os.environ, DOCKER_HOST=engine.host),
        ):
            db = f"sqlite:///{work}/multiples.db"
            measurement = CostMeasurement(db=db, kinds=options.kind, read_cpu_seconds=engine.group.read_cpu_seconds)
            build_seconds = measurement.run_stages(("mine", "build"), [*options.sources, "--limit", str(options.limit)])
            services, costs = make_services(Settings(db=db), engine=True), []
            for candidate in measurement.list_changes():
                cost = measurement.measure(candidate, services)
                costs.append(cost)
                print(f"{cost.name}: {cost.stages:.1f} and {cost.pairs:.1f} CPU s", file=sys.stderr, flush=True)
    if not any(cost.tasks for cost in costs):
        raise SystemExit("no task was certified, so there is nothing to compare")
    table = render_table(costs, build_seconds)
    sys.stdout.write(table)
    if options.page:
        write_table(options.page, "benchmarks.cpu_multiples", table)
    misses = list_misses(costs)
    for line in misses:
        print(line, file=sys.stderr)
    return int(options.check and bool(misses))


if __name__ == "__main__":
    sys.exit(main())
