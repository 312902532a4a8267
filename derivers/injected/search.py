"""Search for bugs that tests detect: each is tried in containers of the base tree."""

from __future__ import annotations

import posixpath
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from backends.git import GitRepository
from backends.sandbox.base import ContainerPool
from backends.services import Services
from core.text import format_count
from derivers.injected.reach import list_passing
from derivers.search_progress import SearchProgress
from evaluation.lists import is_assertion
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.script.render import render_plan_script
from languages.paths import is_protected, is_test_file
from mutation import Mutation, build_patch
from taskdb.records import TestId
from taskdb.records.lineage import Lineage

MAX_TEST_RUNS = 20
"""Approximate test runs for a change: the whole suite is run where the time budget allows so many runs of it."""
MAX_TRIED_BUGS = 12
"""Bugs that are tried for a task of a change; half as many for each further task."""
MAX_FAILING_TESTS = 50
"""Failing tests of a bug that is kept; the parametrised cases of a test count once."""
TIMEOUT_FACTOR = 5.0
"""A bug may cause an endless loop: its run is killed after this multiple of the base run's time."""
TIMEOUT_EXTRA_SECONDS = 10.0
"""Seconds added to that limit."""


class Reason(StrEnum):
    """Why a change gives no injected bugs, or a bug was rejected; ordered by the progress made until then."""

    NO_PASSING_TESTS = "no-passing-tests"
    NO_MUTABLE_CODE = "no-mutable-code"
    """No mutation operator applies to a source file that tests execute."""
    OUT_OF_BUDGET = "out-of-budget"
    NO_MUTANT_DETECTED = "no-mutant-detected"
    BUILD_BREAKS = "build-breaks"
    """Tests are missing from the report, or the runner writes none."""
    TIMES_OUT = "times-out"
    ALL_TESTS_FAIL = "all-tests-fail"
    """All, or more than MAX_FAILING_TESTS."""
    TESTS_IN_SOURCE = "tests-in-source"
    """The failing tests are in files that cannot be removed from the agent's tree."""
    NO_ASSERTION_FAILS = "no-assertion-fails"
    """No test fails by an assertion: all of them end by an exception or a crash."""
    SAME_TESTS_FAIL = "same-tests-fail"
    """The same tests fail with it as in another task of the environment."""
    BUGS_DO_NOT_COMBINE = "bugs-do-not-combine"
    NO_IMAGE = "no-image"
    NOT_STABLE = "not-stable"
    """In the task's own image no test fails in every run with the bug and passes in every run without it."""
    FURTHER_TESTS_FAIL = "further-tests-fail"
    """In the task's own image tests fail with it that passed before, or were not run, in files that the agent sees."""
    STATEMENT_LEAKS = "statement-leaks"
    ENOUGH_TASKS = "enough-tasks"
    """The environment has given as many tasks as are wanted."""


@dataclass(frozen=True, kw_only=True)
class DetectedBug:
    """A bug with which tests fail, at least one of them by an assertion."""

    mutation: Mutation
    patch: bytes
    """Patch to the base tree."""
    failing_tests: tuple[TestId, ...]
    """Sorted."""
    asserting_tests: frozenset[TestId]
    """Those of them that fail by an assertion."""
    report: EvaluationReport
    """Report of the run in which they failed, which may be a run of only some test files."""


