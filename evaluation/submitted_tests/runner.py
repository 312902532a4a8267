"""Runs of submitted tests before the fix, after it, and on edits of the fixed tree such as mutants.

Each run has a fresh container, two run in parallel. No state survives from one run to the next, so that a test result
depends on the tree alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from backends.sandbox.base import ContainerPool
from backends.sandbox.execution import ResourceLimits
from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.parallel import PoolJob, run_parallel
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.script.render import extract_config_patch, render_plan_script
from evaluation.submitted_tests.patch import SubmittedPatch
from taskdb.records import BuildPlan, TestId

REPEATS = 2
"""Number of runs before the fix, and number of runs after it."""
REWRITTEN_FAULT = "fault-rewritten"
"""Operator of an edit that brings the fault back in different code, which a reader does not recognise."""
OMITTED_HUNK = "hunk-left-out"
"""Operator of an edit that brings a part of the fault back unchanged, so that a reader recognises it."""
PATCH_FAILED_MESSAGE = "the test patch does not apply"
"""Message of the evaluation script for a test patch that does not apply."""

SHORT_RUN_SECONDS = 60
"""Seconds that a short run may take in addition to four times the longest run so far."""
COVERAGE_SLOWDOWN = 10
"""Factor by which tests may be slower while coverage is collected."""


class NotScoredError(Exception):
    """The evaluation itself failed, so the tests get no score."""


@dataclass(frozen=True, kw_only=True)
class TargetChange:
    """The change that the tests are written for.

    `listed_tests`: FAIL_TO_PASS and PASS_TO_PASS. `script`: the task's own evaluation script with the change's tests.
    """

    services: Services
    image: str
    plan: BuildPlan
    language: str
    gold_patch: bytes
    pass_to_pass: frozenset[TestId]
    listed_tests: frozenset[TestId]
    script: str

    @property
    def has_canaries(self) -> bool:
        """Whether the test runner collects added test files."""
        return "write_canary" in self.script


@dataclass(frozen=True, kw_only=True)
class SubmittedTestsResult:
    """Results of submitted tests before and after the fix."""

    detecting_tests: frozenset[TestId] = frozenset()
    """Tests that failed in every run before the fix, passed in every run after it, and did not fail unpatched."""
    supporting_tests: frozenset[TestId] = frozenset()
    """The detecting tests and the new tests that pass after the fix: the tests that the patch is credited with."""
    failures: tuple[str, ...] = ()
    """Tests that fail after the fix, and files that cannot be collected then."""
    lost_tests: tuple[TestId, ...] = ()
    """PASS_TO_PASS tests that the patch removed or broke."""
    tampering: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether all submitted tests pass after the fix."""
        return bool(self.supporting_tests) and not self.failures and not self.lost_tests


def compare_reports(
    baseline: EvaluationReport,
    before: Sequence[EvaluationReport],
    after: Sequence[EvaluationReport],
    *,
    pass_to_pass: Collection[TestId],
    listed_tests: Collection[TestId],
) -> SubmittedTestsResult:
    """Return the result of submitted tests from their reports.

    Args:
        baseline: report of the unpatched test files before the fix; empty when the patch only adds files.
        before: reports of the submitted tests before the fix.
        after: reports of the submitted tests after the fix.
        pass_to_pass: PASS_TO_PASS.
        listed_tests: FAIL_TO_PASS and PASS_TO_PASS; failures of existing tests in neither list are ignored.
    """
    stable = {test for test in after[0].outcomes if all(report.has_passed(test) for report in after)}
    detecting = {
        test for test in stable if all(report.has_failed(test) for report in before) and not baseline.has_failed(test)
    }
    failures = [
        test
        for test in sorted({test for report in after for test in report.outcomes})
        if any(report.has_failed(test) for report in after)
        and not baseline.has_failed(test)
        and (test in listed_tests or test not in baseline.outcomes)
    ]
    failures += sorted({file for report in after for file in report.uncollected} - set(baseline.uncollected))
    lost = sorted(
        test for test in baseline.outcomes if test in pass_to_pass and baseline.has_passed(test) and test not in stable
    )
    return SubmittedTestsResult(
        detecting_tests=frozenset(detecting),
        supporting_tests=frozenset(detecting | (stable - set(baseline.outcomes))),
        failures=tuple(failures),
        lost_tests=tuple(lost),
    )


def is_detected(result: EvaluationResult, tests: Iterable[TestId]) -> bool:
    """Return whether one of the tests failed or is absent, in a run that was not killed."""
    if result.report is None or result.exec_result.killed_by:
        return False
    return any(result.report.has_failed(test) or test not in result.report.outcomes for test in tests)


def has_failure(result: EvaluationResult, tests: Iterable[TestId]) -> bool:
    """Return whether one of the tests ran and failed: stricter than `is_detected`, which a broken build satisfies."""
    return not result.exec_result.killed_by and any((result.report or EMPTY_REPORT).has_failed(test) for test in tests)


def find_false_alarm(result: EvaluationResult, tests: Iterable[TestId]) -> TestId | None:
    """Return the first of the tests that does not pass; None when all pass."""
    return next((test for test in sorted(tests) if not (result.report or EMPTY_REPORT).has_passed(test)), None)


