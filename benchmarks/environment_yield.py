"""Certified tasks per core-hour over a list of repositories, of this version or another, with or without environments.

    python -m benchmarks.environment_yield LIST --work DIR [--clones DIR] [--program PATH] [--changes N]
        [--per-environment N] [--kind KIND,...] [--cpu-seconds N] [--compare DIR] [--page PAGE]

For each repository the newest changes are mined, built, verified, derived and certified; then their environments give
tasks, where `--per-environment` is given, TASKS_PER_ROUND at a time, each certified before the next are derived. CPU
seconds are those of the commands, of an engine of its own and of all containers, counted by the kernel, so other work
of the machine is not in them. A repository that was measured is not measured again by the same command, so a run that
was interrupted goes on, with what it had used counted; one that takes more than `--cpu-seconds` is interrupted, and
counts with what it gave until then.

`--compare` prints the ratio to another folder, measured before with another program: over the repositories that both
have, certified tasks per core-hour of the sums. Exit code 1 where it is below RATIO_GOAL.

A list has a line for each repository: language, tab, OWNER/NAME. `benchmarks/draws` has the lists.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.isolated_engine import start_engine
from benchmarks.page_table import write_table
from core.errors import MachineError, Transient, UsageError

RATIO_GOAL = 8.0
"""Certified tasks per core-hour, as a multiple of another version's."""
KINDS = "bugfix,feature,performance,test-writing,review,injected"
"""Kinds that every version has and that need no model."""
ENVIRONMENT_KINDS = "injected,rebuild"
UNMEASURED = frozenset(error.exit_code for error in (UsageError, MachineError, Transient))
"""Exit codes after which a repository is not counted, as the same command may give more later."""
TASKS_PER_ROUND = 10
"""Tasks of an environment and kind that are derived before they are certified: one that is cut off has some of both."""
POLL_SECONDS = 0.5
INTERRUPT_SECONDS = 60
"""Seconds in which an interrupted command stores what it has."""


@dataclass(frozen=True)
class RepositoryYield:
    """What a repository gave, and what that cost."""

    repository: str
    language: str
    environments: int
    """Environments that were built."""
    verified: int
    """Changes that verification accepted."""
    derived: Mapping[str, int]
    """Kind -> tasks."""
    certified: Mapping[str, int]
    """Kind -> certified tasks."""
    cpu_seconds: float
    wall_seconds: float
    is_complete: bool
    """Whether no command was interrupted."""

    @property
    def n_certified(self) -> int:
        """Certified tasks of all kinds."""
        return sum(self.certified.values())

    @property
    def per_core_hour(self) -> float:
        """Certified tasks per core-hour."""
        return self.n_certified * 3600 / self.cpu_seconds if self.cpu_seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class YieldCounts:
    """What a database has: environments, verified changes, and kind -> tasks."""

    environments: int
    verified: int
    derived: Mapping[str, int]
    certified: Mapping[str, int]

    def __sub__(self, other: YieldCounts) -> dict[str, Any]:
        """Return the fields of a yield by which the counts have grown."""
        return {
            "environments": self.environments - other.environments,
            "verified": self.verified - other.verified,
            "derived": dict(Counter(self.derived) - Counter(other.derived)),
            "certified": dict(Counter(self.certified) - Counter(other.certified)),
        }


