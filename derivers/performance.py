"""Performance tasks: the same behaviour in less time, compared with the gain of the change itself.

The workload is a few of the repository's own tests, repeated many times: those that the gold patch makes faster. Base
and gold runs alternate and are compared by rank. The threshold for a submission follows from the lower bound of the
speedup, not from its estimate, and a second sample of the base tree must show no speedup (the control).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from backends.git import GitError, GitRepository
from backends.index import ScratchIndex
from backends.sandbox.base import ContainerPool
from backends.services import Services
from derivers.base import KindRejection, build_task, check_statement
from derivers.counters import add_counters
from derivers.timed_tests import list_program_tests
from evaluation.controls import NO_CONTROLS
from evaluation.controls.controls import build_controls
from evaluation.performance.workload import (
    Clock,
    ReportedClock,
    WorkloadSample,
    can_repeat_tests,
    has_programs,
    measure_interleaved,
    render_workload,
)
from evaluation.reports.outcomes import OutcomeStatus
from evaluation.runner.evaluator import Evaluator
from evaluation.runner.run import run_tests
from guest.scoring.timing import (
    ALPHA,
    RUNS_PER_TREE,
    compute_guaranteed_speedup,
    compute_p_value,
    compute_speedup,
)
from languages.paths import is_benchmark, is_test_file
from taskdb.records import Kind, Task, TestId
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import PerformanceOracle
from taskdb.records.tags import ChangeKind

MAX_SCREENED_TESTS = 500
"""Tests that are timed in the first place; of more, an evenly spaced selection."""
MAX_SCREENED_PROGRAM_TESTS = 100
"""The same where each test is a process of its own."""
ROUND_SECONDS = 0.01
"""A test that takes less time is run several times in a round."""
MAX_RUNS_PER_ROUND = 200
SCREEN_ROUNDS = 2
CONFIRM_ROUNDS = 6
"""Rounds of the second timing, of tests that were faster in the first."""
MAX_CONFIRMED_TESTS = 30
"""Tests that are timed a second time."""
MIN_SAVED_SHARE = 0.2
"""Share of a test's time that the gold patch must save, for the test to be part of the workload."""
MIN_SAVED_SECONDS: Mapping[Clock, float] = {"cpu": 0.001, "wall": 0.05}
"""Seconds that it must save, too; more by wall time, which other processes lengthen by chance."""
MAX_WORKLOAD_TESTS = 10
"""Tests of the workload: those with the largest savings."""
WORKLOAD_SECONDS = 1.5
"""Approximate duration of the workload in the base tree."""
MIN_KEPT_WORK = 0.95
"""Share of its work (lines of the test, sizes of the input that it hands to the program) that a test must keep."""
MAX_ROUNDS = 500
MIN_SPEEDUP = 1.1
"""Lower bound of the speedup that a performance change must reach."""
REQUIRED_SAVING_SHARE = 0.8
"""Share of the gold patch's guaranteed saving that a submission must reach."""

STATEMENT = """{statement}

The behaviour of the program must not change: the tests that pass now must pass afterwards. The {clock} of the work
described above is measured, on calls like those in the project's own tests.
"""
CLOCKS: Mapping[Clock, str] = {"cpu": "processor time", "wall": "time"}


class Reason(StrEnum):
    """Why a verified change is not a performance task.

    Where the judge excluded the statement, the reason is its rule.
    """

    NOT_A_PERFORMANCE_CHANGE = "not-a-performance-change"
    NO_WORKLOAD = "no-workload"
    """No test can be timed before and after the change."""
    NO_STABLE_GAIN = "no-stable-gain"
    WORK_SHRINKS = "work-shrinks"
    """The tests that are faster do less with the change: they use a limit or data of the program, for example."""
    CONTROL_SHOWS_A_GAIN = "control-shows-a-gain"
    """Two samples of the base tree differ: other processes disturb the measurement."""


