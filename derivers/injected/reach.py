"""Which test files execute which code: so that a bug is tried with the tests that may detect it, and no others.

The test files of a suite are run in groups, each in a container of its own, and the executed lines of each are
collected where the language has a collector (`evaluation.reports.coverage`). Where it has none, all files are a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import groupby

from backends.sandbox.base import ContainerPool
from derivers.injected.bug_sites import FunctionMap
from evaluation.reports.coverage import CoveredLines
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus
from evaluation.runner.run import run_tests
from mutation import Mutation
from taskdb.records import TestId

MAX_GROUPS = 40
"""Groups of test files. Each is run once, and each run starts the runner and a container."""
MIN_GROUP_SECONDS = 2.0
"""Least share of a suite's seconds that a group has; shorter runs are mostly their start."""
MAX_GROUP_SHARE = 0.6
"""Share of a suite's seconds that a group takes at most; where compilers take most of the time, groups save nothing."""


def list_passing(report: EvaluationReport | None) -> frozenset[TestId]:
    """Return the tests that pass in a report."""
    outcomes = report.outcomes.items() if report else ()
    return frozenset(test for test, outcome in outcomes if outcome.status is OutcomeStatus.PASSED)


@dataclass(frozen=True, kw_only=True)
class TestGroup:
    """Test files that are run together."""

    __test__ = False
    files: tuple[str, ...]
    """Empty for the files that the evaluation script runs."""
    passing: frozenset[TestId]
    """Tests that pass when the group is run alone, and in each other run without a bug."""
    covered: CoveredLines | None
    """Lines that its tests execute; None where unknown."""
    seconds: float
    """Duration of its run."""

    @classmethod
    def join(cls, groups: Sequence[TestGroup]) -> TestGroup:
        """Return the group of all files of some groups."""
        return cls(
            files=tuple(sorted({file for group in groups for file in group.files})),
            passing=frozenset[TestId]().union(*(group.passing for group in groups)),
            covered=None,
            seconds=sum(group.seconds for group in groups),
        )


@dataclass(frozen=True, kw_only=True)
class TestReach:
    """Groups of test files with the lines that they execute."""

    __test__ = False
    groups: tuple[TestGroup, ...]
    functions: FunctionMap

    def select(self, bug: Mutation) -> TestGroup | None:
        """Return the test files that execute the function of a bug, as a group; None where none does.

        A function is called where a line of its body is executed; its first line is executed when its file is loaded.
        Outside of functions the line itself counts, and all groups where no group executes it.
        """
        if any(group.covered is None for group in self.groups):
            return TestGroup.join(self.groups)
        around = self.functions.find(bug.path, bug.line)
        if around is None or bug.line == around.first_line:
            lines = {bug.line}
        else:
            lines = set(range(around.first_line + 1, around.last_line + 1))
        reached = [group for group in self.groups if group.covered and lines & group.covered.get(bug.path, frozenset())]
        if not reached and (around is None or bug.line == around.first_line):
            reached = list(self.groups)
        return TestGroup.join(reached) if reached else None

    def without_lines(self, whole: TestGroup) -> TestReach:
        """Return the reach in which each bug is tried with the whole suite."""
        return replace(self, groups=(whole,))


def measure_reach(
    open_pool: Callable[[], AbstractContextManager[ContainerPool]],
    whole: TestGroup,
    functions: FunctionMap,
    test_files: Collection[str],
    *,
    script: str,
    workdir: str,
) -> TestReach:
    """Run the groups of test files and return the lines that each executes.

    The whole suite is the only group without a collector, and where groups save nothing.

    Args:
        open_pool: function that opens containers of the base tree; it is called only where groups may save time.
        whole: the whole suite, with the lines that it executes.
        functions: functions of the source files.
        test_files: files of tests that may be run alone.
        script: evaluation script of the base tree's own tests.
        workdir: the tree's folder.

    Raises:
        Transient: the engine failed.
    """
    files = sorted({test.partition("::")[0] for test in whole.passing} & set(test_files))
    undivided = TestReach(groups=(whole,), functions=functions)
    number = min(MAX_GROUPS, int(whole.seconds / MIN_GROUP_SECONDS))
    parts = list(split_files(files, number)) if whole.covered is not None and number > 1 else []
    if len(parts) < 2:
        return undivided
    groups: list[TestGroup] = []
    with open_pool() as pool:
        for place, part in enumerate(parts, 1):
            last = place == len(parts)
            result = run_tests(pool, script, workdir=workdir, files=part, collect_lines=True, last=last)
            seconds = result.exec_result.seconds
            if result.covered_lines is None or (not groups and seconds > MAX_GROUP_SHARE * whole.seconds):
                return undivided
            passing = list_passing(result.report) & whole.passing
            groups.append(TestGroup(files=tuple(part), passing=passing, covered=result.covered_lines, seconds=seconds))
    return TestReach(groups=tuple(groups), functions=functions)


def split_files(files: Sequence[str], number: int) -> Iterator[list[str]]:
    """Yield the files in at most `number` groups of equal size; those of a folder are neighbours. `files`: sorted."""
    size = math.ceil(len(files) / number) or 1
    for _, part in groupby(enumerate(files), key=lambda pair: pair[0] // size):
        yield [file for _, file in part]
