"""Whether a box runs the tests of its base commit: the acceptance at the end of the ladder.

Two runs without test patch. Accepted when at least 90 % of the discovered test files were collected, nearly all
statuses are the same in both runs, and a majority of the tests that ran passes. Beside them run, under names nobody
knows, a test that must pass and one that must fail: what reports otherwise is no runner.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from backends.sandbox.base import Series
from backends.services import Services
from backends.testing.outcomes import Outcome, Report, Status
from backends.testing.run import TestResult, run_tests
from backends.testing.script import render_plan
from backends.tree import Tree
from languages.paths import is_test_file
from languages.registry import language
from taskdb.records import BuildPlan, Candidate, Counts

COLLECTED = 0.9
"""Share of the discovered test files that must be collected."""
STABLE = 0.98
"""Share of the tests whose status must be the same in both runs."""
PASSING = 0.5
"""Share of the tests that ran (skipped ones aside) that must pass."""
NEIGHBOURS = 8
"""Test files of the same folders that run beside the change's own when the whole suite is too long."""

DOUBTED = 3
"""Test files that run beside canaries where a model had a hand in the plan."""


class Reason(StrEnum):
    """Why a candidate gets no environment; a later one came further."""

    NO_PLAN = "no-plan"
    INCOMPLETE_CLONE = "incomplete-clone"
    DEPENDENCIES_FAILED = "dependencies-failed"
    INSTALL_FAILED = "install-failed"
    FAKE_REPORT = "fake-report"
    """Tests that must pass and fail, under names nobody knows, did not."""
    NO_REPORT = "no-report"
    NO_TESTS_COLLECTED = "no-tests-collected"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    DISK_FULL = "disk-full"
    FEW_COLLECTED = "few-collected"
    MOSTLY_FAILING = "mostly-failing"
    UNSTABLE = "unstable"


