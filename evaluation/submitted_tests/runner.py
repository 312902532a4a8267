"""Runs of submitted tests before the fix, after it, and on edits of the fixed tree such as mutants.

Each run has a fresh container, two run in parallel. No state survives from a run to the next, so that a test result
depends on the tree alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from guest.scoring import submitted_tests as scoring
from guest.scoring.patch_rules import PATCH_FAILED_MESSAGE
from guest.scoring.submitted_tests import (
    REPEATS,
    SHORT_RUN_SECONDS,
    SubmittedTestsResult,
    compare_reports,
    concatenate_patches,
)
from taskdb.records import BuildPlan, TestId

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


def is_detected(result: EvaluationResult, tests: Iterable[TestId]) -> bool:
    """Return whether any of the tests failed or is absent, in a run that was not killed."""
    return not scoring.is_missed(result.report, tests, killed=bool(result.exec_result.killed_by))


def has_failure(result: EvaluationResult, tests: Iterable[TestId]) -> bool:
    """Return whether any of the tests ran and failed: stricter than `is_detected`, which a broken build satisfies."""
    return not result.exec_result.killed_by and any((result.report or EMPTY_REPORT).has_failed(test) for test in tests)


def find_false_alarm(result: EvaluationResult, tests: Iterable[TestId]) -> TestId | None:
    """Return the first of the tests that does not pass; None when all pass."""
    return scoring.find_false_alarm(result.report, tests)


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
        """Run the tests before and after the fix, and repeat the runs if the first runs are valid.

        Raises:
            NotScoredError: the evaluation itself failed.
        """
        gold = self.target.gold_patch
        existing = self.submitted.list_existing_tests(self.target.language)
        jobs = [self._make_job(self.script), self._make_job(self.script, gold)]
        # The baseline shows which tests the patch loses; without tests before the patch there are none to lose.
        if existing or not self.files:
            jobs.append(self._make_job(self._render_script(b"", existing)))
        if self.submitted.unrecognized_files:
            jobs.append(self._make_job(self._render_script(self.submitted.patch, ()), gold))
        first = self._run_jobs(jobs)
        if first[1].script_error == PATCH_FAILED_MESSAGE:
            return SubmittedTestsResult(failures=("the patch does not apply after the fix",))
        baseline = self._require_report(first[2]) if existing or not self.files else EMPTY_REPORT
        stray = (
            sorted(self.submitted.unrecognized_files - self._require_report(first[-1]).list_files())
            if self.submitted.unrecognized_files
            else []
        )
        result = self._compare(baseline, first[:1], first[1:2])
        if stray:
            return replace(result, tampering=(f"{stray[0]} is no test: the framework collects none from it",))
        # The runs are repeated to detect varying tests; a result that is invalid already stays invalid.
        if not result.detecting_tests or not result.is_valid or result.tampering:
            return result
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
        limits = self.target.services.test_limits(self.target.language)
        limits = replace(limits, seconds=min(limits.seconds, SHORT_RUN_SECONDS + COVERAGE_SLOWDOWN * seconds))
        job = self._make_job(self._render_script(b"", files), self.target.gold_patch, collect_lines=True)
        return self._run_jobs([job], limits)[0]

    def run_suite(self, patch: bytes, files: Sequence[str]) -> tuple[EvaluationResult, EvaluationResult]:
        """Run test files with a patch of tests before and after the fix, and collect the executed lines.

        Without files all tests are run.

        Raises:
            NotScoredError: the evaluation itself failed.
        """
        script = self._render_script(patch, files)
        jobs = [self._make_job(script, fix, collect_lines=True) for fix in (b"", self.target.gold_patch)]
        before, after = self._run_jobs(jobs)
        for result in (before, after):
            self._require_report(result)
        return before, after

    def _compare(
        self, baseline: EvaluationReport, before: Sequence[EvaluationResult], after: Sequence[EvaluationResult]
    ) -> SubmittedTestsResult:
        result = compare_reports(
            baseline,
            [self._require_report(evaluation) for evaluation in before],
            [self._require_report(evaluation) for evaluation in after],
            pass_to_pass=self.target.pass_to_pass,
            listed_tests=self.target.listed_tests,
        )
        details = (evaluation.failure_detail for evaluation in after if evaluation.report is None)
        has_wrong_canary = any(evaluation.canary_status == "wrong" for evaluation in (*before, *after))
        tampering = ("canary: a test that must fail passed, or one that must pass failed",) if has_wrong_canary else ()
        return replace(result, failures=(*result.failures, *details), tampering=tampering)

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
        results = run_parallel(
            services.sandbox, self.target.image, limits or services.test_limits(self.target.language), jobs
        )
        self.seconds = max(self.seconds, *(result.exec_result.seconds for result in results), 0.0)
        return results

    def _reduce_limits(self) -> ResourceLimits:
        limits = self.target.services.test_limits(self.target.language)
        return replace(limits, seconds=min(limits.seconds, SHORT_RUN_SECONDS + 4 * self.seconds))
