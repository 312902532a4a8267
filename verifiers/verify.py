"""What the tests say of one candidate: B + T and B + T + G, each several times, each in a fresh box.

All runs use the final image and evaluation script, so that certification can count them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from backends.git import Repository
from backends.sandbox.base import Series
from backends.services import Services
from backends.testing.bench import Bench, Done, settled
from backends.testing.lists import Lists, make_lists
from backends.testing.script import config_part, render_plan
from backends.testing.twin_runs import twins_of
from languages.paths import is_test_file
from taskdb.lineage import Lineage
from taskdb.published import compare
from taskdb.records import Candidate, Environment, Rejection, RunKind, Stage, TestRun, Verification
from taskdb.tags import ChangeKind
from verifiers.selection import eval_files


class Reason(StrEnum):
    """Why a candidate was not verified."""

    NO_FAIL_TO_PASS = "no-fail-to-pass"  # noqa: S105 - PASS is no password
    FLAKY = "flaky"
    """No FAIL_TO_PASS test is reliable."""
    GOLD_FAILS = "gold-fails"
    """Tests of the change fail with the gold patch as well, and none is fixed by it."""
    PATCH_DOES_NOT_APPLY = "patch-does-not-apply"
    TESTS_CANNOT_BE_PUT = "tests-cannot-be-put"
    """The test patch does not apply, or none of its files is there afterwards."""
    KILLED_BY_TIME = "killed-by-time"
    KILLED_BY_MEMORY = "killed-by-memory"
    KILLED_BY_DISK = "killed-by-disk"
    NO_REPORT = "no-report"
    OUT_OF_BUDGET = "out-of-budget"


@dataclass(frozen=True, kw_only=True)
class Unfit:
    """Why it ends here, with the run that showed it."""

    reason: Reason
    detail: str
    log: str | None = None


def verify(lineage: Lineage, services: Services) -> Verification | Rejection:
    """The verifiers' stage.

    Args:
        lineage: a candidate with its environment.
        services: all of them are used.

    Raises:
        Transient: engine, disk or network failed.
    """
    started = time.perf_counter()
    environment = lineage.the_environment
    with services.sandbox.series(environment.image, limits=services.test_limits()) as boxes:
        trial = Trial(
            candidate=lineage.candidate, environment=environment, services=services, boxes=boxes, started=started
        )
        found = trial.verified()
    seconds = time.perf_counter() - started
    if isinstance(found, Verification):
        return found.model_copy(update={"seconds": seconds})
    candidate, lists = lineage.candidate, trial.lists()
    published = None
    if candidate.published and lists:
        published = compare(candidate.published, [test for test, _ in lists.fail_to_pass], lists.pass_to_pass)
    return Rejection(
        parent=lineage.the_environment.id, name=candidate.name, source=candidate.source, stage=Stage.VERIFY,
        reason=found.reason, detail=found.detail, log=found.log, published=published, seconds=seconds,
    )  # fmt: skip


@dataclass(kw_only=True)
class Trial:
    """One candidate's runs as they come in."""

    candidate: Candidate
    environment: Environment
    services: Services
    boxes: Series
    started: float
    bench: Bench = field(init=False)
    """The final image and script, as the first run settles them."""
    tested: list[Done] = field(default_factory=list)
    solved: list[Done] = field(default_factory=list)

    @cached_property
    def gold(self) -> bytes:
        """The gold patch."""
        return self.services.artifacts.get(self.candidate.gold_patch)

    @cached_property
    def test_patch(self) -> bytes:
        """The test patch."""
        return self.services.artifacts.get(self.candidate.test_patch)

    @cached_property
    def tree(self) -> Repository:
        """The history the candidate is from."""
        return self.services.clones.open(self.candidate.source, self.candidate.repo)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """What the evaluation runs; empty means everything."""
        return eval_files(self.candidate, self.environment, self.services.settings, self.tree)

    def _bench_of(self, beside: Sequence[str]) -> Bench:
        plan = self.environment.plan
        script = render_plan(
            plan, test_patch=self.test_patch, files=self.files, canaries_beside=beside,
            config_patch=config_part(self.gold),
        )  # fmt: skip
        digest = self.environment.image_digest
        return Bench(services=self.services, boxes=self.boxes, image_digest=digest, workdir=plan.workdir, script=script)

    def _beside(self) -> list[str]:
        """Test files that canaries are put beside: the change's own; where it has none, those of the base tree."""
        language = self.candidate.language
        own = [path for path in self.candidate.test_files if is_test_file(path, language)]
        if self.candidate.test_files:
            return own
        known = self.tree.ls_tree(self.candidate.base_commit)
        return [entry.path for entry in known if is_test_file(entry.path, language)]

    def lists(self) -> Lists | None:
        """The lists by the runs so far; None before the first pair."""
        pairs = min(len(self.tested), len(self.solved))
        return make_lists([d.report for d in self.tested], [d.report for d in self.solved]) if pairs else None

    def verified(self) -> Verification | Unfit:
        """All of it, in order."""
        if unfit := self._first_pair() or self._repeats():
            return unfit
        lists = self.lists() or make_lists((), ())
        if not lists.fail_to_pass and (unfit := self._no_fail_to_pass()):
            return unfit
        twins = twins_of(
            self.bench, self.tree, self.candidate.base_commit, test_patch=self.test_patch, solution=self.gold,
            tests=[test for test, _ in lists.fail_to_pass],
        )  # fmt: skip
        runs: list[TestRun] = [done.record for done in (*self.tested, *self.solved, *twins.runs)]
        return Verification(
            parent=self.environment.id, candidate=self.candidate.id, name=self.candidate.name,
            FAIL_TO_PASS=lists.fail_to_pass, PASS_TO_PASS=lists.pass_to_pass, flaky=lists.flaky,
            twins=twins.confirmed, eval_files=self.files,
            eval_script=self.services.artifacts.put_text(self.bench.script),
            twin_patch=self.services.artifacts.put(twins.patch) if twins.confirmed else None,
            repeats=self.services.settings.repeats, runs=tuple(runs), seconds=0.0,
        )  # fmt: skip

    def _first_pair(self) -> Unfit | None:
        """Seed 0 of both trees; nothing is repeated that is lost already."""
        self.bench, first = settled(self._bench_of, self._beside(), self.gold)
        if unfit := self._count(RunKind.SOLVED, first) or self._add(RunKind.TESTED, 0):
            return unfit
        lists = self.lists()
        return None if lists and lists.fail_to_pass else self._no_fail_to_pass()

    def _repeats(self) -> Unfit | None:
        for seed in range(1, self.services.settings.repeats):
            for kind in (RunKind.TESTED, RunKind.SOLVED):
                if unfit := self._add(kind, seed):
                    return unfit
        return None

    def _add(self, kind: RunKind, seed: int) -> Unfit | None:
        """One run more of B + T or B + T + G, or why it must be the last."""
        if time.perf_counter() - self.started > self.services.settings.budget_seconds:
            budget = f"{self.services.settings.budget_seconds:g} s"
            return Unfit(reason=Reason.OUT_OF_BUDGET, detail=f"verification took longer than {budget}")
        patch = self.gold if kind is RunKind.SOLVED else b""
        return self._count(kind, self.bench.run(kind, seed=seed, patch=patch, files=self._order() if seed else ()))

    def _count(self, kind: RunKind, done: Done) -> Unfit | None:
        if unfit := _unfit(kind, done):
            return unfit
        (self.solved if kind is RunKind.SOLVED else self.tested).append(done)
        return None

    def _order(self) -> list[str]:
        """Files seen in the first pair, to be shuffled by the seed."""
        reports = [self.tested[0].report, self.solved[0].report]
        return sorted({file for report in reports for file in (*report.files(), *report.uncollected)})

    def _no_fail_to_pass(self) -> Unfit | None:
        """Why nothing is fixed; None for a change for speed, of which it is enough that tests hold."""
        lists, solved = self.lists(), self.solved[-1]
        if lists and lists.flaky_fail_to_pass:
            test = lists.flaky_fail_to_pass[0]
            return Unfit(reason=Reason.FLAKY, detail=f"{test}: {dict(lists.flaky)[test]}", log=solved.record.log)
        failing = [
            test for test, outcome in solved.report.outcomes.items()
            if outcome.status in ("failed", "error") and test.partition("::")[0] in self.candidate.test_files
        ] + [file for file in solved.report.uncollected if file in self.candidate.test_files]  # fmt: skip
        if failing:
            detail = f"{len(failing)} tests of the change fail with the gold patch, such as {failing[0]}"
            return Unfit(reason=Reason.GOLD_FAILS, detail=detail, log=solved.record.log)
        if lists and lists.pass_to_pass and self.candidate.kind is ChangeKind.PERFORMANCE:
            return None
        passed = solved.record.counts.passed
        detail = f"none of {passed} passing tests fails without the gold patch"
        return Unfit(reason=Reason.NO_FAIL_TO_PASS, detail=detail, log=solved.record.log)


def _unfit(kind: RunKind, done: Done) -> Unfit | None:
    """Why nothing can be read from a run."""
    result, log = done.result, done.record.log
    where = f"in the {kind.value} tree"
    if not result.applied:
        return Unfit(reason=Reason.PATCH_DOES_NOT_APPLY, detail="the gold patch does not apply to the image", log=log)
    if result.infrastructure_error:
        return Unfit(reason=Reason.TESTS_CANNOT_BE_PUT, detail=f"{result.infrastructure_error} {where}", log=log)
    if result.ran.killed_by:
        reason, detail = Reason(f"killed-by-{result.ran.killed_by}"), f"after {result.ran.seconds:.0f} s {where}"
        return Unfit(reason=reason, detail=f"{result.broken} {detail}", log=log)
    if result.report is None and kind is RunKind.SOLVED:
        return Unfit(reason=Reason.NO_REPORT, detail=f"{result.broken}, {where}", log=log)
    return None
