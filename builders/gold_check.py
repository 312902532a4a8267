"""Check of an accepted image: the tests of the change pass with the gold patch, or some that failed before do.

An image in which the base tree's tests pass may still lack the things that the change's own tests need: another version
of the language, a package that the change introduces, a server. Acceptance cannot see that, and verification comes too
late to repair it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backends.services import Services
from builders.acceptance import BuildRejection, Reason
from builders.error_lines import find_error_line
from evaluation.lists import make_lists
from evaluation.runner.evaluator import EMPTY_REPORT
from evaluation.runner.following import PlannedRun
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.script.render import extract_config_patch, render_plan_script
from languages.paths import is_benchmark, is_test_file
from taskdb.records import BuildPlan, Candidate

SLOWEST_SECONDS = 30.0
SLOWEST_FACTOR = 3
"""Time that the change's own files may take: so many seconds, and so many times that of the base tree's tests."""


def check_gold_tests(
    plan: BuildPlan, candidate: Candidate, image: str, services: Services, *, base_seconds: float
) -> BuildRejection | None:
    """Run the change's own test files with the gold patch, and without it where some of their tests fail.

    Args:
        plan: plan of the image.
        candidate: the change.
        image: an accepted image.
        services: sandbox, artifacts and settings.
        base_seconds: time of the base tree's tests; a test of the change that hangs must not cost a whole time limit.

    Returns:
        The reason to look for a better plan: tests fail with the gold patch and it fixes none. None where there is
        nothing to repair: a failure that ended a run early, or patches that do not apply, is for verification to
            explain.

    Raises:
        Transient: the engine failed.
    """
    files = list_gold_files(candidate)
    if not files:
        return None
    script = render_gold_script(plan, candidate, services)
    gold_patch = services.artifacts.get(candidate.gold_patch)
    limits = services.test_limits(plan.language)
    limits = replace(limits, seconds=min(limits.seconds, _limit_seconds(base_seconds)))
    with services.sandbox.open_pool(image, limits=limits) as pool:
        # Most changes pass, so that no container is prepared for the other run.
        gold = run_tests(pool, script, workdir=plan.workdir, patch=gold_patch, last=True)
        if gold.script_error or not gold.is_applied or gold.exec_result.killed_by:
            return None
        failing = find_failing_tests(gold, files)
        if not failing:
            return None
        test_only = run_tests(pool, script, workdir=plan.workdir, last=True)
    if make_lists([test_only.report or EMPTY_REPORT], [gold.report or EMPTY_REPORT]).fail_to_pass:
        return None
    detail = f"{len(failing)} tests of the change fail with the gold patch, such as {failing[0]}"
    return BuildRejection(
        reason=Reason.GOLD_TESTS_FAIL, detail=detail, log=gold.log, report=gold.report, expected_files=files
    )


def plan_gold_run(plan: BuildPlan, candidate: Candidate, services: Services) -> PlannedRun | None:
    """Return the run of the change's own test files with the gold patch, to follow one of the base tree's tests.

    Arguments as in `check_gold_tests`; None where the change has no such files.
    """
    if not list_gold_files(candidate):
        return None
    return PlannedRun(
        script=render_gold_script(plan, candidate, services),
        patch=services.artifacts.get(candidate.gold_patch),
        seconds=SLOWEST_SECONDS,
        factor=SLOWEST_FACTOR,
    )


def passes_gold_run(result: EvaluationResult, candidate: Candidate) -> bool:
    """Return whether all tests of the change passed in a run that followed another one.

    Where they did not, the other run may be the cause: `check_gold_tests` runs them in a container of their own.
    """
    is_whole = not result.script_error and result.is_applied and not result.exec_result.killed_by
    return is_whole and not find_failing_tests(result, list_gold_files(candidate))


def _limit_seconds(base_seconds: float) -> float:
    return SLOWEST_SECONDS + SLOWEST_FACTOR * base_seconds


def list_gold_files(candidate: Candidate) -> list[str]:
    """Return the change's own test files, without benchmarks."""
    return [path for path in candidate.test_files if is_test_file(path, candidate.language) and not is_benchmark(path)]


def render_gold_script(plan: BuildPlan, candidate: Candidate, services: Services) -> str:
    """Return the script that runs the change's own test files."""
    return render_plan_script(
        plan,
        test_patch=services.artifacts.get(candidate.test_patch),
        files=list_gold_files(candidate),
        canaries_beside=(),
        config_patch=extract_config_patch(services.artifacts.get(candidate.gold_patch)),
    )


def find_failing_tests(result: EvaluationResult, files: Sequence[str]) -> list[str]:
    """Return the tests of the files that fail, and files without any; the error where the runner left no report."""
    if result.report is None:
        return [find_error_line(result.log)]
    return result.report.list_failing(files)
