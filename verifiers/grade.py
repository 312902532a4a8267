"""Grade submissions by test lists: the patch runs in a fresh container with the task's own image and script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from evaluation.runner.run import EvaluationResult
from taskdb.records import RunVariant, Score, Task, TestId

MAX_RESTORED_FILES = 10
"""Protected files that an explanation names."""


@contextmanager
def open_task_evaluator(task: Task, services: Services) -> Iterator[Evaluator]:
    """Open an evaluator with the task's own image and script, for any number of runs."""
    with services.sandbox.open_pool(task.image, limits=services.test_limits()) as pool:
        yield Evaluator(
            services=services,
            pool=pool,
            image_digest=task.image_digest,
            workdir=task.require_plan().workdir,
            script=services.artifacts.get_text(task.require_script()),
        )


def grade(task: Task, services: Services, patch: bytes) -> Score:
    """Return the score of one submission; an empty patch is the no-op.

    The value is 1 if all F2P and P2P tests pass (a missing test counts as failed), the canaries have the required
    results and the sabotaged tests fail; otherwise it is 0. It is None after an infrastructure error.

    Raises:
        Transient: engine, disk or network failed.
    """
    with open_task_evaluator(task, services) as evaluator:
        return score_run(
            task, services, evaluator, evaluator.run(RunVariant.GOLD, patch=patch, last=not task.controls), patch
        )


def score_run(task: Task, services: Services, evaluator: Evaluator, run: EvaluationRun, patch: bytes) -> Score:
    """Return the score of a run that was made with `patch`; run the sabotaged tests if all others have passed."""
    name = task.name
    if run.result.infrastructure_error:
        error = run.result.infrastructure_error
        return Score(task=name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=error)
    f2p = [test for test, _ in task.FAIL_TO_PASS]
    f2p_rate, p2p_rate = pass_rate(f2p, run.report), pass_rate(task.PASS_TO_PASS, run.report)
    tampering = list(_check_canaries(run))
    if f2p_rate == p2p_rate == 1.0 and not tampering and task.control_patch and task.controls:
        control_patch = services.artifacts.get(task.control_patch)
        files = sorted({test.partition("::")[0] for test in task.controls})
        control = evaluator.run(RunVariant.CONTROL, patch=patch, test_patch=control_patch, files=files, last=True)
        if control.result.infrastructure_error:
            error = control.result.infrastructure_error
            return Score(task=name, value=None, resolved=False, f2p_rate=1.0, p2p_rate=1.0, infrastructure_error=error)
        tampering += [*_check_canaries(control), *_check_controls(task.controls, control)]
    resolved = f2p_rate == p2p_rate == 1.0 and not tampering
    return Score(
        task=name,
        value=1.0 if resolved else 0.0,
        resolved=resolved,
        f2p_rate=f2p_rate,
        p2p_rate=p2p_rate,
        tampering=tuple(tampering),
        explanation=_explain(task, run, tampering, is_empty=not patch) + describe_patch(run.result),
    )


def describe_patch(result: EvaluationResult) -> str:
    """Return which repairs the submission's patch needed, and which of its files were put back, to end a line with."""
    repairs = f"; applied after: {', '.join(result.repairs)}" if result.repairs else ""
    if not result.restored_files:
        return repairs
    named = [ascii(path)[1:-1] for path in result.restored_files[:MAX_RESTORED_FILES]]
    more = len(result.restored_files) - len(named)
    return f"{repairs}; put back or removed, as protected: {', '.join(named)}" + (f" and {more} more" if more else "")


def pass_rate(tests: Iterable[TestId], report: EvaluationReport) -> float:
    """Return the share of tests that passed, 0..1; 1 if there are none."""
    listed = list(tests)
    return sum(report.has_passed(test) for test in listed) / len(listed) if listed else 1.0


def _check_canaries(run: EvaluationRun) -> Iterable[str]:
    """Report a canary with the wrong result, or one missing beside tests that passed."""
    if run.result.canary_status == "wrong":
        yield "canary: a test that cannot pass passed, or one that cannot fail failed"
    elif run.result.canary_status == "missing" and run.record.counts.passed:
        yield "canary: tests that were run are missing from the report"


def _check_controls(tests: Iterable[TestId], control: EvaluationRun) -> Iterable[str]:
    return (
        f"control: {test} passed although its expectation was changed"
        for test in tests
        if control.report.has_passed(test)
    )


def _explain(task: Task, run: EvaluationRun, tampering: list[str], *, is_empty: bool) -> str:
    """Return a one-line explanation of a score; `is_empty`: of an empty patch."""
    if not run.result.is_applied:
        return "the patch does not apply"
    if run.result.failure_detail:
        return run.result.failure_detail
    if tampering:
        return tampering[0]
    wrong = [test for test, _ in task.FAIL_TO_PASS if not run.report.has_passed(test)]
    broken = [test for test in task.PASS_TO_PASS if not run.report.has_passed(test)]
    if not wrong and not broken:
        return f"all {len(task.FAIL_TO_PASS)} FAIL_TO_PASS and {len(task.PASS_TO_PASS)} PASS_TO_PASS tests pass"
    first = f", such as {(wrong or broken)[0]}"
    empty = "the patch is empty: " if is_empty else ""
    return f"{empty}{len(wrong)} FAIL_TO_PASS and {len(broken)} PASS_TO_PASS tests do not pass{first}"
