"""Evaluation runs as records: variant, seed, script, image, report and log of each run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from backends.sandbox.base import ContainerPool
from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.following import PlannedRun, run_in_turn
from evaluation.runner.run import NO_FILES, EvaluationResult, run_tests
from evaluation.runner.series import SeriesRun, run_series
from evaluation.runner.time_limit import TimeLimit, limit_repeat
from evaluation.script.render import TESTS_UID
from taskdb.records import RunVariant, TestId, TestRun

EMPTY_REPORT = EvaluationReport(outcomes={}, uncollected={})
"""Stands for the report of a runner that left none: every test is absent."""


@dataclass(frozen=True, kw_only=True)
class EvaluationRun:
    """A run: its record, and the result that the record was made from."""

    record: TestRun
    result: EvaluationResult

    @property
    def report(self) -> EvaluationReport:
        """The report, empty when the runner left none."""
        return self.result.report or EMPTY_REPORT

    def with_report(self, report: EvaluationReport) -> EvaluationRun:
        """Return the run with another report; its record keeps its own."""
        return replace(self, result=replace(self.result, report=report))


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """A script in containers of an image, for any number of runs."""

    services: Services
    pool: ContainerPool
    image_digest: str
    workdir: str
    script: str

    def run(
        self,
        variant: RunVariant,
        *,
        seed: int = 0,
        patch: bytes = b"",
        test_patch: bytes | None = None,
        test_files: Mapping[str, bytes] = NO_FILES,
        files: Sequence[str] = (),
        time_zone: str = "",
        time_limit: TimeLimit | None = None,
        last: bool = False,
    ) -> EvaluationRun:
        """Run the tests once in a fresh container; arguments as in `run_tests`.

        Raises:
            Transient: the engine failed.
        """
        result = run_tests(
            self.pool,
            self.script,
            workdir=self.workdir,
            patch=patch,
            test_patch=test_patch,
            test_files=test_files,
            files=files,
            seed=seed,
            time_zone=time_zone,
            time_limit=time_limit,
            last=last,
        )
        return self._make_run(variant, seed, result)

    def run_in_turn(self, runs: Sequence[tuple[RunVariant, PlannedRun]]) -> list[EvaluationRun]:
        """Make runs of trusted trees one after the other in a fresh container; none where the container was killed.

        Only a success of a later run counts (see `evaluation.runner.following`).

        Raises:
            Transient: the engine failed.
        """
        results = run_in_turn(self.pool, [run for _, run in runs], workdir=self.workdir)
        return [
            self._make_run(variant, run.seed, result)
            for (variant, run), result in zip(runs, results or (), strict=False)
        ]

    def _make_run(self, variant: RunVariant, seed: int, result: EvaluationResult) -> EvaluationRun:
        report = result.report or EMPTY_REPORT
        artifacts = self.services.artifacts
        record = TestRun(
            variant=variant,
            seed=seed,
            script=result.script_sha256,
            image_digest=self.image_digest,
            report=artifacts.put(report.to_bytes()),
            log=artifacts.put_text(result.log),
            exit_code=result.exec_result.exit_code,
            killed_by=result.exec_result.killed_by,
            seconds=result.exec_result.seconds,
            test_seconds=result.test_seconds,
            counts=report.count_statuses(),
        )
        return EvaluationRun(record=record, result=result)

    def run_series(
        self,
        batch: Sequence[Mapping[str, bytes]],
        *,
        patch: bytes,
        files: Sequence[str],
        passing: Collection[TestId],
        seconds: float,
    ) -> list[EvaluationReport] | None:
        """Run the tests with some contents of test files after each other in a container, without a record.

        Args:
            batch: path -> content of the test files of each run.
            patch: patch of all runs.
            files: test files to run.
            passing: tests that pass in a last run with the contents of the script's test patch.
            seconds: time limit of each run.

        Returns: the reports, an empty one of a run that left none; None where the last run was not as before.

        Raises:
            Transient: the engine failed.
        """
        runs = [
            SeriesRun(files=tuple(files), test_files=test_files, seconds=seconds) for test_files in (*batch, NO_FILES)
        ]
        results = run_series(
            self.pool,
            self.script,
            runs,
            workdir=self.workdir,
            tests_uid=TESTS_UID,
            passing=passing,
            patch=patch,
        )
        return None if results is None else [result.report or EMPTY_REPORT for result in results[:-1]]


def select_evaluator(
    make_evaluator: Callable[[Sequence[str]], Evaluator], canaries_beside: Sequence[str], gold_patch: bytes
) -> tuple[Evaluator, EvaluationRun]:
    """Return an evaluator whose script suits the test runner, and its first gold run.

    The script adds canaries, unless the report of a run shows that the runner does not collect added test files, or
    that the canary that must pass does not. Where the canary that must fail passes, the caller gets that run: such a
    harness reports no failures.

    Args:
        make_evaluator: function that makes an evaluator with canaries beside the given test files; without canaries for
            no files.
        canaries_beside: test files.
        gold_patch: the patch of the run.

    Raises:
        Transient: the engine failed.
    """
    evaluator = make_evaluator(canaries_beside)
    run = evaluator.run(RunVariant.GOLD, patch=gold_patch)
    is_unsuited = run.result.canary_status in ("missing", "wrong") and not run.result.has_forged_canary
    if run.result.report is not None and is_unsuited:
        evaluator = make_evaluator(())
        run = evaluator.run(RunVariant.GOLD, patch=gold_patch, time_limit=limit_repeat(run.record.seconds))
    return evaluator, run
