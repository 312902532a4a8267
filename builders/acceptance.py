"""Acceptance of an image: two runs of the tests at the base commit, without the test patch.

An image is accepted when at least 90 % of the expected test files are collected, nearly all statuses are the same in
both runs, and at least half of the tests that ran pass. Two canaries with random names run beside the tests, a canary
that must pass and another that must fail; a report with other outcomes is forged.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from backends.sandbox.base import ContainerPool
from backends.services import Services
from backends.tree import CommitTree
from builders.error_lines import find_error_line
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.following import PlannedRun, run_in_turn
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.runner.time_limit import HANG_FACTOR, MIN_REPEAT_SECONDS, TimeLimit, limit_repeat
from evaluation.script.render import render_plan_script
from languages.paths import is_test_file
from languages.registry import get_language
from taskdb.records import BuildPlan, Candidate, Counts

MIN_COLLECTED = 0.9
"""Share of the expected test files that must be collected."""
MIN_STABLE = 0.98
"""Share of the tests whose status must be the same in both runs."""
MIN_PASSING = 0.5
"""Share of the tests that ran (skipped tests aside) that must pass."""
NEIGHBOUR_FILES = 8
"""Test files of the same folders that run beside the change's own when the whole test suite is too slow."""

FORGERY_CHECK_FILES = 3
"""Test files that run beside canaries in the additional run of a plan that a model edited."""


class Reason(StrEnum):
    """Why a build is rejected, in order of progress: an attempt with a later reason came further."""

    NO_PLAN = "no-plan"
    INCOMPLETE_CLONE = "incomplete-clone"
    DEPENDENCIES_FAILED = "dependencies-failed"
    INSTALL_FAILED = "install-failed"
    FAKE_REPORT = "fake-report"
    """A canary that must fail was reported as passed, or another canary has a wrong outcome."""
    NO_REPORT = "no-report"
    NO_TESTS_COLLECTED = "no-tests-collected"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    DISK_FULL = "disk-full"
    FEW_COLLECTED = "few-collected"
    MOSTLY_FAILING = "mostly-failing"
    UNSTABLE = "unstable"
    GOLD_TESTS_FAIL = "gold-tests-fail"
    """The image is accepted, but the change's own tests fail with the gold patch; see `builders.gold_check`."""
    NEEDS_NETWORK = "needs-network"
    """This reason and the next reasons name the cause for which tests fail, in place of the last attempt's reason; see
    `builders.causes`."""
    NEEDS_ROOT = "needs-root"
    NEEDS_TERMINAL = "needs-terminal"
    NEEDS_DISPLAY = "needs-display"
    NEEDS_HOME = "needs-home"
    NEEDS_LOCALE = "needs-locale"
    NEEDS_TIME_ZONE = "needs-time-zone"


UNREPAIRABLE_REASONS = frozenset({Reason.TIMEOUT, Reason.OUT_OF_MEMORY, Reason.DISK_FULL, Reason.UNSTABLE})
"""Reasons that no change of versions repairs."""
KILL_REASONS = {"time": Reason.TIMEOUT, "memory": Reason.OUT_OF_MEMORY, "disk": Reason.DISK_FULL}


@dataclass(frozen=True, kw_only=True)
class BuildAcceptance:
    """Results of the two runs at the base commit."""

    collected_share: float
    counts: Counts
    stable_report: EvaluationReport
    """Outcomes of the tests whose status was the same in both runs."""
    log: str
    test_seconds: float
    following: EvaluationResult | None = None
    """Result of the run that followed the second one in its container, if any."""


@dataclass(frozen=True, kw_only=True)
class BuildRejection:
    """Reason why a build is rejected, with a line of detail and the log."""

    reason: Reason
    detail: str
    log: str
    report: EvaluationReport | None = None
    """Report of the rejected run, if it wrote a report."""
    expected_files: Sequence[str] = ()
    """Test files that should have been collected."""

    def measure_progress(self) -> tuple[int, float, float]:
        """Return the attempt's progress: rank of the reason, share of files collected, share of tests that passed."""
        if self.report is None:
            return list(Reason).index(self.reason), 0.0, 0.0
        share = compute_collected_share(self.report, self.expected_files) if self.expected_files else 0.0
        counts = self.report.count_statuses()
        ran = counts.passed + counts.failed + counts.error + counts.xfailed
        return list(Reason).index(self.reason), share, counts.passed / ran if ran else 0.0