@dataclass(kw_only=True)
class BugSearch:
    """Evaluation of bugs in containers of the base tree."""

    lineage: Lineage
    services: Services
    files: tuple[str, ...]
    """Test files that are run; empty for the whole suite."""
    test_files: frozenset[str]
    """All test files of the base tree that can be hidden."""
    pool: ContainerPool = field(init=False)
    """Containers of the runs; set by `open_base` for the base run, and by callers for those with bugs."""
    started: float = field(default_factory=time.monotonic)
    tally: Counter[Reason] = field(default_factory=Counter)
    """Rejected bugs by reason."""
    base_result: EvaluationResult | None = None
    """Result of the run without a bug."""
    bare_folders: set[frozenset[str]] = field(default_factory=set)
    """Folders of test files in which the test runner collects no canaries."""
    budget_seconds: float = field(init=False)
    """Wall time that the search may take."""

    def __post_init__(self) -> None:
        self.budget_seconds = self.services.settings.budget.seconds

    @classmethod
    def open_base(
        cls, lineage: Lineage, services: Services, repository: GitRepository, earlier: EvaluationResult | None = None
    ) -> tuple[BugSearch, frozenset[TestId]]:
        """Return a search after its run of the base tree, and the tests that pass there.

        Args:
            lineage: environment that is searched.
            services: sandbox and settings.
            repository: repository that contains the base commit.
            earlier: result of such a run, in place of another one.

        Raises:
            Transient: the engine failed.
        """
        environment = lineage.require_environment()
        hideable = find_hideable_files(entry.path for entry in repository.ls_tree(lineage.candidate.base_commit))
        files = select_test_files(lineage, services, hideable)
        search = cls(lineage=lineage, services=services, files=files, test_files=hideable, base_result=earlier)
        if earlier is None:
            limits = services.test_limits(environment.plan.language)
            with services.sandbox.open_pool(environment.image, limits=limits) as search.pool:
                search.run_base()
        return search, list_passing(search.stable_report)

    def run_base(self) -> None:
        """Run the tests without a bug, with coverage, into `base_result`.

        Raises:
            Transient: the engine failed.
        """
        plan = self.lineage.require_environment().plan
        self.base_result = run_tests(
            self.pool, self._render_script(metered=True), workdir=plan.workdir, collect_lines=True, last=True
        )

    def describe_passing(self, passing: frozenset[TestId]) -> str:
        """Return in a line why too few tests pass. `passing`: those that `open_base` returned."""
        now = list_passing(self.base_result.report if self.base_result else None)
        n_flaky = len(now - passing)
        unstable = f"; {format_count(n_flaky, 'further test')} passed now and not in every run" if n_flaky else ""
        return (
            f"{format_count(len(passing), 'test')} passed in every run at the base commit, two are required{unstable}"
        )

    @cached_property
    def stable_report(self) -> EvaluationReport:
        """Outcomes of the base run, of the tests with the same status in both runs of the environment's build."""
        report = (self.base_result.report if self.base_result else None) or EMPTY_REPORT
        stored = self.lineage.require_environment().base_report
        if not stored:
            return report
        built = EvaluationReport.from_bytes(self.services.artifacts.get(stored))
        outcomes = {
            test: outcome
            for test, outcome in report.outcomes.items()
            if test in built.outcomes and built.outcomes[test].status is outcome.status
        }
        return replace(report, outcomes=outcomes)

    def require_base_result(self) -> EvaluationResult:
        """Return the result of the run without a bug.

        Raises:
            LookupError: there was none yet.
        """
        if self.base_result is None:
            raise LookupError("the tests were not run without a bug yet")
        return self.base_result

    def collects_canaries(self, hidden: Collection[str]) -> bool:
        """Return whether the test runner is expected to collect canaries in the folders of some test files."""
        return _list_folders(hidden) not in self.bare_folders

    def note_canaries(self, hidden: Collection[str], has_canaries: bool) -> None:
        """Note whether the script of a task, with some hidden test files, has canaries."""
        if not has_canaries:
            self.bare_folders.add(_list_folders(hidden))

    @property
    def workdir(self) -> str:
        """The tree's folder."""
        return self.lineage.require_environment().plan.workdir

    @property
    def script(self) -> str:
        """Evaluation script of the base tree's own tests."""
        return self._render_script()

    def _render_script(self, *, metered: bool = False) -> str:
        plan = self.lineage.require_environment().plan
        return render_plan_script(plan, test_patch=b"", files=self.files, canaries_beside=(), metered=metered)

    def detect_bugs(
        self, bugs: Iterable[Mutation], read: Callable[[str], bytes], passing: frozenset[TestId]
    ) -> Iterator[DetectedBug]:
        """Yield the bugs with which tests fail; a limited number is tried.

        Raises:
            Transient: the engine failed.
        """
        settings = self.services.settings
        limit = MAX_TRIED_BUGS + MAX_TRIED_BUGS // 2 * (
            settings.derive.injected_per_change + settings.derive.injected_on_top - 2
        )
        for number, bug in enumerate(bugs):
            if number >= max(limit, MAX_TRIED_BUGS) or self.is_out_of_time():
                return
            patch = build_patch(bug.path, read(bug.path), bug.after)
            result = run_tests(self.pool, self.script, workdir=self.workdir, patch=patch)
            if detected := self.read_run(bug, patch, result, passing):
                yield detected

    def read_run(
        self,
        bug: Mutation,
        patch: bytes,
        result: EvaluationResult,
        passing: frozenset[TestId],
        others: frozenset[TestId] = frozenset(),
    ) -> DetectedBug | None:
        """Return a bug with which a test fails by an assertion; else None, and count the reason in the tally.

        Args:
            bug: the bug.
            patch: its patch to the base tree.
            result: the run with the bug.
            passing: tests that pass without it in such a run.
            others: further passing tests, which do not execute its code and were not run.
        """
        failing = classify_run(result, passing, self.test_files - {bug.path}, others)
        if isinstance(failing, Reason):
            self.tally[failing] += 1
            return None
        report = result.report or EMPTY_REPORT
        asserting = frozenset(test for test in failing if is_assertion(report.outcomes[test]))
        if not asserting:
            self.tally[Reason.NO_ASSERTION_FAILS] += 1
            return None
        return DetectedBug(mutation=bug, patch=patch, failing_tests=failing, asserting_tests=asserting, report=report)

    def continue_from(self, progress: SearchProgress, shares: int) -> None:
        """Continue a search after its earlier steps, whose time and rejected bugs count.

        Args:
            progress: what it has learnt.
            shares: how often the time budget of a change is given.
        """
        self.budget_seconds *= shares
        self.started -= progress.seconds
        self.tally.update({Reason(reason): number for reason, number in progress.tally.items()})

    @property
    def elapsed(self) -> float:
        """Seconds that the search has taken, with those of earlier steps."""
        return time.monotonic() - self.started

    def is_out_of_time(self) -> bool:
        """Return whether the time budget is used up, and count that in the tally."""
        if self.elapsed < self.budget_seconds:
            return False
        self.tally[Reason.OUT_OF_BUDGET] += 1
        return True

    def explain_rejection(self) -> tuple[Reason, str]:
        """Return the reason of the bug that made most progress, and the counts of all reasons."""
        counts = ", ".join(f"{reason} {number}" for reason, number in self.tally.most_common())
        furthest = max(self.tally, key=list(Reason).index, default=Reason.NO_MUTANT_DETECTED)
        return furthest, f"{sum(self.tally.values())} bugs were tried: {counts}"


