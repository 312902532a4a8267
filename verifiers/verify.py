"""Verify candidates: repeated test-only and gold runs (B + T and B + T + G).

All runs use the final image and evaluation script. Those of the first pair have a fresh container each, and those of a
repeat share one where the gold run has the same outcomes there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from backends.git import GitRepository
from backends.sandbox.base import ContainerPool
from backends.services import Services
from core.patch_headers import leave_out_files
from core.settings.tasks import ADAPTIVE
from evaluation.controls.controls import build_controls
from evaluation.dated_ids import make_undated_lists
from evaluation.differences import compare_with_runs
from evaluation.lists import OutcomeLists, make_lists
from evaluation.runner.evaluator import EvaluationRun, Evaluator, select_evaluator
from evaluation.runner.file_selection import can_select_files
from evaluation.runner.following import PlannedRun
from evaluation.runner.time_limit import TimeLimit, limit_repeat
from evaluation.script.render import extract_config_patch, leave_out_config, render_plan_script
from evaluation.weak_tests.find import TreeSource, describe_skips, find_weak_tests
from languages.paths import is_benchmark, is_test_file
from languages.registry import frameworks_by_name
from taskdb.records import Candidate, Environment, PublishedVerdict, Rejection, RunVariant, Stage, TestRun, Verification
from taskdb.records.lineage import ChangeTests, Lineage
from taskdb.records.tags import ChangeKind
from verifiers.dead_runs import TestTexts, complete_run, find_unfinished_tests, has_died, has_lost_tests
from verifiers.evaluated_files import is_long, select_eval_files, select_files_that_matter

BEHAVIOUR_KEEPING_KINDS = (ChangeKind.PERFORMANCE, ChangeKind.REFACTOR, ChangeKind.DEPENDENCY)
"""Kinds of change that are verified by their PASS_TO_PASS tests alone, where no test fails before them."""


AGREEING_PAIRS = 2
"""Pairs of runs after which adaptive repeats may end."""


class Reason(StrEnum):
    """Reason a candidate failed verification."""

    NO_FAIL_TO_PASS = "no-fail-to-pass"  # noqa: S105 - PASS is no password
    FLAKY = "flaky"
    """No FAIL_TO_PASS test is reliable."""
    GOLD_FAILS = "gold-fails"
    """The gold patch fixes no test, and tests of the change fail with it."""
    PATCH_DOES_NOT_APPLY = "patch-does-not-apply"
    TEST_PATCH_DOES_NOT_APPLY = "test-patch-does-not-apply"
    """The test patch does not apply, or leaves none of its files."""
    HANGS = "hangs"
    """A run took many times as long as the longest gold run before it."""
    KILLED_BY_TIME = "killed-by-time"
    KILLED_BY_MEMORY = "killed-by-memory"
    KILLED_BY_DISK = "killed-by-disk"
    NO_REPORT = "no-report"
    CANARY_PASSES = "canary-passes"
    """A test that must fail passes, so the harness reports no failures."""
    OUT_OF_BUDGET = "out-of-budget"
    NO_CHANGE = "no-change"
    """It is the head of a branch: no patch that a test could show."""


@dataclass(frozen=True, kw_only=True)
class VerificationFailure:
    """Reason a candidate failed verification, with the log of the run that shows it."""

    reason: Reason
    detail: str
    log: str | None = None


def verify(lineage: Lineage, services: Services) -> Verification | Rejection:
    """Run a candidate's tests with and without the gold patch.

    Args:
        lineage: a candidate with its environment.
        services: sandbox, clones, artifacts and settings.

    Raises:
        Transient: engine, disk or network failed.
    """
    started = time.perf_counter()
    environment = lineage.require_environment()
    if not lineage.candidate.gold_files and not lineage.candidate.test_files:
        detail = "the head of a branch has no patch; its environment gives tasks"
        return make_rejection(lineage, Reason.NO_CHANGE, detail, None, seconds=0.0)
    with services.sandbox.open_pool(environment.image, limits=services.test_limits(environment.plan.language)) as pool:
        verifier = CandidateVerifier(
            candidate=lineage.candidate,
            tests=lineage.tests,
            environment=environment,
            services=services,
            pool=pool,
            started=started,
            is_steady=lineage.history.is_steady,
        )
        result = verifier.verify()
    seconds = time.perf_counter() - started
    if isinstance(result, Verification):
        return result.model_copy(update={"seconds": seconds})
    # A rejected candidate has no lists in the database, so the comparison with published ones is made here.
    candidate, lists = lineage.candidate, verifier.compute_lists()
    published = None
    if candidate.published and lists:
        published = compare_with_runs(
            candidate.published,
            [test for test, _ in lists.fail_to_pass],
            lists.pass_to_pass,
            runs=[run.record for run in (*verifier.test_only_runs, *verifier.gold_runs)],
            eval_files=verifier.eval_files,
            artifacts=services.artifacts,
        )
    return make_rejection(lineage, result.reason, result.detail, result.log, seconds=seconds, published=published)


def make_rejection(
    lineage: Lineage,
    reason: str,
    detail: str,
    log: str | None,
    *,
    seconds: float,
    published: PublishedVerdict | None = None,
) -> Rejection:
    """Return the rejection of a candidate with an environment; arguments as in `Rejection`."""
    return Rejection(
        parent=lineage.require_environment().id,
        name=lineage.candidate.name,
        source=lineage.candidate.source,
        stage=Stage.VERIFY,
        reason=reason,
        detail=detail,
        log=log,
        published=published,
        seconds=seconds,
    )


@dataclass(kw_only=True)
class CandidateVerifier:
    """The runs of a candidate and the verdict that is decided from them."""

    candidate: Candidate
    tests: ChangeTests
    environment: Environment
    services: Services
    pool: ContainerPool
    started: float
    is_steady: bool = False
    """Whether no test of the repository was ever seen to be flaky."""
    evaluator: Evaluator = field(init=False)
    """Evaluator with the final image and script, set by the first run."""
    eval_files: tuple[str, ...] = field(init=False)
    """Test files to run; empty for the whole suite. Those of a long suite are fewer after the first pair of runs."""
    test_only_runs: list[EvaluationRun] = field(default_factory=list)
    """Each with the outcomes of a base run, where its runner died."""
    gold_runs: list[EvaluationRun] = field(default_factory=list)
    base_runs: list[EvaluationRun] = field(default_factory=list)
    """One for each test-only run whose runner died."""

    uses_whole_patch: bool = False
    """Whether the tests need the incidental files of the gold patch."""

    @cached_property
    def _whole_patch(self) -> bytes:
        """The gold patch with its incidental files."""
        return self.services.artifacts.get(self.candidate.gold_patch)

    @cached_property
    def _reduced_patch(self) -> bytes:
        """The gold patch without its incidental files."""
        return leave_out_files(self._whole_patch, self.candidate.incidental_files)

    @property
    def gold_patch(self) -> bytes:
        """The gold patch of the runs: without the incidental files, unless the tests need them."""
        is_whole = self.uses_whole_patch or not self.candidate.incidental_files
        return self._whole_patch if is_whole else self._reduced_patch

    @cached_property
    def test_patch(self) -> bytes:
        """The test patch."""
        return self.services.artifacts.get(self.tests.patch)

    @cached_property
    def repository(self) -> GitRepository:
        """The repository of the candidate."""
        return self.services.clones.open_history(self.candidate.source, self.candidate.repo, self.candidate.base_commit)

    @cached_property
    def test_texts(self) -> TestTexts:
        """Texts of the tests of the changed files."""
        return TestTexts(
            repository=self.repository, base=self.candidate.base_commit, patch=self._whole_patch + self.test_patch
        )

    @cached_property
    def gold_tree(self) -> TreeSource:
        """The tree of the gold runs."""
        patches = (self.gold_patch, self.test_patch)
        return TreeSource(repository=self.repository, base=self.candidate.base_commit, patches=patches)

    def _make_evaluator(self, canary_files: Sequence[str]) -> Evaluator:
        plan = self.environment.plan
        script = render_plan_script(
            plan,
            test_patch=self.test_patch,
            files=self.eval_files,
            canaries_beside=canary_files,
            config_patch=extract_config_patch(self.gold_patch),
        )
        digest = self.environment.image_digest
        return Evaluator(
            services=self.services, pool=self.pool, image_digest=digest, workdir=plan.workdir, script=script
        )

    def _select_canary_files(self) -> list[str]:
        """Return the test files that get canaries beside them: the change's own, otherwise the base tree's."""
        language = self.candidate.language
        touched = [path for path in self.tests.files if not is_benchmark(path)]
        if touched:
            return [path for path in touched if is_test_file(path, language)]
        entries = self.repository.ls_tree(self.candidate.base_commit)
        return [entry.path for entry in entries if is_test_file(entry.path, language)]

    def compute_lists(self) -> OutcomeLists | None:
        """Return the test lists from the runs so far; None before the first pair of runs."""
        pairs = min(len(self.test_only_runs), len(self.gold_runs))
        return make_undated_lists(self.test_only_runs, self.gold_runs, self.gold_tree) if pairs else None

    def verify(self) -> Verification | VerificationFailure:
        """Make all runs and return the result."""
        self.eval_files = select_eval_files(
            self.candidate,
            self.environment,
            self.services.settings.verify,
            self.services.settings.budget,
            tree=self.repository,
            test_files=self.tests.files,
        )
        if failure := self._run_first_pair() or self._run_repeats():
            return failure
        lists = self.compute_lists() or make_lists((), ())
        if not lists.fail_to_pass and (failure := self._explain_no_fail_to_pass()):
            return failure
        controls = build_controls(
            self.evaluator,
            self.repository,
            self.candidate.base_commit,
            test_patch=self.test_patch,
            gold_patch=self.gold_patch,
            tests=[test for test, _ in lists.fail_to_pass],
            others=lists.pass_to_pass,
            # The first run may have filled caches, and limits must hold for the slowest.
            seconds=max(run.record.seconds for run in self.gold_runs[1:] or self.gold_runs),
            report=self.gold_runs[-1].report,
            grades_gold=False,
        )
        is_whole = self.gold_patch == self._whole_patch
        runs: list[TestRun] = [
            run.record for run in (*self.base_runs, *self.test_only_runs, *self.gold_runs, *controls.runs)
        ]
        return Verification(
            parent=self.environment.id,
            candidate=self.candidate.id,
            name=self.candidate.name,
            FAIL_TO_PASS=lists.fail_to_pass,
            PASS_TO_PASS=lists.pass_to_pass,
            flaky_tests=lists.flaky,
            eval_files=self.eval_files,
            eval_script=self.services.artifacts.put_text(self.evaluator.script),
            **controls.make_fields(self.services.artifacts),
            dropped_canaries="write_canary" not in self.evaluator.script,
            repeats=len(self.gold_runs),
            gold_patch=None if is_whole else self.services.artifacts.put(self.gold_patch),
            weak_tests=find_weak_tests(
                [*(test for test, _ in lists.fail_to_pass), *lists.pass_to_pass],
                [run.report for run in self.gold_runs],
                self.gold_tree,
                changed_files=self.tests.files,
            ),
            runs=tuple(runs),
            seconds=0.0,
        )

    def _run_first_pair(self) -> VerificationFailure | None:
        """Run both trees with seed 0; a candidate that fails here is not repeated."""
        failure = self._run_pair()
        is_usable = failure is None or failure.reason is Reason.NO_FAIL_TO_PASS
        if is_usable and (missed := self._list_missed_files()):
            if failure is None:
                self._add_missed_files(missed)
            elif again := self._run_missed_files(missed):
                detail = f"{failure.detail}; with {missed[0]}, which the suite leaves out: {again.detail}"
                failure = VerificationFailure(reason=failure.reason, detail=detail, log=again.log)
            else:
                failure = None
        if failure is None and not self.eval_files and self._is_long:
            self._keep_files_that_matter()
        return failure

    @property
    def _is_long(self) -> bool:
        """Whether the whole suite takes too long to run each time."""
        return is_long(self.environment, self.services.settings.verify, self.services.settings.budget)

    def _run_pair(self) -> VerificationFailure | None:
        first = self._run_first_gold()
        if failure := self._record_run(RunVariant.GOLD, first) or self._add_run(RunVariant.TEST_ONLY, 0):
            return failure
        lists = self.compute_lists()
        # Most candidates that fail do so here, after two runs instead of all.
        return None if lists and lists.fail_to_pass else self._explain_no_fail_to_pass()

    def _list_missed_files(self) -> list[str]:
        """Return the change's test files that the suite leaves out: a run of all of it does not report them."""
        framework = frameworks_by_name()[self.environment.plan.test.framework]
        if self.eval_files or not framework.selects_files:
            return []
        report, language = self.gold_runs[-1].report, self.candidate.language
        own = {path for path in self.tests.files if is_test_file(path, language) and not is_benchmark(path)}
        return sorted(own - report.list_files() - report.uncollected.keys())

    def _add_missed_files(self, missed: Sequence[str]) -> None:
        """Make the first pair of runs again with files that the suite leaves out, after one that shows the change.

        Without them a submission that does half of the change would be paid, as the tests of the other half never ran.
        The earlier pair counts where the runs fail, or no test of these files passes with the gold patch.
        """
        missed = [path for path in missed if self.test_texts.may_have_tests(path)]
        if not missed or not self._can_select_files:
            return
        kept, kept_runs = vars(self).copy(), [list(runs) for runs in self._all_runs]
        if self._run_missed_files(missed) is None:
            passed = {test.partition("::")[0] for test in _list_passed(self.gold_runs[-1])}
            if not passed.isdisjoint(missed):
                return
        vars(self).update(kept)
        for runs, before in zip(self._all_runs, kept_runs, strict=True):
            runs[:] = before

    @property
    def _all_runs(self) -> tuple[list[EvaluationRun], ...]:
        return self.base_runs, self.test_only_runs, self.gold_runs

    def _run_missed_files(self, missed: Sequence[str]) -> VerificationFailure | None:
        """Make the first pair of runs again, with test files that the suite leaves out and those that it has."""
        reports = (self.test_only_runs[0].report, self.gold_runs[0].report)
        ran = (
            select_files_that_matter(self.candidate, self.repository, self.tests.files, *reports)
            if self._is_long
            else ()
        )
        self.eval_files = tuple(sorted({*missed, *(ran or self._list_observed_files())}))
        for runs in self._all_runs:
            runs.clear()
        for name in ("gold_tree", "_can_select_files"):  # they follow from the pair
            vars(self).pop(name, None)
        return self._run_pair()

    def _run_first_gold(self) -> EvaluationRun:
        """Choose the evaluator and the gold patch, and return the first gold run.

        Where the candidate has incidental files, the run is made without them. Only if not all of its tests pass, a
        second one shows whether they pass with the whole patch.
        """
        canary_files = self._select_canary_files()
        self.evaluator, first = select_evaluator(self._make_evaluator, canary_files, self.gold_patch)
        if self.gold_patch == self._whole_patch or self._passes_all(first):
            return first
        evaluator = self.evaluator
        self.uses_whole_patch = True
        self.evaluator, whole = select_evaluator(self._make_evaluator, canary_files, self.gold_patch)
        if _find_failure(RunVariant.GOLD, first) is None and not self._needs_whole_patch(evaluator, first, whole):
            self.uses_whole_patch, self.evaluator = False, evaluator
            return first
        return whole

    def _needs_whole_patch(self, evaluator: Evaluator, reduced: EvaluationRun, whole: EvaluationRun) -> bool:
        """Return whether tests fail without the incidental files that pass with them, and not by chance.

        Args:
            evaluator: evaluator of the run without them.
            reduced: the run without them.
            whole: a run with them.
        """
        lost = [test for test in _list_passed(whole) if not reduced.report.has_passed(test)]
        if not lost:
            return False
        again = evaluator.run(RunVariant.GOLD, patch=self._reduced_patch, time_limit=limit_repeat(whole.record.seconds))
        return any(not again.report.has_passed(test) for test in lost)

    def _passes_all(self, run: EvaluationRun) -> bool:
        """Return whether no test of a gold run failed, and none of the change's files was skipped."""
        report = run.report
        if _find_failure(RunVariant.GOLD, run) or report.uncollected:
            return False
        own = [test for test in report.outcomes if test.partition("::")[0] in self.tests.files]
        return not any(map(report.has_failed, report.outcomes)) and all(map(report.has_passed, own))

    def _keep_files_that_matter(self) -> None:
        """Leave the other test files out of all further runs, of the lists and of the script."""
        if not self._can_select_files:
            return
        files = select_files_that_matter(
            self.candidate, self.repository, self.tests.files, self.test_only_runs[0].report, self.gold_runs[0].report
        )
        # The change keeps the behaviour, and no test is known to reach it.
        if not files:
            return
        # From here on, earlier runs must not count tests that later runs leave out.
        self.eval_files = files
        has_canaries = "write_canary" in self.evaluator.script
        self.evaluator = self._make_evaluator(self._select_canary_files() if has_canaries else ())
        for runs in (self.base_runs, self.test_only_runs, self.gold_runs):
            runs[:] = [run.with_report(run.report.keep_files(self.eval_files)) for run in runs]

    def _run_repeats(self) -> VerificationFailure | None:
        for seed in range(1, self.services.settings.verify.max_repeats):
            if seed == AGREEING_PAIRS and self._can_stop_repeating():
                return None
            if failure := self._repeat_pair(seed):
                return failure
        return None

    def _repeat_pair(self, seed: int) -> VerificationFailure | None:
        """Make one more pair of runs; return the reason to stop, if any.

        Both have one container, where the gold run has the outcomes of the first one. If it has others, files of the
        test-only run may be the cause, or chance. Chance does not repeat itself in a second such container, so that the
        outcomes count there; otherwise the gold run is made in a container of its own.
        """
        if failure := self._check_budget():
            return failure
        pair = self._run_pair_in_turn(seed)
        if not pair:
            return self._add_run(RunVariant.TEST_ONLY, seed) or self._add_run(RunVariant.GOLD, seed)
        test_only, gold = pair
        if failure := self._record_run(RunVariant.TEST_ONLY, test_only):
            return failure
        if differing := self._list_differing(gold):
            self.is_steady = False
            again = self._run_pair_in_turn(seed)
            if not again or differing <= self._list_differing(again[1]):
                return self._add_run(RunVariant.GOLD, seed)
        return self._record_run(RunVariant.GOLD, gold)

    def _run_pair_in_turn(self, seed: int) -> list[EvaluationRun]:
        """Return a test-only run and a gold run in one container; none where they need containers of their own."""
        plan, limit = self.environment.plan, self._limit_repeat()
        if limit is None or plan.services:
            return []
        seconds = min(limit.seconds, self.services.test_limits(plan.language).seconds / 2)
        runs = [
            (
                variant,
                PlannedRun(
                    script=self.evaluator.script,
                    patch=patch,
                    files=self._list_files(seed),
                    seed=seed,
                    seconds=seconds,
                    time_limit=limit,
                ),
            )
            for variant, patch in (
                (RunVariant.TEST_ONLY, b""),
                (RunVariant.GOLD, leave_out_config(self.gold_patch)),
            )
        ]
        pair = self.evaluator.run_in_turn(runs)
        is_short = seconds < limit.seconds and any(run.record.killed_by for run in pair)
        return [] if is_short else pair

    def _list_differing(self, run: EvaluationRun) -> set[str]:
        """Return the tests and files that have other outcomes in a gold run than in the first one; all if it failed."""
        first = self.gold_runs[0].report
        has_failed = _find_failure(RunVariant.GOLD, run) is not None
        return {*first.outcomes, *run.report.outcomes} if has_failed else first.list_differing(run.report)

    def _can_stop_repeating(self) -> bool:
        """Return whether adaptive repeats end here: nothing about the change or its repository was ever flaky."""
        if self.services.settings.verify.repeats != ADAPTIVE or not self.is_steady:
            return False
        lists = self.compute_lists()
        # A runner that died may have died by chance.
        return lists is not None and not lists.flaky and not self.base_runs

    def _add_run(self, variant: RunVariant, seed: int) -> VerificationFailure | None:
        """Make one more test-only or gold run; return the reason to stop, if any."""
        if failure := self._check_budget():
            return failure
        patch = self.gold_patch if variant is RunVariant.GOLD else b""
        # Most rejections follow the first test-only run, and then no container is used any more.
        is_deciding = variant is RunVariant.TEST_ONLY and not self.test_only_runs
        run = self.evaluator.run(
            variant,
            seed=seed,
            patch=patch,
            files=self._list_files(seed),
            time_limit=self._limit_repeat(),
            last=is_deciding,
        )
        return self._record_run(variant, run)

    def _check_budget(self) -> VerificationFailure | None:
        if time.perf_counter() - self.started <= self.services.settings.budget.seconds:
            return None
        budget = f"{self.services.settings.budget.seconds:g} s"
        return VerificationFailure(reason=Reason.OUT_OF_BUDGET, detail=f"verification took longer than {budget}")

    def _record_run(self, variant: RunVariant, run: EvaluationRun) -> VerificationFailure | None:
        framework = self.environment.plan.test.framework
        # Without the fix, a crash of the runner is what the change may be about.
        died = variant is RunVariant.TEST_ONLY and not run.result.script_error and has_died(run.result, framework)
        if not died and (failure := _find_failure(variant, run)):
            return failure
        if variant is RunVariant.GOLD:
            self.gold_runs.append(run)
        elif died or has_lost_tests(run.result.report, self.gold_runs[0].report, self.test_texts):
            return self._record_incomplete_run(run, died=died)
        else:
            self.test_only_runs.append(run)
        return None

    def _record_incomplete_run(self, run: EvaluationRun, *, died: bool) -> VerificationFailure | None:
        """Add a test-only run that lacks tests, with their outcomes in a base run of the same seed."""
        seed = run.record.seed
        # The base tree has neither the new tests nor the fix, so its runner gets past the place of the crash.
        base = self.evaluator.run(
            RunVariant.BASE,
            seed=seed,
            test_patch=b"",
            files=self._list_files(seed),
            time_limit=self._limit_repeat(),
        )
        failure = None if base.result.tree_error else _find_failure(RunVariant.BASE, base)
        if died and failure:
            return failure
        died_in = find_unfinished_tests(run.result.log, self.gold_runs[0].report) if died else ()
        self.base_runs.append(base)
        self.test_only_runs.append(complete_run(run, base.report, died_in, self.test_texts))
        return None

    def _limit_repeat(self) -> TimeLimit | None:
        """Return the time limit of a further run, from the longest gold run."""
        return limit_repeat(max(run.record.seconds for run in self.gold_runs))

    @cached_property
    def _can_select_files(self) -> bool:
        """Whether further runs are given test files, by the first pair of runs."""
        lists = self.compute_lists()
        fixed = [test for test, _ in lists.fail_to_pass] if lists else []
        return can_select_files(
            self.environment.plan.test.framework, self.gold_tree, fixed, self._list_observed_files()
        )

    def _list_files(self, seed: int) -> Sequence[str]:
        """Return the test files of the first pair, to be shuffled by the seed; none for the script's own files."""
        return self._list_observed_files() if seed and self._can_select_files else ()

    def _list_observed_files(self) -> list[str]:
        """Return the test files of the first pair, to be shuffled by the seed."""
        reports = [self.test_only_runs[0].report, self.gold_runs[0].report]
        return sorted({file for report in reports for file in (*report.list_files(), *report.uncollected)})

    def _explain_no_fail_to_pass(self) -> VerificationFailure | None:
        """Return the reason no test is fixed; None for a change that must keep the behaviour and needs stable tests."""
        lists, gold_run = self.compute_lists(), self.gold_runs[-1]
        skips = describe_skips(gold_run.report)
        if lists and lists.flaky_fail_to_pass:
            test = lists.flaky_fail_to_pass[0]
            counts = next(flaky_test for flaky_test in lists.flaky if flaky_test.test == test).describe_counts()
            return VerificationFailure(reason=Reason.FLAKY, detail=f"{test}: {counts}", log=gold_run.record.log)
        failing = gold_run.report.list_failing(self.tests.files)
        if failing:
            detail = f"{len(failing)} tests of the change fail with the gold patch, such as {failing[0]}"
            detail += f"; {skips}" if skips else ""
            return VerificationFailure(reason=Reason.GOLD_FAILS, detail=detail, log=gold_run.record.log)
        # A refactoring or a speedup needs tests that pass before and after, and none that fails before.
        if lists and lists.pass_to_pass and self.candidate.change_kind in BEHAVIOUR_KEEPING_KINDS:
            return None
        passed = gold_run.record.counts.passed
        detail = f"none of {passed} passing tests fails without the gold patch" + (f"; {skips}" if skips else "")
        return VerificationFailure(reason=Reason.NO_FAIL_TO_PASS, detail=detail, log=gold_run.record.log)