def run_acceptance(
    plan: BuildPlan,
    tree: CommitTree,
    candidate: Candidate,
    image: str,
    services: Services,
    *,
    check_forgery: bool = False,
    following: PlannedRun | None = None,
) -> BuildAcceptance | BuildRejection:
    """Run the tests at the base commit twice in `image` and decide whether the build is accepted.

    Both runs have one container where nothing fails in the first, and the second has the same outcomes. Where it has
    others, files of the first may be the cause, or chance. Chance does not repeat itself in a second such container, so
    that the outcomes count there; otherwise those of the run that found the second container fresh do.

    The whole test suite runs if it fits into the time limit, else the change's own test files and their neighbours. For
    published instances only the files of the test patch run, because their lists contain no others.

    `check_forgery`: run a third time with canaries beside some of the tests, where the framework collects added test
    files. It is used for plans that a model edited.
    `following`: a run to make after the second one in its container, where there is time; None for none.

    Raises:
        Transient: the engine failed.
    """
    selected = find_own_test_files(tree, candidate) if candidate.source.startswith("instances:") else []
    test_files = get_language(plan.language).find_test_files(tree, plan)
    with services.sandbox.open_pool(image, limits=services.test_limits(plan.language)) as pool:
        runs = partial(_run_in_turn, plan, pool, services=services, following=following)
        first, *more = runs(selected, selected or test_files)
        # The whole suite is too slow for the limit, but the change's own tests may be fast enough.
        if first.exec_result.killed_by == "time" and not selected:
            selected = find_own_test_files(tree, candidate, neighbours=NEIGHBOUR_FILES)
            is_all = set(selected) == set(test_files)
            first, *more = runs(selected, selected) if selected and not is_all else (first,)
        expected = selected or test_files
        if rejection := check_run(first, expected):
            return rejection
        # A single run does not show tests whose results vary.
        if more and (differing := _list_differing(first, more[0])):
            again, *more_again = runs(selected, expected, limit=limit_repeat(first.exec_result.seconds))
            if not more_again or differing <= _list_differing(first, more_again[0]):
                more = [again, *more_again[1:]]
        if more:
            second, followed = more[0], more[1] if len(more) > 1 else None
        else:
            second, followed = _run_again(
                plan,
                pool,
                selected,
                expected,
                services=services,
                first=first,
                following=following,
                last=not check_forgery,
            )
        if rejection := check_run(second, expected):
            return rejection
        if check_forgery and expected and (rejection := _check_forgery(plan, pool, expected[:FORGERY_CHECK_FILES])):
            return rejection
    accepted = compare_runs(first, second, expected)
    return replace(accepted, following=followed) if isinstance(accepted, BuildAcceptance) else accepted


def _run_in_turn(
    plan: BuildPlan,
    pool: ContainerPool,
    files: Sequence[str],
    canaries_beside: Sequence[str],
    *,
    services: Services,
    following: PlannedRun | None,
    limit: TimeLimit | None = None,
) -> list[EvaluationResult]:
    """Return a run in a fresh container, and a second and the following one there, as far as they were made.

    `limit`: limit of the first, from an earlier run.
    """
    if not plan.services:  # servers that a run starts may live on
        whole, script = services.test_limits(plan.language).seconds, _render_script(plan, files, canaries_beside)
        runs = [
            PlannedRun(script=script, seconds=limit.seconds if limit else whole, time_limit=limit),
            PlannedRun(script=script, seconds=MIN_REPEAT_SECONDS, factor=HANG_FACTOR),
            *([following] if following else []),
        ]
        if results := run_in_turn(pool, runs, workdir=plan.workdir, continue_within=whole, last=True):
            return results
    return [_run_plan_tests(plan, pool, files, canaries_beside, time_limit=limit, last=True)]