@dataclass(kw_only=True)
class BegunRepository:
    """What a repository has used by now, kept in a file, as an interrupted measurement continues with its database."""

    path: Path
    repository: str
    before: YieldCounts
    """Counts of the database before the first command."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    @classmethod
    def open(cls, path: Path, repository: str, count: Callable[[], YieldCounts]) -> BegunRepository:
        """Return what the file has of a repository, or a new one."""
        fields = json.loads(path.read_text()) if path.exists() else {}
        if fields.get("repository") != repository:
            return cls(path=path, repository=repository, before=count())
        return cls(path=path, **{**fields, "before": YieldCounts(**fields["before"])})

    def save(self, cpu_seconds: float, wall_seconds: float) -> None:
        """Set the sums, and replace the file."""
        self.cpu_seconds, self.wall_seconds = cpu_seconds, wall_seconds
        fields = asdict(self)
        del fields["path"]
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps(fields))
        written.replace(self.path)


@dataclass(frozen=True, kw_only=True)
class YieldMeasurement:
    """Commands of a version over repositories."""

    program: str
    """The command line program."""
    folder: Path
    """Folder of the database and the store."""
    read_cpu_seconds: Callable[[], float]
    """Returns the CPU seconds used so far."""
    options: argparse.Namespace
    """Options of the command line."""

    @property
    def storage(self) -> list[str]:
        """Options that name the database and the store of all repositories."""
        return ["--db", f"sqlite:///{self.folder}/yield.db", "--store", str(self.folder / "store")]

    def list_commands(self, source: str) -> list[list[str]]:
        """Return the commands that are run over a source, in order."""
        commands = [["run", source, "--limit", str(self.options.changes), "--kind", self.options.kind]]
        kinds, most = ["--kind", ENVIRONMENT_KINDS], self.options.per_environment
        for number in range(TASKS_PER_ROUND, most + TASKS_PER_ROUND, TASKS_PER_ROUND):
            number_of_each = ["--per-environment", str(min(number, most))]
            commands += [
                ["derive", source, "--from", "environments", *number_of_each, *kinds],
                ["certify", source, *kinds],
            ]
        return commands

    def measure(self, language: str, repository: str, source: str) -> RepositoryYield:
        """Run all commands over a source; return what it gave.

        Raises:
            SystemExit: a command failed by a mistake of the user, by the machine or by the network.
        """
        log = self.folder / "log"
        begun = BegunRepository.open(self.folder / "begun.json", repository, self.count)
        cpu, wall = self.read_cpu_seconds() - begun.cpu_seconds, time.monotonic() - begun.wall_seconds

        def may_go_on() -> bool:
            begun.save(self.read_cpu_seconds() - cpu, time.monotonic() - wall)
            return begun.cpu_seconds < float(self.options.cpu_seconds)

        code: int | None = 0
        for command in self.list_commands(source):
            code = self._run_command([self.program, "--quiet", *command, *self.storage], log, may_go_on)
            if code is None:
                break
            if code in UNMEASURED:
                raise SystemExit(f"{repository}: {command[0]} ended with {code}: {log} says why")
        may_go_on()
        return RepositoryYield(
            repository=repository,
            language=language,
            cpu_seconds=begun.cpu_seconds,
            wall_seconds=begun.wall_seconds,
            is_complete=code is not None,
            **(self.count() - begun.before),
        )

    def _run_command(self, command: Sequence[str], log: Path, may_go_on: Callable[[], bool]) -> int | None:
        """Return the exit code of a command, None where it was interrupted as its CPU seconds were used up.

        Args:
            command: program and arguments.
            log: file for its output.
            may_go_on: asked now and then whether CPU seconds are left.
        """
        with log.open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
            try:
                while may_go_on():
                    with suppress(subprocess.TimeoutExpired):
                        return process.wait(POLL_SECONDS)
            finally:
                _interrupt(process)
        return None

    def count(self) -> YieldCounts:
        """Return what the database has by now."""
        tasks = [json.loads(line) for line in self._read(["tasks", "list", "--json", *self.storage])]
        funnel = [json.loads(line) for line in self._read(["funnel", "--json", *self.storage])]
        stages = {row["stage"]: int(row["out"]) for row in funnel if "stage" in row}
        return YieldCounts(
            environments=stages.get("build", 0),
            verified=stages.get("verify", 0),
            derived=dict(Counter(task["kind"] for task in tasks)),
            certified=dict(Counter(task["kind"] for task in tasks if task["status"] == "certified")),
        )

    def _read(self, command: Sequence[str]) -> list[str]:
        done = subprocess.run([self.program, *command], capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else []


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """End a command that still runs, after a moment in which it stores what it has."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(INTERRUPT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def read_list(path: Path) -> list[tuple[str, str]]:
    """Return language and OWNER/NAME of each repository of a list."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [(language, repository) for language, repository in rows]


def read_rows(folder: Path) -> dict[str, RepositoryYield]:
    """Return repository -> its yield, of those that were measured in a folder."""
    path = folder / "rows.jsonl"
    rows = [RepositoryYield(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    return {row.repository: row for row in rows}


def find_source(repository: str, clones: Path | None) -> str:
    """Return the source of a repository: its clone in a folder, as OWNER__NAME, if there is one."""
    clone = clones / repository.replace("/", "__") if clones else None
    return f"git:{clone}" if clone and clone.exists() else f"git:https://github.com/{repository}"


def render_table(rows: Sequence[RepositoryYield]) -> str:
    """Return a Markdown table with a row for each repository, and the sums."""
    head = "| repository | language | environments | verified | tasks by kind (certified of derived) | certified | "
    lines = [f"{head}CPU s | certified per core-hour |", "|---|---|--:|--:|---|--:|--:|--:|"]
    for row in rows:
        numbers = [f"{kind} {row.certified.get(kind, 0)}/{number}" for kind, number in sorted(row.derived.items())]
        name = row.repository if row.is_complete else f"{row.repository} (cut off)"
        place = f"{name} | {row.language} | {row.environments} | {row.verified} | {', '.join(numbers) or '-'}"
        lines.append(f"| {place} | {row.n_certified} | {row.cpu_seconds:.0f} | {row.per_core_hour:.0f} |")
    certified, seconds, per_hour = summarize(rows)
    environments = sum(row.environments for row in rows)
    lines.append(f"| all {len(rows)} | | {environments} | | | {certified} | {seconds:.0f} | {per_hour:.0f} |")
    return "\n".join(lines) + "\n"


def summarize(rows: Sequence[RepositoryYield]) -> tuple[int, float, float]:
    """Return certified tasks, CPU seconds, and certified tasks per core-hour of all rows together."""
    certified, seconds = sum(row.n_certified for row in rows), sum(row.cpu_seconds for row in rows)
    return certified, seconds, certified * 3600 / seconds if seconds else 0.0


def compare(rows: Mapping[str, RepositoryYield], others: Mapping[str, RepositoryYield]) -> tuple[str, bool]:
    """Return a line with the ratio over the repositories that both have, and whether it reaches the goal."""
    both = sorted(rows.keys() & others.keys())
    certified, _, now = summarize([rows[name] for name in both])
    other_certified, _, before = summarize([others[name] for name in both])
    ratio = now / before if before else float("inf") if now else 0.0
    line = (
        f"{len(both)} repositories: {certified} certified tasks, {now:.1f} per core-hour; the other version "
        f"{other_certified}, {before:.1f} per core-hour: ratio {ratio:.1f} (goal {RATIO_GOAL:.0f})\n"
    )
    return line, ratio >= RATIO_GOAL


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder for engine, databases and measured rows, kept")
    parser.add_argument("--clones", type=Path, help="folder with clones as OWNER__NAME")
    parser.add_argument("--program", default="mergemill", help="command line program of the version to measure")
    parser.add_argument("--changes", type=int, default=1, help="newest changes of each repository")
    parser.add_argument("--per-environment", type=int, default=0, help="tasks of each kind; 0 derives none so")
    parser.add_argument("--kind", default=KINDS, help="kinds of tasks of changes")
    parser.add_argument("--cpu-seconds", type=float, default=1800.0, help="CPU seconds of a repository at most")
    parser.add_argument("--compare", type=Path, metavar="DIR", help="folder of another version's measurement")
    parser.add_argument("--page", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was not measured yet, and print; return the exit code."""
    options = parse_arguments(arguments)
    repositories = read_list(options.list)
    rows = read_rows(options.work)
    waiting = [(language, name) for language, name in repositories if name not in rows]
    if waiting:
        options.work.mkdir(parents=True, exist_ok=True)
        with start_engine(options.work / "engine", keep=True) as engine:
            os.environ["DOCKER_HOST"] = engine.host
            read = engine.group.read_cpu_seconds
            measurement = YieldMeasurement(
                program=options.program, folder=options.work, read_cpu_seconds=read, options=options
            )
            for language, repository in waiting:
                row = measurement.measure(language, repository, find_source(repository, options.clones))
                with (options.work / "rows.jsonl").open("a") as output:
                    output.write(json.dumps(asdict(row)) + "\n")
                print(f"{repository}: {row.n_certified} certified, {row.cpu_seconds:.0f} CPU s", file=sys.stderr)
    measured = read_rows(options.work)
    table = render_table([measured[name] for _, name in repositories if name in measured])
    reaches_goal = True
    if options.compare:
        line, reaches_goal = compare(measured, read_rows(options.compare))
        table += "\n" + line
    sys.stdout.write(table)
    if options.page:
        write_table(options.page, "benchmarks.environment_yield", table)
    return int(not reaches_goal)


if __name__ == "__main__":
    sys.exit(main())
