"""Bugs tried one by one in boxes of the base tree: kept are those that tests notice, and the build outlives."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from backends.sandbox.base import Series
from backends.services import Services
from backends.testing.outcomes import Report, Status
from backends.testing.run import TestResult, run_tests
from backends.testing.script import render_plan
from derivers.mutation import Change, patch_of
from languages.paths import is_protected, is_test_file
from taskdb.lineage import Lineage
from taskdb.records import TestId

TRIED = 12
"""Bugs that are tried for one change."""
MOST_FAILING = 50
"""A bug that more tests than these notice is no bug to look for; one with many parameters is one."""
PATIENCE = 5.0
"""How many times as long as without a bug a run may take, and how many seconds more: a loop may never end."""
PATIENCE_SECONDS = 10.0


class Reason(StrEnum):
    """Why a change gives no injected bugs, or one that was tried is none; ordered by how far it came."""

    NO_PASSING_TESTS = "no-passing-tests"
    NO_MUTABLE_CODE = "no-mutable-code"
    """No rule finds anything in program files that tests run."""
    OUT_OF_BUDGET = "out-of-budget"
    NO_MUTANT_NOTICED = "no-mutant-noticed"
    BUILD_BREAKS = "build-breaks"
    """Tests are missing, or the runner leaves no report."""
    NEVER_ENDS = "never-ends"
    ALL_TESTS_FAIL = "all-tests-fail"
    """All, or more than MOST_FAILING."""
    TESTS_IN_SOURCE = "tests-in-source"
    """The failing tests stand in files that cannot be taken out of the agent's tree."""
    BUGS_DO_NOT_COMBINE = "bugs-do-not-combine"
    NO_IMAGE = "no-image"
    NOT_STABLE = "not-stable"
    """In the task's own box no test fails each time that fails with the bug and passes without."""
    STATEMENT_LEAKS = "statement-leaks"


@dataclass(frozen=True, kw_only=True)
class Noticed:
    """A bug that tests see."""

    change: Change
    patch: bytes
    """Against the base tree."""
    failing: tuple[TestId, ...]


@dataclass(kw_only=True)
class Search:
    """The base tree's boxes, and what came of each bug that was tried in them."""

    lineage: Lineage
    services: Services
    boxes: Series
    files: tuple[str, ...]
    """Test files that are run; empty for the whole suite."""
    test_files: frozenset[str]
    """All files of the base tree that hold tests and can be hidden."""
    started: float = field(default_factory=time.monotonic)
    tally: Counter[Reason] = field(default_factory=Counter)
    first: TestResult | None = None
    """The run without a bug."""

    def begin(self) -> frozenset[TestId]:
        """The tests that pass without a bug, with the lines they run in `first`.

        Raises:
            Transient: the engine failed.
        """
        plan = self.lineage.the_environment.plan
        self.first = run_tests(self.boxes, self.script, workdir=plan.workdir, collect_lines=True)
        passing = _passing(self.first.report)
        stable = self.lineage.the_environment.base_report
        if stable:
            passing &= _passing(Report.from_bytes(self.services.artifacts.get(stable)))
        return passing

    @property
    def script(self) -> str:
        """Runs the base tree's own tests."""
        return render_plan(self.lineage.the_environment.plan, test_patch=b"", files=self.files, canaries_beside=())

    def noticed(
        self, bugs: Iterable[Change], read: Callable[[str], bytes], passing: frozenset[TestId]
    ) -> Iterator[Noticed]:
        """Those of the bugs that tests notice, as they are found; at most TRIED are tried.

        Raises:
            Transient: the engine failed.
        """
        for number, bug in enumerate(bugs):
            if number >= TRIED or self.out_of_time():
                return
            patch = patch_of(bug.path, read(bug.path), bug.after)
            result = run_tests(self.boxes, self.script, workdir=self.lineage.the_environment.plan.workdir, patch=patch)
            verdict = judged(result, passing, self.test_files - {bug.path})
            if isinstance(verdict, Reason):
                self.tally[verdict] += 1
            else:
                yield Noticed(change=bug, patch=patch, failing=verdict)

    def out_of_time(self) -> bool:
        """Whether this change has cost enough."""
        if time.monotonic() - self.started < self.services.settings.budget_seconds:
            return False
        self.tally[Reason.OUT_OF_BUDGET] += 1
        return True

    def why_not(self) -> tuple[Reason, str]:
        """The reason of those tried that came furthest, and all of them in words."""
        told = ", ".join(f"{reason} {number}" for reason, number in self.tally.most_common())
        furthest = max(self.tally, key=list(Reason).index, default=Reason.NO_MUTANT_NOTICED)
        return furthest, f"{sum(self.tally.values())} bugs were tried: {told}"


def judged(result: TestResult, passing: frozenset[TestId], hideable: frozenset[str]) -> tuple[TestId, ...] | Reason:
    """The tests that fail with a bug, sorted; or why it is not one to keep.

    Args:
        result: the run with the bug.
        passing: tests that pass without.
        hideable: test files that can be taken out of the agent's tree.
    """
    if result.ran.killed_by:
        return Reason.NEVER_ENDS if result.ran.killed_by == "time" else Reason.BUILD_BREAKS
    if result.report is None or passing - result.report.outcomes.keys():
        return Reason.BUILD_BREAKS
    failing = sorted(passing - _passing(result.report))
    if not failing:
        return Reason.NO_MUTANT_NOTICED
    if len(failing) == len(passing) or len({test.partition("[")[0] for test in failing}) > MOST_FAILING:
        return Reason.ALL_TESTS_FAIL
    return tuple(failing) if {test.partition("::")[0] for test in failing} <= hideable else Reason.TESTS_IN_SOURCE


def hideable_files(paths: Iterable[str]) -> frozenset[str]:
    """Those of a tree's files that hold tests and nothing else, so that they can be taken out of it."""
    return frozenset(path for path in paths if is_test_file(path) and is_protected(path))


def hurried(search: Search, seconds: float) -> float:
    """Seconds that a run with a bug may take when it takes `seconds` without."""
    return min(search.services.settings.test_timeout, PATIENCE * seconds + PATIENCE_SECONDS)


def _passing(report: Report | None) -> frozenset[TestId]:
    outcomes = report.outcomes.items() if report else ()
    return frozenset(test for test, outcome in outcomes if outcome.status is Status.PASSED)