def _list_differing(first: EvaluationResult, second: EvaluationResult) -> set[str]:
    """Return the tests and files that have other outcomes in a second run, all of the first where it left no report."""
    report, other = first.report, second.report
    if report is None or other is None or second.has_forged_canary:
        return set(report.outcomes) if report else set()
    return report.list_differing(other) - find_renamed_tests(report, other)


def _run_again(
    plan: BuildPlan,
    pool: ContainerPool,
    files: Sequence[str],
    canaries_beside: Sequence[str],
    *,
    services: Services,
    first: EvaluationResult,
    following: PlannedRun | None,
    last: bool,
) -> tuple[EvaluationResult, EvaluationResult | None]:
    """Return the second run and the one that followed it, if there is time for both in a container."""
    limit = limit_repeat(first.exec_result.seconds)
    if following:
        seconds = following.seconds + following.factor * first.test_seconds
        following = replace(following, seconds=seconds, factor=0)
    if limit and following and limit.seconds + following.seconds <= services.test_limits(plan.language).seconds:
        script = _render_script(plan, files, canaries_beside)
        again = PlannedRun(script=script, seconds=limit.seconds, time_limit=limit)
        if results := run_in_turn(pool, [again, following], workdir=plan.workdir, last=last):
            second, followed = results
            return second, followed
    return _run_plan_tests(plan, pool, files, canaries_beside, time_limit=limit, last=last), None


def _check_forgery(plan: BuildPlan, pool: ContainerPool, files: Sequence[str]) -> BuildRejection | None:
    """Return a rejection if canaries beside some files have wrong outcomes."""
    result = _run_plan_tests(plan, pool, files, files, last=True)
    if result.canary_status in ("right", "none"):
        return None
    detail = f"the outcomes of the canaries are {result.canary_status}"
    return BuildRejection(reason=Reason.FAKE_REPORT, detail=detail, log=result.log)


def _run_plan_tests(
    plan: BuildPlan,
    pool: ContainerPool,
    files: Sequence[str],
    canaries_beside: Sequence[str],
    *,
    time_limit: TimeLimit | None = None,
    last: bool = False,
) -> EvaluationResult:
    """Run the tests of `files` (empty: all), with canaries next to some files if the framework collects added ones."""
    script = _render_script(plan, files, canaries_beside)
    return run_tests(pool, script, workdir=plan.workdir, time_limit=time_limit, last=last)


def _render_script(plan: BuildPlan, files: Sequence[str], canaries_beside: Sequence[str]) -> str:
    return render_plan_script(plan, test_patch=b"", files=files, canaries_beside=canaries_beside)


def find_own_test_files(tree: CommitTree, candidate: Candidate, *, neighbours: int = 0) -> list[str]:
    """Return the change's test files that exist at base or, if the change only adds files, the files beside them.

    `neighbours`: limit of further files from the same folders.
    """
    test_files = get_language(candidate.language).find_test_files(tree)
    own = [path for path in candidate.test_files if path in set(test_files)]
    folders = {posixpath.dirname(path) for path in candidate.test_files if is_test_file(path, candidate.language)}
    beside = [path for path in test_files if posixpath.dirname(path) in folders and path not in own]
    return sorted(own + beside[: neighbours if own else max(neighbours, NEIGHBOUR_FILES)])


