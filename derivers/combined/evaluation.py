"""The evaluations of a chain of changes: all parts and none, and all parts but one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from backends.sandbox.base import ContainerPool
from backends.services import Services
from derivers.base import KindRejection
from derivers.combined.chain import ChangeChain
from evaluation.dated_ids import make_undated_lists
from evaluation.lists import OutcomeLists
from evaluation.runner.evaluator import EvaluationRun, Evaluator, select_evaluator
from evaluation.runner.file_selection import can_select_files
from evaluation.runner.time_limit import limit_repeat
from evaluation.script.render import extract_config_patch, render_plan_script
from evaluation.weak_tests.find import TreeSource
from taskdb.records import RunVariant
from taskdb.records.lineage import Lineage

REPEATS = 2
"""Test-only runs, and gold runs; certification adds three more."""


class Reason(StrEnum):
    """Why verified changes give no combined task."""

    TOO_FAR_APART = "too-far-apart"
    """They touch no common folder, and too many commits lie between them."""
    PART_WITHOUT_TASK = "part-without-task"
    """One of them alone is neither a bug fix nor a feature, for example because its statement was excluded."""
    DOES_NOT_APPLY = "does-not-apply"
    PART_NOT_NEEDED = "part-not-needed"
    FAILS_TOGETHER = "fails-together"
    OUT_OF_TIME = "out-of-time"
    WRITTEN_TESTS = "model-written-tests"
    """A model wrote the tests of the change, and those of the others are people's."""


@dataclass(frozen=True)
class ChainRejection(KindRejection):
    """Why a chain gives no task, and the part without which it might."""

    culprit: Lineage | None = None


@dataclass(kw_only=True)
class ChainEvaluation:
    """The evaluations of a chain."""

    chain: ChangeChain
    services: Services
    pool: ContainerPool
    evaluator: Evaluator = field(init=False)
    """Runs the script of all parts in the image of the oldest; set by the first gold run."""
    test_only_runs: list[EvaluationRun] = field(default_factory=list)
    gold_runs: list[EvaluationRun] = field(default_factory=list)

    def _build_evaluator(self, beside: Sequence[str]) -> Evaluator:
        environment, chain = self.chain.oldest.require_environment(), self.chain
        plan = environment.plan
        script = render_plan_script(
            plan,
            test_patch=chain.test_patch,
            files=chain.files,
            canaries_beside=beside,
            config_patch=extract_config_patch(chain.gold_patch),
        )
        return Evaluator(
            services=self.services,
            pool=self.pool,
            image_digest=environment.image_digest,
            workdir=plan.workdir,
            script=script,
        )

    @cached_property
    def lists(self) -> OutcomeLists:
        """FAIL_TO_PASS and PASS_TO_PASS by all runs."""
        return make_undated_lists(self.test_only_runs, self.gold_runs, self._gold_tree)

    @property
    def _gold_tree(self) -> TreeSource:
        """The tree of all parts."""
        chain = self.chain
        base, patches = chain.oldest.candidate.base_commit, (chain.gold_patch, chain.test_patch)
        return TreeSource(repository=chain.tree, base=base, patches=patches)

    def find_rejection(self) -> ChainRejection | None:
        """Run the evaluations; return why the chain is rejected, None if it is a task."""
        return self._check_all_parts() or self._repeat_runs() or self._check_each_part_needed()

    def _check_all_parts(self) -> ChainRejection | None:
        """Reject the chain unless the tests of all parts pass with all."""
        self.evaluator, first = select_evaluator(self._build_evaluator, self.chain.test_files, self.chain.gold_patch)
        self.gold_runs = [first]
        return _check_run(self.chain, first)

    def _repeat_runs(self) -> ChainRejection | None:
        files: list[str] = []
        for seed in range(REPEATS):
            if seed:
                files = self._list_files()
                self.gold_runs.append(self._run_again(RunVariant.GOLD, self.chain.gold_patch, seed=seed, files=files))
            self.test_only_runs.append(self._run_again(RunVariant.TEST_ONLY, b"", seed=seed, files=files))
        runs = (*self.test_only_runs, *self.gold_runs)
        killed = next((run for run in runs if run.result.exec_result.killed_by), None)
        return _reject_unusable_run(killed) if killed is not None else None

    def _list_files(self) -> list[str]:
        """Return the test files of the first runs, to be shuffled; empty where they cannot be run alone."""
        report, before = self.gold_runs[0].report, self.test_only_runs[0].report
        files = sorted({*report.list_files(), *report.uncollected, *before.list_files()})
        framework = self.chain.oldest.require_environment().plan.test.framework
        fixed = [test for tests in self.chain.own_fail_to_pass for test in tests]
        return files if can_select_files(framework, self._gold_tree, fixed, files) else []

    def _run_again(
        self, variant: RunVariant, patch: bytes, *, seed: int = 0, files: Sequence[str] = ()
    ) -> EvaluationRun:
        """Make one more run, with a time limit from the first, which had all parts."""
        limit = limit_repeat(self.gold_runs[0].record.seconds)
        return self.evaluator.run(variant, seed=seed, patch=patch, files=files, time_limit=limit)

    def _check_each_part_needed(self) -> ChainRejection | None:
        """Reject the chain unless each part has tests that fail with all other parts."""
        fail_to_pass = {test for test, _ in self.lists.fail_to_pass}
        for number, (part, tests) in enumerate(zip(self.chain.parts, self.chain.own_fail_to_pass, strict=True)):
            name = part.candidate.name
            remaining = [test for test in tests if test in fail_to_pass]
            if not remaining:
                detail = f"no test of {name} fails without the changes and passes with them"
                return ChainRejection(Reason.PART_NOT_NEEDED, detail, part)
            others = self.chain.leave_out(number)
            if others is None:
                continue  # the others cannot be made without it
            run = self._run_again(RunVariant.GOLD, others)
            if run.result.exec_result.killed_by or not run.result.is_applied:
                return _reject_unusable_run(run, part)
            if all(run.report.has_passed(test) for test in remaining):
                detail = f"the tests of {name} pass without it"
                return ChainRejection(Reason.PART_NOT_NEEDED, detail, part)
        return None