HOPELESS = frozenset({Reason.TIMEOUT, Reason.OUT_OF_MEMORY, Reason.DISK_FULL, Reason.UNSTABLE})
"""Refusals that no other choice of versions mends."""
KILLED = {"time": Reason.TIMEOUT, "memory": Reason.OUT_OF_MEMORY, "disk": Reason.DISK_FULL}


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """What the two runs at the base commit said."""

    share: float
    counts: Counts
    stable: Report
    """Outcomes of the tests whose status was the same in both runs."""
    log: str
    test_seconds: float


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Why a box is not good enough, with a line for people and the log."""

    reason: Reason
    detail: str
    log: str
    report: Report | None = None
    """Of the run that was not good enough, where it left one."""
    discovered: Sequence[str] = ()
    """Test files that should have been collected."""

    def progress(self) -> tuple[int, float, float]:
        """How far it came: by reason, then share of files collected, then share of tests that passed."""
        if self.report is None:
            return list(Reason).index(self.reason), 0.0, 0.0
        share = collected_share(self.report, self.discovered) if self.discovered else 0.0
        counts = self.report.counts()
        ran = counts.passed + counts.failed + counts.error + counts.xfailed
        return list(Reason).index(self.reason), share, counts.passed / ran if ran else 0.0


def accept(
    plan: BuildPlan, tree: Tree, candidate: Candidate, image: str, services: Services, *, doubted: bool = False
) -> Accepted | Refused:
    """Run the tests at the base commit twice in `image` and judge.

    The whole suite runs where it fits into the time limit, else the change's own test files and their neighbours;
    for published instances always only the files of the test patch, as their lists know no others.

    `doubted`: a model had a hand in the plan. Then a third run has canaries beside some of the tests, where the
    framework takes in files that it was not told of: who forges reports cannot know what they must come to.

    Raises:
        Transient: the engine failed.
    """
    chosen = own_test_files(tree, candidate) if candidate.source.startswith("instances:") else []
    known = language(plan.language).defining_files(tree, plan)
    with services.sandbox.series(image, limits=services.test_limits()) as boxes:
        first = _run(plan, boxes, chosen, chosen or known)
        if first.ran.killed_by == "time" and not chosen:
            chosen = own_test_files(tree, candidate, neighbours=NEIGHBOURS)
            first = _run(plan, boxes, chosen, chosen) if chosen else first
        discovered = chosen or known
        if refused := judge_one(first, discovered):
            return refused
        second = _run(plan, boxes, chosen, discovered, last=not doubted)
        if refused := judge_one(second, discovered):
            return refused
        if doubted and discovered and (refused := _forged(plan, boxes, discovered[:DOUBTED])):
            return refused
    return judge_both(first, second, discovered)


def _forged(plan: BuildPlan, boxes: Series, files: Sequence[str]) -> Refused | None:
    """What canaries beside some files say against a box."""
    result = _run(plan, boxes, files, files, last=True)
    if result.canaries in ("right", "none"):
        return None
    detail = f"tests that must pass and fail, under names nobody knows, came out {result.canaries}"
    return Refused(reason=Reason.FAKE_REPORT, detail=detail, log=result.log)


def _run(
    plan: BuildPlan, boxes: Series, files: Sequence[str], beside: Sequence[str], *, last: bool = False
) -> TestResult:
    """The tests of `files` (all of none), with canaries beside `beside` where the framework takes them in."""
    script = render_plan(plan, test_patch=b"", files=files, canaries_beside=beside)
    return run_tests(boxes, script, workdir=plan.workdir, last=last)


def own_test_files(tree: Tree, candidate: Candidate, *, neighbours: int = 0) -> list[str]:
    """Test files of the change that exist at base, or, where it only adds files, those beside them.

    `neighbours`: up to so many further files of the same folders.
    """
    known = language(candidate.language).defining_files(tree)
    own = [path for path in candidate.test_files if path in set(known)]
    folders = {posixpath.dirname(path) for path in candidate.test_files if is_test_file(path, candidate.language)}
    beside = [path for path in known if posixpath.dirname(path) in folders and path not in own]
    return sorted(own + beside[: neighbours if own else max(neighbours, NEIGHBOURS)])


def judge_one(result: TestResult, discovered: Sequence[str]) -> Refused | None:
    """What speaks against a box after one run, or None."""
    log = result.log
    report = result.report

    def refused(reason: Reason, detail: str) -> Refused:
        return Refused(reason=reason, detail=detail, log=log, report=report, discovered=discovered)

    if result.ran.killed_by:
        return refused(KILLED[result.ran.killed_by], f"the tests were stopped after {result.ran.seconds:.0f} s")
    if report is None:
        return refused(Reason.NO_REPORT, result.infrastructure_error or best_line(log))
    if result.fooled:
        return refused(Reason.FAKE_REPORT, "a test that must fail, under a name nobody knows, was reported as passed")
    if not report.outcomes:
        return refused(Reason.NO_TESTS_COLLECTED, best_line(log))
    if wrong := _judge_report(report, discovered, log):
        return refused(*wrong)
    return None


def _judge_report(report: Report, discovered: Sequence[str], log: str) -> tuple[Reason, str] | None:
    """What speaks against a report that holds tests: (reason, detail), or None."""
    share = collected_share(report, discovered)
    if share < COLLECTED:
        why = next((message for path, message in report.uncollected.items() if "skipped" not in message), "")
        detail = f"{share:.0%} of {len(discovered)} test files were collected; {why or best_line(log)}"
        return Reason.FEW_COLLECTED, detail
    counts = report.counts()
    ran = counts.passed + counts.failed + counts.error + counts.xfailed
    if counts.passed < PASSING * ran or not counts.passed:
        return Reason.MOSTLY_FAILING, f"{counts.passed} of {ran} tests pass"
    return None


def judge_both(first: TestResult, second: TestResult, discovered: Sequence[str]) -> Accepted | Refused:
    """What two runs that were good enough each say together."""
    one, other = first.report, second.report
    if one is None or other is None:
        raise ValueError("both runs must have a report")
    stable = stable_outcomes(one, other)
    known = (one.outcomes.keys() | other.outcomes.keys()) - renamed(one, other)
    changed = sorted(known - stable.keys())
    if len(changed) > (1 - STABLE) * len(known):
        detail = f"{len(changed)} of {len(known)} tests end differently in two runs, such as {changed[0]}"
        log = first.log + second.log
        return Refused(reason=Reason.UNSTABLE, detail=detail, log=log, report=one, discovered=discovered)
    return Accepted(
        share=round(collected_share(one, discovered), 4),
        counts=one.counts(),
        stable=Report(outcomes=stable, uncollected=one.uncollected),
        log=first.log,
        test_seconds=max(first.test_seconds, second.test_seconds),
    )


def renamed(one: Report, other: Report) -> set[str]:
    """Tests that are in one of the reports alone, of files in which as many are in the other alone.

    Names may hold random words: such tests are in no list, but that says nothing of the others.
    """
    alone = one.outcomes.keys() - other.outcomes.keys(), other.outcomes.keys() - one.outcomes.keys()
    first, second = (Counter(test.partition("::")[0] for test in tests) for tests in alone)
    return {test for test in alone[0] | alone[1] if first[file := test.partition("::")[0]] == second[file]}


def stable_outcomes(one: Report, other: Report) -> dict[str, Outcome]:
    """Outcomes of `one` whose status is the same in `other`."""
    missing = Outcome(status=Status.ERROR)
    return {
        test: outcome
        for test, outcome in one.outcomes.items()
        if test in other.outcomes and other.outcomes.get(test, missing).status is outcome.status
    }


def collected_share(report: Report, discovered: Sequence[str]) -> float:
    """Share of the files of which the report holds a test; a file that skipped itself was collected, too."""
    skipped = {path for path, why in report.uncollected.items() if why.startswith("collection skipped")}
    seen = report.files() | skipped
    return sum(path in seen for path in discovered) / len(discovered) if discovered else 1.0


_TELLING = ("error:", "error ", "exception", "failed", "no module named", "cannot", "not found", "because")


def best_line(log: str) -> str:
    """The last line of a log that seems to say what went wrong, else the last line; at most 300 characters."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith(">>>>>")]
    telling = [line for line in lines if any(word in line.lower() for word in _TELLING)]
    return (telling or lines or ["no output"])[-1][:300]