def check_run(result: EvaluationResult, expected: Sequence[str]) -> BuildRejection | None:
    """Return a rejection if a run is not good enough, else None. `expected`: files that must be collected."""
    log = result.log
    report = result.report

    def reject(reason: Reason, detail: str) -> BuildRejection:
        return BuildRejection(reason=reason, detail=detail, log=log, report=report, expected_files=expected)

    if killed_by := result.exec_result.killed_by:
        stopped = f"the tests were stopped after {result.exec_result.seconds:.0f} s"
        return reject(KILL_REASONS[killed_by], result.failure_detail if result.hangs else stopped)
    if report is None:
        return reject(Reason.NO_REPORT, result.script_error or find_error_line(log))
    # A forged report is rejected before its outcomes are counted: they show nothing.
    if result.has_forged_canary:
        return reject(Reason.FAKE_REPORT, "a canary that must fail was reported as passed")
    if not report.outcomes:
        return reject(Reason.NO_TESTS_COLLECTED, find_error_line(log))
    if failure := _check_report(report, expected, log):
        return reject(*failure)
    return None


def _check_report(report: EvaluationReport, expected: Sequence[str], log: str) -> tuple[Reason, str] | None:
    """Return (reason, detail) if a report with outcomes is not good enough, else None."""
    share = compute_collected_share(report, expected)
    if share < MIN_COLLECTED:
        error = next((message for path, message in report.uncollected.items() if "skipped" not in message), "")
        detail = f"{share:.0%} of {len(expected)} test files were collected; {error or find_error_line(log)}"
        return Reason.FEW_COLLECTED, detail
    counts = report.count_statuses()
    ran = counts.passed + counts.failed + counts.error + counts.xfailed
    if counts.passed < MIN_PASSING * ran or not counts.passed:
        return Reason.MOSTLY_FAILING, f"{counts.passed} of {ran} tests pass"
    return None


def compare_runs(
    first: EvaluationResult, second: EvaluationResult, expected: Sequence[str]
) -> BuildAcceptance | BuildRejection:
    """Compare two runs that each passed `check_run`: reject the build if too many statuses differ."""
    report, other = first.report, second.report
    if report is None or other is None:
        raise ValueError("both runs must have a report")
    stable = find_stable_outcomes(report, other)
    tests = (report.outcomes.keys() | other.outcomes.keys()) - find_renamed_tests(report, other)
    changed = sorted(tests - stable.keys())
    if len(changed) > (1 - MIN_STABLE) * len(tests):
        detail = f"{len(changed)} of {len(tests)} tests have different statuses in two runs, such as {changed[0]}"
        log = first.log + second.log
        return BuildRejection(reason=Reason.UNSTABLE, detail=detail, log=log, report=report, expected_files=expected)
    return BuildAcceptance(
        collected_share=round(compute_collected_share(report, expected), 4),
        counts=report.count_statuses(),
        stable_report=EvaluationReport(outcomes=stable, uncollected=report.uncollected),
        log=first.log,
        test_seconds=max(first.test_seconds, second.test_seconds),
    )


def find_renamed_tests(report: EvaluationReport, other: EvaluationReport) -> set[str]:
    """Return tests that occur in only a single report, of files for which the other report has equally many such tests.

    Names of generated tests may contain random words. Such tests are in no list, but they do not make a build unstable.
    """
    alone = report.outcomes.keys() - other.outcomes.keys(), other.outcomes.keys() - report.outcomes.keys()
    first, second = (Counter(test.partition("::")[0] for test in tests) for tests in alone)
    return {test for test in alone[0] | alone[1] if first[file := test.partition("::")[0]] == second[file]}


def find_stable_outcomes(report: EvaluationReport, other: EvaluationReport) -> dict[str, Outcome]:
    """Return the outcomes of `report` whose status is the same in `other`."""
    missing = Outcome(status=OutcomeStatus.ERROR)
    return {
        test: outcome
        for test, outcome in report.outcomes.items()
        if test in other.outcomes and other.outcomes.get(test, missing).status is outcome.status
    }


def compute_collected_share(report: EvaluationReport, expected: Sequence[str]) -> float:
    """Return the share (0 to 1) of files with a test in the report; a file that skipped itself counts as collected."""
    # A file may skip itself on this platform, which is no fault of the build.
    skipped = {path for path, why in report.uncollected.items() if why.startswith("collection skipped")}
    collected = report.list_files() | skipped
    return sum(path in collected for path in expected) / len(expected) if expected else 1.0
