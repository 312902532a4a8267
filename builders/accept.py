"""Whether a box runs the tests of its base commit: the acceptance at the end of the ladder.

Two runs without test patch. Accepted when at least 90 % of the discovered test files were collected, nearly all
statuses are the same in both runs, and a majority of the tests that ran passes.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from backends.sandbox.base import Series
from backends.services import Services
from backends.testing.outcomes import Outcome, Report, Status
from backends.testing.run import TestResult, run_tests
from backends.testing.script import render
from builders.tree import Tree
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
    """Why a candidate gets no environment."""

    NO_PLAN = "no-plan"
    INCOMPLETE_CLONE = "incomplete-clone"
    DEPENDENCIES_FAILED = "dependencies-failed"
    INSTALL_FAILED = "install-failed"
    NO_REPORT = "no-report"
    NO_TESTS_COLLECTED = "no-tests-collected"
    FEW_COLLECTED = "few-collected"
    FORGED = "forged"
    """Tests that must pass and fail, under names nobody knows, did not."""
    MOSTLY_FAILING = "mostly-failing"
    UNSTABLE = "unstable"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    DISK_FULL = "disk-full"


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
    with services.sandbox.series(image, limits=services.test_limits()) as boxes:
        first = _run(plan, boxes, chosen)
        if first.ran.killed_by == "time" and not chosen:
            chosen = own_test_files(tree, candidate, neighbours=NEIGHBOURS)
            first = _run(plan, boxes, chosen) if chosen else first
        discovered = chosen or language(plan.language).defining_files(tree, plan)
        if refused := judge_one(first, discovered):
            return refused
        second = _run(plan, boxes, chosen, last=not doubted)
        if refused := judge_one(second, discovered):
            return refused
        if doubted and discovered and (refused := _forged(_run(plan, boxes, discovered[:DOUBTED], canaries=True))):
            return refused
    return judge_both(first, second, discovered)


def _forged(result: TestResult) -> Refused | None:
    """What canaries say against a box."""
    if result.canaries in ("right", "none"):
        return None
    detail = f"tests that must pass and fail, under names nobody knows, came out {result.canaries}"
    return Refused(reason=Reason.FORGED, detail=detail, log=result.log)


def _run(
    plan: BuildPlan, boxes: Series, files: Sequence[str], *, last: bool = False, canaries: bool = False
) -> TestResult:
    script = render(
        plan.test, workdir=plan.workdir, test_patch=b"", files=files, env=plan.env,
        canary_dir=posixpath.dirname(files[0]) or "." if canaries else None,
        services=plan.services, kept_folders=plan.kept_folders,
    )  # fmt: skip
    return run_tests(boxes, script, workdir=plan.workdir, last=last or canaries)


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
    if result.ran.killed_by:
        reason = KILLED[result.ran.killed_by]
        return Refused(reason=reason, detail=f"the tests were stopped after {result.ran.seconds:.0f} s", log=log)
    report = result.report
    if report is None:
        return Refused(reason=Reason.NO_REPORT, detail=best_line(log), log=log)
    if not report.outcomes:
        return Refused(reason=Reason.NO_TESTS_COLLECTED, detail=best_line(log), log=log)
    share = collected_share(report, discovered)
    if share < COLLECTED:
        why = next((message for path, message in report.uncollected.items() if "skipped" not in message), "")
        detail = f"{share:.0%} of {len(discovered)} test files were collected; {why or best_line(log)}"
        return Refused(reason=Reason.FEW_COLLECTED, detail=detail, log=log)
    counts = report.counts()
    ran = counts.passed + counts.failed + counts.error + counts.xfailed
    if counts.passed < PASSING * ran or not counts.passed:
        return Refused(reason=Reason.MOSTLY_FAILING, detail=f"{counts.passed} of {ran} tests pass", log=log)
    return None


def judge_both(first: TestResult, second: TestResult, discovered: Sequence[str]) -> Accepted | Refused:
    """What two runs that were good enough each say together."""
    one, other = first.report, second.report
    if one is None or other is None:
        raise ValueError("both runs must have a report")
    stable = stable_outcomes(one, other)
    total = len(one.outcomes.keys() | other.outcomes.keys())
    if len(stable) < STABLE * total:
        detail = f"{total - len(stable)} of {total} tests end differently in two runs"
        return Refused(reason=Reason.UNSTABLE, detail=detail, log=first.log + second.log)
    return Accepted(
        share=round(collected_share(one, discovered), 4),
        counts=one.counts(),
        stable=Report(outcomes=stable, uncollected=one.uncollected),
        log=first.log,
        test_seconds=max(first.test_seconds, second.test_seconds),
    )


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
