"""Pytest plugin that measures every test and every fixture: `python -m pytest -p tests.durations --durations-to=FILE`.

The file has a JSON line for each test (wall seconds of its set-up, its call and its tear-down, and the CPU seconds of
its process and of the children that it waited for) and for each fixture (how often it was set up, and the seconds of
all set-ups, without those of the fixtures it requests). Workers of pytest-xdist send theirs to the controller, which
writes the file. The equals sign is needed: pytest looks for its configuration before this option is known, and would
take FILE for the folder of the tests.

`python -m tests.durations FILE` prints what is most expensive in such a file; `--ledger tests/durations.tsv` also
writes the table of test files that is kept under version control.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import command_server


def read_cpu_seconds() -> float:
    """Return the CPU seconds of this process, its commands, and all children that have ended and were waited for."""
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + command_server.read_cpu_seconds()


@dataclass
class TestDuration:
    """Wall seconds of a test's three phases, and its CPU seconds."""

    test: str
    worker: str
    setup: float = 0.0
    call: float = 0.0
    teardown: float = 0.0
    cpu: float = 0.0


@dataclass
class FixtureDuration:
    """Set-ups of a fixture in one worker. `seconds`: wall, without the fixtures that it asked for."""

    fixture: str
    scope: str
    worker: str
    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0


@dataclass(eq=False)
class DurationRecorder:
    """Measures of one process, and, in the controller, of all workers."""

    path: Path
    worker: str
    tests: dict[str, TestDuration] = field(default_factory=dict)
    fixtures: dict[str, FixtureDuration] = field(default_factory=dict)
    received: list[dict[str, Any]] = field(default_factory=list)
    nested: list[float] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure the CPU seconds of a test with its fixtures."""
        before = read_cpu_seconds()
        try:
            return (yield)
        finally:
            self.get_test(item.nodeid).cpu = read_cpu_seconds() - before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the wall seconds of a phase; the controller of workers gets reports, too, and ignores them."""
        if not hasattr(report, "node"):
            setattr(self.get_test(report.nodeid), report.when, report.duration)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        """Measure a set-up without those of the fixtures below it."""
        start = time.perf_counter()
        self.nested.append(0.0)
        try:
            return (yield)
        finally:
            whole = time.perf_counter() - start
            alone = whole - self.nested.pop()
            if self.nested:
                self.nested[-1] += whole
            name = f"{fixturedef.baseid}::{fixturedef.argname}"
            duration = self.fixtures.setdefault(name, FixtureDuration(name, fixturedef.scope, self.worker))
            duration.count += 1
            duration.seconds += alone
            duration.longest = max(duration.longest, alone)

    def get_test(self, name: str) -> TestDuration:
        """Return the entry of a test, made when it is first needed."""
        return self.tests.setdefault(name, TestDuration(name, self.worker))

    def list_rows(self) -> list[dict[str, Any]]:
        """Return the measures of this process as rows of the file."""
        return [asdict(duration) for duration in (*self.tests.values(), *self.fixtures.values())]

    def pytest_testnodedown(self, node: Any) -> None:
        """Take the rows that a worker sends when it ends."""
        self.received += getattr(node, "workeroutput", {}).get("durations", [])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the rows to the controller, or write those of all processes."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["durations"] = self.list_rows()
            return
        rows = [*self.received, *self.list_rows()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        with self.path.open("ab", buffering=0) as file:  # one write: another run may append to the file, too
            file.write(content)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--durations-to", metavar="FILE", help="append the seconds of every test and fixture to a file")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the option to a worker."""
    node.workerinput["durations_to"] = node.config.getoption("--durations-to")


def pytest_configure(config: pytest.Config) -> None:
    """Start measuring where a file is named."""
    path = config.getoption("--durations-to")
    if path:
        worker = getattr(config, "workerinput", {}).get("workerid", "main")
        config.pluginmanager.register(DurationRecorder(Path(path), worker), "duration-recorder")


@dataclass
class FileDuration:
    """Row of the ledger: a test file with the sums of its tests. `cpu` lacks what containers and daemons use."""

    file: str
    tests: int = 0
    wall: float = 0.0
    cpu: float = 0.0


def read_rows(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of tests and those of fixtures of a file that the plugin wrote."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if "test" in row], [row for row in rows if "fixture" in row]


def compute_wall_seconds(test: Mapping[str, Any]) -> float:
    """Return the wall seconds of a test with its fixtures."""
    return float(test["setup"] + test["call"] + test["teardown"])


def sum_files(tests: Sequence[Mapping[str, Any]]) -> list[FileDuration]:
    """Return the test files of rows of tests, sorted by name."""
    files: dict[str, FileDuration] = {}
    for test in tests:
        name = test["test"].partition("::")[0]
        file = files.setdefault(name, FileDuration(name))
        file.tests += 1
        file.wall += compute_wall_seconds(test)
        file.cpu += test["cpu"]
    return [files[name] for name in sorted(files)]


def render_ledger(files: Sequence[FileDuration]) -> str:
    """Return the ledger as tab-separated values."""
    lines = [f"{file.file}\t{file.tests}\t{file.wall:.1f}\t{file.cpu:.1f}" for file in files]
    return "\n".join(["file\ttests\twall_seconds\tcpu_seconds", *lines]) + "\n"


def render_table(tests: Sequence[Mapping[str, Any]], fixtures: Sequence[Mapping[str, Any]], count: int) -> str:
    """Return the most expensive files, tests and fixtures as text, `count` of each."""
    files = sorted(sum_files(tests), key=lambda file: -file.wall)
    walls = sorted(((compute_wall_seconds(test), test["test"]) for test in tests), reverse=True)
    setups: dict[str, list[float]] = {}
    for fixture in fixtures:
        total = setups.setdefault(fixture["fixture"], [0.0, 0])
        total[0] += fixture["seconds"]
        total[1] += fixture["count"]
    slowest = sorted(setups.items(), key=lambda item: -item[1][0])
    wall, cpu = sum(file.wall for file in files), sum(file.cpu for file in files)
    return "\n".join(
        [
            f"{len(tests)} tests: {wall:.0f} s, {cpu:.0f} s of CPU",
            "files (wall, CPU, tests):",
            *(f"{file.wall:8.1f} {file.cpu:7.1f} {file.tests:5}  {file.file}" for file in files[:count]),
            "tests (wall):",
            *(f"{seconds:8.1f}  {name}" for seconds, name in walls[:count]),
            "fixtures (wall without what they request, set-ups):",
            *(f"{seconds:8.1f} {times:7.0f}  {name}" for name, (seconds, times) in slowest[:count]),
        ]
    )


def main() -> None:
    """Print the table of a run and write the ledger."""
    parser = argparse.ArgumentParser(description="Print what was most expensive in a run of the tests.")
    parser.add_argument("file", type=Path, help="file that --durations-to named")
    parser.add_argument("--count", type=int, default=15, metavar="N", help="rows of each table (default: 15)")
    parser.add_argument("--ledger", type=Path, metavar="TSV", help="file to write the sums of all test files to")
    options = parser.parse_args()
    tests, fixtures = read_rows(options.file)
    print(render_table(tests, fixtures, options.count))  # noqa: T201 - a command
    if options.ledger:
        options.ledger.write_text(render_ledger(sum_files(tests)))


if __name__ == "__main__":
    main()
