"""Runs of submitted tests for the metric `swt`, before and after the fix, and of the base suite and the own tests.

The suite is the test files that the submission or the change's own tests touch. Coverage is collected in all runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from backends.services import Services
from core.errors import Transient
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.run import EvaluationResult
from evaluation.scoring.swt import SuiteRuns, compute_columns, list_changed_lines, make_suite_runs
from evaluation.submitted_tests.patch import SubmittedPatch, find_violation, read_submitted_patch
from evaluation.submitted_tests.runner import NotScoredError, SubmittedTestsRunner
from mergemill.bench.swt_metric import SWT, SWT_MAKER
from taskdb.records import Task
from taskdb.records.oracles import TestWritingOracle
from verifiers.rewards.writing import build_subject

NO_RUNS = SuiteRuns(lines_before={}, lines_after={})
"""Runs of a suite without tests."""
SuiteKey = tuple[str, tuple[str, ...]]
"""Id of a task, and test files that exist before the submission."""


@dataclass
class SwtRuns:
    """Maker of the columns of SWT-Bench. Threads may share it."""

    services: Services
    metric: str = field(default=SWT, init=False)
    maker: str = field(default=SWT_MAKER, init=False)
    _references: dict[SuiteKey, tuple[SuiteRuns, SuiteRuns]] = field(default_factory=dict, init=False)
    """Runs of the base suite, and of the change's own tests."""

    def applies_to(self, task: Task) -> bool:
        """Return whether a task is for tests."""
        return isinstance(task.oracle, TestWritingOracle)

    def measure(self, task: Task, submission: bytes) -> dict[str, Any]:
        """Return the columns of a submission.

        A patch that does not apply, changes something else than tests, or whose runs are forged has none but zeros.

        Raises:
            Transient: engine, disk or network failed.
        """
        services = self.services
        gold = self._read(task, services.artifacts.get(task.test_patch))
        submitted = self._read(task, submission) if submission.strip() else None
        runner = SubmittedTestsRunner(target=build_subject(task, services), submitted=gold or _NO_PATCH)
        patches = [patch for patch in (gold, submitted) if patch]
        existing = tuple(sorted({path for patch in patches for path in patch.list_existing_tests(task.language)}))
        try:
            with services.images.hold():
                key = (task.id, existing)
                if key not in self._references:
                    base = _make_runs(runner.run_suite(b"", existing)) if existing else None
                    own = self._run(runner, task, gold, existing)
                    self._references[key] = (base or NO_RUNS, own or NO_RUNS)
                runs = self._run(runner, task, submitted, existing)
        except NotScoredError as error:
            raise Transient(f"{task.name}: {error}") from error
        changed = list_changed_lines(services.artifacts.get_text(task.gold_patch))
        return dict(compute_columns(runs, *self._references[key], changed))

    def stop(self) -> None:
        """End the containers that measurements wait for."""
        self.services.sandbox.stop()

    def _read(self, task: Task, patch: bytes) -> SubmittedPatch | None:
        """Return a patch of tests; None when it does not apply, or is none."""
        limits = self.services.test_limits(task.language)
        with self.services.sandbox.open_pool(task.image, limits=limits) as pool:
            submitted = read_submitted_patch(pool, task.require_plan().workdir, patch)
        return None if submitted is None or find_violation(submitted.files) else submitted

    def _run(
        self, runner: SubmittedTestsRunner, task: Task, submitted: SubmittedPatch | None, existing: Sequence[str]
    ) -> SuiteRuns | None:
        """Return the runs of the suite with a patch of tests; None where there is no patch."""
        if submitted is None:
            return None
        touched = {file.path for file in submitted.files}
        files = {*submitted.list_possible_tests(task.language), *(path for path in existing if path not in touched)}
        return _make_runs(runner.run_suite(submitted.patch, sorted(files)))


_NO_PATCH = SubmittedPatch(patch=b"", files=())


def _make_runs(results: Sequence[EvaluationResult]) -> SuiteRuns | None:
    """Return the runs of a suite; None where their reports are forged."""
    if any(result.canary_status == "wrong" for result in results):
        return None
    before, after = results
    return make_suite_runs(
        before.report or EMPTY_REPORT, after.report or EMPTY_REPORT, before.covered_lines, after.covered_lines
    )