def _list_passed(run: EvaluationRun) -> list[str]:
    return [test for test in run.report.outcomes if run.report.has_passed(test)]


def _find_failure(variant: RunVariant, run: EvaluationRun) -> VerificationFailure | None:
    """Return the reason a run has no usable report."""
    result, log = run.result, run.record.log
    where = f"in the {variant.value} run"
    if not result.is_applied:
        return VerificationFailure(
            reason=Reason.PATCH_DOES_NOT_APPLY, detail="the gold patch does not apply to the image", log=log
        )
    if result.script_error:
        return VerificationFailure(
            reason=Reason.TEST_PATCH_DOES_NOT_APPLY, detail=f"{result.script_error} {where}", log=log
        )
    if killed_by := result.exec_result.killed_by:
        reason = Reason.HANGS if result.hangs else Reason(f"killed-by-{killed_by}")
        after = "," if result.hangs else f" after {result.exec_result.seconds:.0f} s"
        return VerificationFailure(reason=reason, detail=f"{result.failure_detail}{after} {where}", log=log)
    if result.has_forged_canary:
        detail = f"a test that must fail passes {where}, so its harness reports no failures"
        return VerificationFailure(reason=Reason.CANARY_PASSES, detail=detail, log=log)
    if result.report is None and variant is not RunVariant.TEST_ONLY:
        return VerificationFailure(reason=Reason.NO_REPORT, detail=f"{result.failure_detail}, {where}", log=log)
    return None