def _check_run(chain: ChangeChain, run: EvaluationRun) -> ChainRejection | None:
    """Return why a run with all parts rejects the chain: unusable, a failing test, or a part without tests."""
    result, report = run.result, run.report
    if result.exec_result.killed_by or result.script_error or not result.is_applied or result.report is None:
        return _reject_unusable_run(run)
    if lost := sorted(path for path in report.uncollected if path in chain.test_files):
        culprit = next((part for part in chain.parts if lost[0] in part.tests.files), None)
        return ChainRejection(
            Reason.FAILS_TOGETHER, f"{lost[0]} cannot be collected: {report.uncollected[lost[0]]}", culprit
        )
    for part, tests in zip(chain.parts, chain.own_fail_to_pass, strict=True):
        failing = [test for test in tests if test in report.outcomes and not report.has_passed(test)]
        if failing:
            detail = f"{len(failing)} tests of {part.candidate.name} fail with all parts, such as {failing[0]}"
            return ChainRejection(Reason.FAILS_TOGETHER, detail, part)
        if not any(test in report.outcomes for test in tests):
            return ChainRejection(Reason.FAILS_TOGETHER, f"no test of {part.candidate.name} runs with all parts", part)
    broken = [test for test in chain.oldest.require_verification().PASS_TO_PASS if report.has_failed(test)]
    if broken:
        return ChainRejection(Reason.FAILS_TOGETHER, f"{len(broken)} tests fail with all parts, such as {broken[0]}")
    return None


def _reject_unusable_run(run: EvaluationRun, culprit: Lineage | None = None) -> ChainRejection:
    """Return the rejection for a run without a usable report."""
    result = run.result
    if result.exec_result.killed_by == "time":
        stopped = f"{result.failure_detail} after {result.exec_result.seconds:.0f} s"
        detail = result.failure_detail if result.hangs else stopped
        return ChainRejection(Reason.OUT_OF_TIME, detail, culprit)
    if not result.exec_result.killed_by and (result.script_error or not result.is_applied):
        detail = result.script_error or "the patch does not apply to the image"
        return ChainRejection(Reason.DOES_NOT_APPLY, detail, culprit)
    return ChainRejection(Reason.FAILS_TOGETHER, result.failure_detail, culprit)