def derive_performance(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the performance task of a verified change, from about 35 runs, most of them of a few tests.

    Raises:
        Transient: engine, disk or network failed.
    """
    candidate, environment = lineage.candidate, lineage.require_environment()
    if candidate.change_kind is not ChangeKind.PERFORMANCE:
        return KindRejection(Reason.NOT_A_PERFORMANCE_CHANGE, f"the change is of another kind: {candidate.change_kind}")
    if rejection := check_statement(lineage):
        return rejection
    framework = environment.plan.test.framework
    if not can_repeat_tests(framework):
        return KindRejection(Reason.NO_WORKLOAD, f"tests of {framework} cannot be repeated")
    with services.sandbox.open_pool(environment.image, limits=services.test_limits(environment.plan.language)) as pool:
        return PerformanceMeasurement(lineage=lineage, services=services, pool=pool).derive()


@dataclass(frozen=True, kw_only=True)
class TimedWorkload:
    """A script that repeats the tests which the gold patch makes faster."""

    script: str
    tests: tuple[TestId, ...]


@dataclass(frozen=True, kw_only=True)
class TimingPair:
    """Seconds of all runs of a test without and with the gold patch."""

    before: float
    after: float

    @property
    def saved(self) -> float:
        """Seconds that the gold patch saves."""
        return self.before - self.after


@dataclass(frozen=True, kw_only=True)
class MeasuredSpeedup:
    """The gold patch's speedup: base seconds by gold seconds."""

    clock: Clock
    ratio: float
    lower_bound: float


@dataclass(kw_only=True)
class PerformanceMeasurement:
    """Selection and timing of a change's workload."""

    lineage: Lineage
    services: Services
    pool: ContainerPool

    @cached_property
    def gold_patch(self) -> bytes:
        """The gold patch."""
        return self.services.artifacts.get(self.lineage.gold_patch)

    @cached_property
    def test_patch(self) -> bytes:
        """The test patch."""
        return self.services.artifacts.get(self.lineage.tests.patch)

    @cached_property
    def repository(self) -> GitRepository:
        """A repository with the base tree of the change."""
        candidate = self.lineage.candidate
        return self.services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)

    def derive(self) -> list[Task] | KindRejection:
        """Return the task, or why there is none."""
        workload = self._select_workload()
        if isinstance(workload, KindRejection):
            return workload
        speedup = self._measure_speedup(workload)
        return speedup if isinstance(speedup, KindRejection) else [self._build_task(workload, speedup)]

    # -------------------------------------------------------------------------------------------------------- workload

    def _select_workload(self) -> TimedWorkload | KindRejection:
        """Return the tests of the change's own files that it makes faster, else of all files."""
        passing = self.lineage.require_verification().PASS_TO_PASS
        touched = {path for path in self.lineage.tests.files if is_test_file(path) or is_benchmark(path)}
        near = tuple(test for test in passing if test.partition("::")[0] in touched)
        most = MAX_SCREENED_TESTS
        if self.is_program:
            near, passing = (
                self._list_program_tests(tests, files) for tests, files in ((near, touched), (passing, None))
            )
            most = MAX_SCREENED_PROGRAM_TESTS
        rejection = KindRejection(Reason.NO_WORKLOAD, "no test passes before and after the change")
        # Processor time first: it is disturbed less by other processes. Wall time is for changes that shorten waiting.
        attempts: tuple[tuple[tuple[TestId, ...], Clock], ...] = ((near, "cpu"), (passing, "cpu"), (near, "wall"))
        for tests, clock in dict.fromkeys(attempts):
            if tests:
                # Evenly spaced and not the first: neighbouring tests are about the same part of the program.
                workload = self._build_workload(tests[:: -(-len(tests) // most)], clock)
                if isinstance(workload, TimedWorkload):
                    return workload
                rejection = workload
        return rejection

    @property
    def is_program(self) -> bool:
        """Whether the tests are compiled into programs."""
        return has_programs(self.lineage.require_environment().plan.test.framework)

    def _list_program_tests(self, passing: Sequence[TestId], files: Collection[str] | None) -> tuple[TestId, ...]:
        """Return the passing tests that can be run by themselves, and benchmarks of the files (None: of all)."""
        with ScratchIndex(self.repository, self.lineage.candidate.base_commit) as index:
            index.apply(self.test_patch)
            return list_program_tests(self.lineage.require_environment().plan, index, passing, files)

    def _count_work_in(self, tests: Iterable[TestId]) -> dict[str, bytes]:
        """Return the tests' files with counters of their work, and the files that these need."""
        with ScratchIndex(self.repository, self.lineage.candidate.base_commit) as index:
            index.apply(self.test_patch)
            paths = sorted({test.partition("::")[0] for test in tests})
            return add_counters({path: content for path in paths if (content := index.read_file(path)) is not None})

    def _build_workload(self, tests: tuple[TestId, ...], clock: Clock) -> TimedWorkload | KindRejection:
        """Return the workload made of the tests that take less time by a clock."""
        runs = self._count_runs(tests, clock)
        first = self._time_tests(runs, SCREEN_ROUNDS, clock)
        if not first:
            return KindRejection(Reason.NO_WORKLOAD, f"none of {len(tests)} tests passes when it is repeated")
        candidates = _select_largest_savings(first, clock, MAX_CONFIRMED_TESTS)
        # Among many tests some are faster by chance; a second timing excludes those.
        again = self._time_tests({test: runs[test] for test in candidates}, CONFIRM_ROUNDS, clock) if candidates else {}
        chosen = sorted(_select_largest_savings(again, clock, MAX_WORKLOAD_TESTS))
        if not chosen:
            return KindRejection(Reason.NO_STABLE_GAIN, f"none of {len(first)} tests is noticeably faster")
        work = self._measure_work(chosen)
        shrinking = [test for test in chosen if test not in work]
        chosen = [test for test in chosen if test in work]
        if not chosen:
            return KindRejection(Reason.WORK_SHRINKS, f"with the change, {shrinking[0]} does less work than before")
        rounds = WORKLOAD_SECONDS * CONFIRM_ROUNDS / sum(again[test].before for test in chosen)
        script = self._render_script(
            {test: runs[test] for test in chosen}, max(1, min(MAX_ROUNDS, round(rounds))), "cpu", work
        )
        return TimedWorkload(script=script, tests=tuple(chosen))

    def _count_runs(self, tests: tuple[TestId, ...], clock: Clock) -> dict[TestId, int]:
        """Return how often each test that passes in the base tree is run in a round, from its duration."""
        if self.is_program:
            counted = self._measure_seconds(self._render_script(dict.fromkeys(tests, 1), 0, "runs"), b"")
            return {test: int(runs) for test, runs in counted.items()}
        seconds = self._measure_seconds(self._render_script(dict.fromkeys(tests, 1), 0, clock), b"")
        return {
            test: max(1, min(MAX_RUNS_PER_ROUND, int(ROUND_SECONDS / max(duration, 1e-6))))
            for test, duration in seconds.items()
        }

    def _time_tests(self, runs: Mapping[TestId, int], rounds: int, clock: Clock) -> dict[TestId, TimingPair]:
        """Return the shorter of two durations in each tree, for tests that pass in all four runs."""
        if not runs:
            return {}
        script = self._render_script(runs, rounds, clock)
        # In this order, a machine that gets slower or faster over time affects both trees alike.
        patches = (b"", self.gold_patch, self.gold_patch, b"")
        timings = [self._measure_seconds(script, patch) for patch in patches]
        base, gold, gold_again, base_again = timings
        return {
            # The shorter duration of two: whatever disturbs a measurement lengthens it.
            test: TimingPair(before=min(base[test], base_again[test]), after=min(gold[test], gold_again[test]))
            for test in runs
            if all(test in timing for timing in timings)
        }

    def _measure_seconds(self, script: str, patch: bytes) -> dict[TestId, float]:
        """Return the seconds of all runs of each test that passed."""
        workdir = self.lineage.require_environment().plan.workdir
        report = run_tests(self.pool, script, workdir=workdir, patch=patch).report
        outcomes = report.outcomes.items() if report else ()
        return {test: outcome.seconds for test, outcome in outcomes if outcome.status is OutcomeStatus.PASSED}

    def _measure_work(self, tests: Sequence[TestId]) -> dict[TestId, float]:
        """Return the work of the tests that do as much with the gold patch as without it."""
        script = self._render_script(dict.fromkeys(tests, 1), 0, "work")
        before, after = (self._measure_seconds(script, patch) for patch in (b"", self.gold_patch))
        return {
            test: min(before[test], after[test])
            for test in tests
            if test in before and after.get(test, -1) >= MIN_KEPT_WORK * before[test]
        }

    def _render_script(
        self,
        tests: Mapping[TestId, int],
        rounds: int,
        clock: ReportedClock,
        work: Mapping[TestId, float] = MappingProxyType({}),
    ) -> str:
        plan, base = self.lineage.require_environment().plan, self.lineage.candidate.base_commit
        verified_script = self.services.artifacts.get_text(self.lineage.require_verification().eval_script)
        return render_workload(
            plan,
            self.repository,
            base,
            test_patch=self.test_patch,
            gold_patch=self.gold_patch,
            tests=tests,
            rounds=rounds,
            canaries="$report/canaries" in verified_script,
            clock=clock,
            work=work,
            counted_files=self._count_work_in(tests) if self.is_program else {},
        )

    # --------------------------------------------------------------------------------------------------------- speedup

    def _measure_speedup(self, workload: TimedWorkload) -> MeasuredSpeedup | KindRejection:
        """Return the gold patch's speedup by processor time, else by wall time."""
        workdir = self.lineage.require_environment().plan.workdir
        # The base tree twice: its two samples must not differ, or the difference of the trees shows nothing.
        patches = (b"", self.gold_patch, b"")
        samples = measure_interleaved(
            self.pool, workload.script, workload.tests, patches, workdir=workdir, runs=RUNS_PER_TREE
        )
        if isinstance(samples, WorkloadSample):
            return KindRejection(Reason.NO_WORKLOAD, samples.infrastructure_error or samples.invalid_reason)
        results = list(_compare_clocks(samples))
        return next((result for result in results if isinstance(result, MeasuredSpeedup)), results[0])

    # ------------------------------------------------------------------------------------------------------------ task

    def _build_task(self, workload: TimedWorkload, speedup: MeasuredSpeedup) -> Task:
        lineage, put = self.lineage, self.services.artifacts.put
        # From the lower bound: half of all equally good solutions would miss a threshold at the measured ratio.
        saving = REQUIRED_SAVING_SHARE * (1 - 1 / speedup.lower_bound)
        # FAIL_TO_PASS tests may require new behaviour, which the statement of this task forbids.
        task = build_task(lineage, Kind.PERFORMANCE, FAIL_TO_PASS=())
        controls = self._build_controls(task, workload)
        return task.model_copy(
            update={
                "problem_statement": STATEMENT.format(statement=task.problem_statement, clock=CLOCKS[speedup.clock]),
                "oracle": PerformanceOracle(
                    workload=put(workload.script.encode()),
                    tests=workload.tests,
                    clock=speedup.clock,
                    ratio=round(speedup.ratio, 3),
                    threshold=round(1 / (1 - saving), 3),
                ),
                **controls,
            }
        )

    def _build_controls(self, task: Task, workload: TimedWorkload) -> Mapping[str, object]:
        """Return the task's fields for sabotaged tests: all PASS_TO_PASS tests of the change's own test files.

        Where it has none, those of the workload's files.
        """
        touched = set(self.lineage.tests.files) or {test.partition("::")[0] for test in workload.tests}
        tests = [test for test in task.PASS_TO_PASS if test.partition("::")[0] in touched]
        evaluator = Evaluator(
            services=self.services,
            pool=self.pool,
            image_digest=task.image_digest,
            workdir=task.require_plan().workdir,
            script=self.services.artifacts.get_text(task.require_script()),
        )
        try:
            controls = build_controls(
                evaluator,
                self.repository,
                task.base_commit,
                test_patch=self.test_patch,
                gold_patch=self.gold_patch,
                tests=sorted(tests),
                others=task.PASS_TO_PASS,
                seconds=task.test_seconds,
            )
        except GitError:
            return NO_CONTROLS
        return controls.make_fields(self.services.artifacts)


def _select_largest_savings(timings: Mapping[TestId, TimingPair], clock: Clock, limit: int) -> list[TestId]:
    """Return at most `limit` tests that are noticeably faster, the largest saving first."""
    faster = [
        test
        for test, timing in timings.items()
        if timing.saved >= max(MIN_SAVED_SECONDS[clock], MIN_SAVED_SHARE * timing.before)
    ]
    return sorted(faster, key=lambda test: -timings[test].saved)[:limit]


def _compare_clocks(samples: list[list[WorkloadSample]]) -> Iterator[MeasuredSpeedup | KindRejection]:
    """Yield a result for each clock, from samples of the base tree, the gold tree and the base tree again."""
    for clock in CLOCKS:
        before, after, control = ([sample.get_seconds(clock) for sample in tree] for tree in samples)
        ratio, lower_bound = compute_speedup(before, after), compute_guaranteed_speedup(before, after)
        if lower_bound < MIN_SPEEDUP:
            detail = f"{ratio:.2f} times as fast by {clock} time, at least {max(lower_bound, 1):.2f} times"
            yield KindRejection(Reason.NO_STABLE_GAIN, detail)
        elif min(compute_p_value(before, control), compute_p_value(control, before)) < ALPHA:
            detail = f"two samples of the base tree differ by {compute_speedup(before, control):.2f} in {clock} time"
            yield KindRejection(Reason.CONTROL_SHOWS_A_GAIN, detail)
        else:
            yield MeasuredSpeedup(clock=clock, ratio=ratio, lower_bound=lower_bound)