@dataclass(kw_only=True)
class SubmittedTestsRunner:
    """Runs submitted tests in containers of their task. Every method raises `Transient` when the engine fails."""

    target: TargetChange
    submitted: SubmittedPatch
    seconds: float = field(default=0.0, init=False)
    """Duration of the longest run so far."""

    @cached_property
    def files(self) -> list[str]:
        """Test files to run, as the patch leaves them; empty for all tests, for a patch of fixtures."""
        return self.submitted.list_possible_tests(self.target.language)

    @cached_property
    def script(self) -> str:
        """The evaluation script with the submitted tests instead of the hidden tests."""
        return self._render_script(self.submitted.patch, self.files)

    def evaluate(self) -> SubmittedTestsResult:
        """Run the tests before and after the fix, and repeat the runs if the first ones are valid.

        Raises:
            NotScoredError: the evaluation itself failed.
        """
        gold = self.target.gold_patch
        existing = self.submitted.list_existing_tests(self.target.language)
        jobs = [self._make_job(self.script), self._make_job(self.script, gold)]
        if existing or not self.files:
            jobs.append(self._make_job(self._render_script(b"", existing)))
        if self.submitted.unrecognized_files:
            jobs.append(self._make_job(self._render_script(self.submitted.patch, ()), gold))
        first = self._run_jobs(jobs)
        if first[1].infrastructure_error == PATCH_FAILED_MESSAGE:
            return SubmittedTestsResult(failures=("the patch does not apply after the fix",))
        baseline = self._require_report(first[2]) if existing or not self.files else EMPTY_REPORT
        stray = (
            sorted(self.submitted.unrecognized_files - self._require_report(first[-1]).list_files())
            if self.submitted.unrecognized_files
            else []
        )
        found = self._compare(baseline, first[:1], first[1:2])
        if stray:
            return replace(found, tampering=(f"{stray[0]} is no test: the framework collects none from it",))
        if not found.detecting_tests or not found.is_valid or found.tampering:
            return found
        more = self._run_jobs(
            [self._make_job(self.script, patch, seed=seed) for seed in range(1, REPEATS) for patch in (b"", gold)]
        )
        return self._compare(baseline, [first[0], *more[::2]], [first[1], *more[1::2]])

    def run_on_edits(
        self, edits: Sequence[bytes], *, collect_lines: bool = False, short: bool = False
    ) -> list[EvaluationResult]:
        """Run the tests once for each patch, applied on the fixed tree; an empty patch is the fixed tree itself.

        `short` lowers the time limit, as a mutant may run for ever.

        Raises:
            NotScoredError: the evaluation itself failed.
        """
        jobs = [
            self._make_job(self.script, concatenate_patches(self.target.gold_patch, edit), collect_lines=collect_lines)
            for edit in edits
        ]
        results = self._run_jobs(jobs, self._reduce_limits() if short else None)
        for result in results:
            self._require_report(result)
        return results

    def run_task_script(self, edits: Sequence[bytes]) -> list[EvaluationResult]:
        """Run the task's own script once for each patch: the change's tests and all tests that passed before."""
        return self._run_jobs(
            [self._make_job(self.target.script, concatenate_patches(self.target.gold_patch, edit)) for edit in edits]
        )

    def run_original_tests(self, files: Sequence[str], *, seconds: float) -> EvaluationResult:
        """Run the unpatched tests on the fixed tree and collect the executed lines; no files for all tests.

        `seconds`: duration of these tests without coverage.
        """
        limits = self.target.services.test_limits()
        limits = replace(limits, seconds=min(limits.seconds, SHORT_RUN_SECONDS + COVERAGE_SLOWDOWN * seconds))
        job = self._make_job(self._render_script(b"", files), self.target.gold_patch, collect_lines=True)
        return self._run_jobs([job], limits)[0]

    def _compare(
        self, baseline: EvaluationReport, before: Sequence[EvaluationResult], after: Sequence[EvaluationResult]
    ) -> SubmittedTestsResult:
        found = compare_reports(
            baseline,
            [self._require_report(one) for one in before],
            [self._require_report(one) for one in after],
            pass_to_pass=self.target.pass_to_pass,
            listed_tests=self.target.listed_tests,
        )
        details = (one.failure_detail for one in after if one.report is None)
        has_wrong_canary = any(one.canary_status == "wrong" for one in (*before, *after))
        tampering = ("canary: a test that must fail passed, or one that must pass failed",) if has_wrong_canary else ()
        return replace(found, failures=(*found.failures, *details), tampering=tampering)

    def _require_report(self, result: EvaluationResult) -> EvaluationReport:
        if result.infrastructure_error:
            raise NotScoredError(result.infrastructure_error)
        return result.report or EMPTY_REPORT

    def _render_script(self, patch: bytes, files: Sequence[str]) -> str:
        return render_plan_script(
            self.target.plan,
            test_patch=patch,
            files=files,
            canaries_beside=files if self.target.has_canaries else (),
            config_patch=extract_config_patch(self.target.gold_patch),
        )

    def _make_job(
        self, script: str, patch: bytes = b"", *, seed: int = 0, collect_lines: bool = False
    ) -> PoolJob[EvaluationResult]:
        def run(pool: ContainerPool, last: bool) -> EvaluationResult:
            return run_tests(
                pool,
                script,
                workdir=self.target.plan.workdir,
                patch=patch,
                seed=seed,
                files=self.files if seed else (),
                collect_lines=collect_lines,
                last=last,
            )

        return run

    def _run_jobs(
        self, jobs: Sequence[PoolJob[EvaluationResult]], limits: ResourceLimits | None = None
    ) -> list[EvaluationResult]:
        services = self.target.services
        results = run_parallel(services.sandbox, self.target.image, limits or services.test_limits(), jobs)
        self.seconds = max(self.seconds, *(result.exec_result.seconds for result in results), 0.0)
        return results

    def _reduce_limits(self) -> ResourceLimits:
        limits = self.target.services.test_limits()
        return replace(limits, seconds=min(limits.seconds, SHORT_RUN_SECONDS + 4 * self.seconds))


def concatenate_patches(first: bytes, second: bytes) -> bytes:
    """Return two patches as one; the second applies on top of the first."""
    return b"".join(patch if patch.endswith(b"\n") else patch + b"\n" for patch in (first, second) if patch)