def classify_run(
    result: EvaluationResult,
    passing: frozenset[TestId],
    hideable: frozenset[str],
    others: frozenset[TestId] = frozenset(),
) -> tuple[TestId, ...] | Reason:
    """Return the tests that fail with a bug, sorted; or why the bug is rejected.

    Args:
        result: the run with the bug.
        passing: tests that pass without it.
        hideable: test files that can be removed from the agent's tree.
        others: further tests that pass, which were not run.
    """
    if result.exec_result.killed_by:
        return Reason.TIMES_OUT if result.exec_result.killed_by == "time" else Reason.BUILD_BREAKS
    if result.report is None or passing - result.report.outcomes.keys():
        return Reason.BUILD_BREAKS
    failing = sorted(passing - list_passing(result.report))
    if not failing:
        return Reason.NO_MUTANT_DETECTED
    if len(failing) == len(passing | others) or len({test.partition("[")[0] for test in failing}) > MAX_FAILING_TESTS:
        return Reason.ALL_TESTS_FAIL
    return tuple(failing) if {test.partition("::")[0] for test in failing} <= hideable else Reason.TESTS_IN_SOURCE


def _list_folders(files: Collection[str]) -> frozenset[str]:
    return frozenset(posixpath.dirname(file) for file in files)


def find_hideable_files(paths: Iterable[str]) -> frozenset[str]:
    """Return the files of a tree that contain only tests, and so can be removed from it."""
    return frozenset(path for path in paths if is_test_file(path) and is_protected(path))


def select_test_files(lineage: Lineage, services: Services, hideable: frozenset[str]) -> tuple[str, ...]:
    """Return the test files to run: empty, for the whole suite, where time allows; else those of the verification."""
    environment = lineage.require_environment()
    seconds, limit = environment.test_seconds, services.test_limits(environment.plan.language).seconds
    if seconds * MAX_TEST_RUNS <= services.settings.budget.seconds and seconds <= limit / 2:
        return ()
    verified = lineage.verification.eval_files if lineage.verification else ()
    chosen = verified or lineage.tests.files
    return tuple(sorted(hideable & set(chosen)))


def compute_timeout(search: BugSearch, seconds: float) -> float:
    """Return the time limit of a run with a bug, in seconds, from the duration of the run without it."""
    language = search.lineage.require_environment().plan.language
    return min(search.services.test_limits(language).seconds, TIMEOUT_FACTOR * seconds + TIMEOUT_EXTRA_SECONDS)
