"""How the tests of a framework are run many times: compiled into programs, or by a plug-in of the test runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taskdb.records import BuildPlan


def _list_nothing(_source: bytes) -> Sequence[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class TestPrograms:
    """Tests that are compiled into programs; `guest/harness/workload/timed_rounds.py` builds and runs these."""

    __test__ = False
    tests: str
    """Regex of whole ids of tests that have a program of their own and are no parameters of another."""
    benchmark_files: str = ""
    """Regex of whole paths of files with benchmarks; empty if benchmarks cannot be run."""
    list_benchmarks: Callable[[bytes], Sequence[str]] = _list_nothing
    """Returns the names of a file's benchmarks."""


@dataclass(frozen=True, kw_only=True)
class RoundsPlugin:
    """A plug-in of the test runner that runs each test many times."""

    module: str
    """Name of its file in `guest/harness/workload`, without suffix."""
    enable: Callable[[BuildPlan, str], BuildPlan]
    """Returns the plan with the plug-in in its test command, given the folder of the plug-in relative to the tree."""
