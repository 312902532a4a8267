"""Pytest plugin that measures every test and every fixture: `pytest --durations-to=FILE`.

The file has a JSON line for each test (wall seconds of its set-up, its call and its tear-down, and the CPU seconds of
its process and of the children that it waited for) and for each fixture (how often it was set up, and the seconds of
all set-ups, without those of the fixtures it requests). Workers of pytest-xdist send theirs to the controller, which
writes the file. The equals sign is needed: pytest looks for its configuration before this option is known, and would
take FILE for the folder of the tests.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest


def read_cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all its children that have ended and were waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


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
        with self.path.open("a") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")


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
