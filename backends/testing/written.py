"""Tests that somebody wrote for a fix, tried on its trees: before it, after it, and after it with something changed.

Each run is in a fresh box, two side by side. Nothing can be counted, timed or left behind from one to the next: what a
test says is said of the tree it finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from backends.sandbox.base import Limits, Series
from backends.services import Services
from backends.testing.bench import NOTHING
from backends.testing.outcomes import Report
from backends.testing.run import TestResult, run_tests
from backends.testing.script import config_part, render_plan
from backends.testing.side_by_side import Job, side_by_side
from backends.testing.submitted import Submitted
from taskdb.records import BuildPlan, TestId

REPEATS = 2
"""How often the tests run before the fix, and how often after it."""
FAULT = "fault-rewritten"
"""Operator of an edit that brings the fault back in other words: who reads the text does not know it again."""
LEFT_OUT = "hunk-left-out"
"""Operator of an edit that brings a part of the fault back as it was; who reads the text knows that, too."""
UNAPPLIED = "the test patch does not apply"
"""What the evaluation script says of tests that do not fit a tree."""

HURRIED_SECONDS = 60
"""What a hurried run may take beside four times what others took."""
SLOWER = 10
"""How many times slower tests may be of which the lines are told."""


class NotScoredError(Exception):
    """Our own side failed: nothing can be said of the tests."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the tests are written for.

    `known`: FAIL_TO_PASS and PASS_TO_PASS, `kept`: PASS_TO_PASS alone. `script`: the task's own evaluation script, with
    the change's tests in it.
    """

    services: Services
    image: str
    plan: BuildPlan
    language: str
    gold: bytes
    kept: frozenset[TestId]
    known: frozenset[TestId]
    script: str

    @property
    def canary(self) -> bool:
        """Whether the suite takes strangers in."""
        return "write_canary" in self.script


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What tests came to before and after the fix."""

    detecting: frozenset[TestId] = frozenset()
    """Failed before in every run and passed afterwards in every run, and did not fail without the patch."""
    own: frozenset[TestId] = frozenset()
    """Those, and the new ones that pass afterwards: what speaks for the patch and not for what was there."""
    broken: tuple[str, ...] = ()
    """Tests, or files without tests, that do not hold after the fix."""
    lost: tuple[TestId, ...] = ()
    """PASS_TO_PASS tests that the patch took away or broke."""
    tampering: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether all that was submitted passes after the fix."""
        return bool(self.own) and not self.broken and not self.lost


def seen(
    baseline: Report,
    before: Sequence[Report],
    after: Sequence[Report],
    *,
    kept: Collection[TestId],
    known: Collection[TestId],
) -> Seen:
    """What reports say of submitted tests.

    Args:
        baseline: of the test files as they were, before the fix; empty when the patch brings only new files.
        before: of the submitted tests, before the fix.
        after: of the submitted tests, after it.
        kept: PASS_TO_PASS.
        known: FAIL_TO_PASS and PASS_TO_PASS; a test that was there and is in neither is not held against anybody.
    """
    stable = {test for test in after[0].outcomes if all(report.passed(test) for report in after)}
    detecting = {test for test in stable if all(report.failed(test) for report in before) and not baseline.failed(test)}
    broken = [
        test for test in sorted({test for report in after for test in report.outcomes})
        if any(report.failed(test) for report in after)
        and not baseline.failed(test) and (test in known or test not in baseline.outcomes)
    ]  # fmt: skip
    broken += sorted({file for report in after for file in report.uncollected} - set(baseline.uncollected))
    lost = sorted(test for test in baseline.outcomes if test in kept and baseline.passed(test) and test not in stable)
    return Seen(
        detecting=frozenset(detecting), own=frozenset(detecting | (stable - set(baseline.outcomes))),
        broken=tuple(broken), lost=tuple(lost),
    )  # fmt: skip


def noticed(result: TestResult, own: Iterable[TestId]) -> bool:
    """Whether one of the tests failed, or is gone with its file, in a run that came to its end."""
    if result.report is None or result.ran.killed_by:
        return False
    return any(result.report.failed(test) or test not in result.report.outcomes for test in own)


def failed_in(result: TestResult, own: Iterable[TestId]) -> bool:
    """Whether one of the tests ran and failed: stricter than `noticed`, a tree that does not even build is no proof."""
    return not result.ran.killed_by and any((result.report or NOTHING).failed(test) for test in own)


def alarmed(result: TestResult, own: Iterable[TestId]) -> TestId | None:
    """The first of the tests that does not pass, None when all do."""
    return next((test for test in sorted(own) if not (result.report or NOTHING).passed(test)), None)


@dataclass(kw_only=True)
class Trial:
    """Submitted tests in the boxes of their task. Every method raises `Transient` when the engine fails."""

    subject: Subject
    submitted: Submitted
    seconds: float = field(default=0.0, init=False)
    """Of the longest run so far."""

    @cached_property
    def files(self) -> list[str]:
        """What is run: the test files that the patch leaves; none means everything, for a patch of fixtures."""
        return self.submitted.written(self.subject.language)

    @cached_property
    def script(self) -> str:
        """The evaluation script with the submitted tests in the place of the hidden ones."""
        return self._script(self.submitted.patch, self.files)

    def observe(self) -> Seen:
        """Without the patch, before the fix and after it; what cannot count any more is not repeated.

        Raises:
            NotScoredError: our own side failed.
        """
        gold = self.subject.gold
        existing = self.submitted.existing(self.subject.language)
        jobs = [self._job(self.script), self._job(self.script, gold)]
        if existing or not self.files:
            jobs.append(self._job(self._script(b"", existing)))
        if self.submitted.unknown:
            jobs.append(self._job(self._script(self.submitted.patch, ()), gold))
        first = self._run(jobs)
        if first[1].infrastructure_error == UNAPPLIED:
            return Seen(broken=("the patch does not apply after the fix",))
        baseline = self._report(first[2]) if existing or not self.files else NOTHING
        stray = sorted(self.submitted.unknown - self._report(first[-1]).files()) if self.submitted.unknown else []
        found = self._seen(baseline, first[:1], first[1:2])
        if stray:
            return replace(found, tampering=(f"{stray[0]} is no test: the framework collects none from it",))
        if not found.detecting or not found.holds or found.tampering:
            return found
        more = self._run(
            [self._job(self.script, patch, seed=seed) for seed in range(1, REPEATS) for patch in (b"", gold)]
        )
        return self._seen(baseline, [first[0], *more[::2]], [first[1], *more[1::2]])

    def after(self, edits: Sequence[bytes], *, collect_lines: bool = False, hurried: bool = False) -> list[TestResult]:
        """One run for each patch, laid over the fixed tree; an empty one is the fixed tree itself.

        `hurried`: with less time than a test run may take; a mutant that runs for ever must not cost that much.

        Raises:
            NotScoredError: our own side failed.
        """
        jobs = [self._job(self.script, over(self.subject.gold, edit), collect_lines=collect_lines) for edit in edits]
        results = self._run(jobs, self._short() if hurried else None)
        for result in results:
            self._report(result)
        return results

    def whole(self, edits: Sequence[bytes]) -> list[TestResult]:
        """The same with the task's own script instead: the change's tests and all that passed before."""
        return self._run([self._job(self.subject.script, over(self.subject.gold, edit)) for edit in edits])

    def unpatched(self, files: Sequence[str], *, seconds: float) -> TestResult:
        """The tests as they were, over the fixed tree, with the lines they run; no files means all tests.

        `seconds`: what they take when nobody looks on.
        """
        limits = self.subject.services.test_limits()
        limits = replace(limits, seconds=min(limits.seconds, HURRIED_SECONDS + SLOWER * seconds))
        job = self._job(self._script(b"", files), self.subject.gold, collect_lines=True)
        return self._run([job], limits)[0]

    def _seen(self, baseline: Report, before: Sequence[TestResult], after: Sequence[TestResult]) -> Seen:
        found = seen(
            baseline, [self._report(one) for one in before], [self._report(one) for one in after],
            kept=self.subject.kept, known=self.subject.known,
        )  # fmt: skip
        why = (one.broken for one in after if one.report is None)
        wrong = any(one.canaries == "wrong" for one in (*before, *after))
        tampering = ("canary: a test that must fail passed, or one that must pass failed",) if wrong else ()
        return replace(found, broken=(*found.broken, *why), tampering=tampering)

    def _report(self, result: TestResult) -> Report:
        if result.infrastructure_error:
            raise NotScoredError(result.infrastructure_error)
        return result.report or NOTHING

    def _script(self, patch: bytes, files: Sequence[str]) -> str:
        return render_plan(
            self.subject.plan, test_patch=patch, files=files, canaries_beside=files if self.subject.canary else (),
            config_patch=config_part(self.subject.gold),
        )  # fmt: skip

    def _job(
        self, script: str, patch: bytes = b"", *, seed: int = 0, collect_lines: bool = False
    ) -> Job[TestResult]:  # fmt: skip
        def run(boxes: Series, last: bool) -> TestResult:
            return run_tests(
                boxes, script, workdir=self.subject.plan.workdir, patch=patch, seed=seed,
                files=self.files if seed else (), collect_lines=collect_lines, last=last,
            )  # fmt: skip

        return run

    def _run(self, jobs: Sequence[Job[TestResult]], limits: Limits | None = None) -> list[TestResult]:
        services = self.subject.services
        results = side_by_side(services.sandbox, self.subject.image, limits or services.test_limits(), jobs)
        self.seconds = max(self.seconds, *(result.ran.seconds for result in results), 0.0)
        return results

    def _short(self) -> Limits:
        limits = self.subject.services.test_limits()
        return replace(limits, seconds=min(limits.seconds, HURRIED_SECONDS + 4 * self.seconds))


def over(first: bytes, second: bytes) -> bytes:
    """Two patches as one, of which the second is made for what the first leaves."""
    return b"".join(patch if patch.endswith(b"\n") else patch + b"\n" for patch in (first, second) if patch)
