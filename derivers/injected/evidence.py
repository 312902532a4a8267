"""The environment of an injected bug: the agent's tree as an image, its script, and its lists from repeated runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from backends.overlay import open_patched_commit
from backends.sandbox.base import ContainerPool
from backends.sandbox.images import ImageInfo
from backends.services import Services
from derivers.bugfix import BEHAVIOURAL_FAILURES
from derivers.injected.patches import InjectionPatches
from derivers.injected.search import Reason
from evaluation.controls.controls import BlindControls, build_controls
from evaluation.controls.memory import ControlMemory
from evaluation.dated_ids import make_undated_lists
from evaluation.lists import OutcomeLists
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EvaluationRun, Evaluator, select_evaluator
from evaluation.runner.time_limit import limit_repeat
from evaluation.script.render import extract_config_patch, render_plan_script
from evaluation.weak_tests.find import TreeSource
from taskdb.records import RunVariant, TestId
from taskdb.records.lineage import Lineage

CheckRuns = Callable[[OutcomeLists, EvaluationRun], Reason | None]
"""Returns why the lists and a run with the bug give no task; None if they do."""


@dataclass(frozen=True, kw_only=True)
class EarlierRuns:
    """Reports of the same trees from other images, each of which stands for a run in the task's own image."""

    base: EvaluationReport
    """Outcomes of the tree without the bug, of tests with the same status in each run."""
    buggy: EvaluationReport | None
    """Outcomes of the tree with all bugs of the task; None where they were not tried together."""
    seconds: float = 0.0
    """Seconds of a run of the tree without the bug; 0 if unknown."""
    collects_canaries: bool = True
    """Whether the test runner is expected to collect canaries."""
    memory: ControlMemory | None = None
    """Values of tests, with their results in earlier runs of the tree without the bug."""
    foreseen: Collection[frozenset[TestId]] = ()
    """Tests that fail with other bugs, of which tasks are expected."""


@dataclass(frozen=True, kw_only=True)
class InjectionEvidence:
    """The image of the agent's tree, and the results of its evaluations."""

    image: ImageInfo
    script: str
    lists: OutcomeLists
    controls: BlindControls
    buggy_run: EvaluationRun
    """A run with the bug."""
    test_seconds: float
    """Seconds of the longest run without the bug."""
    has_canaries: bool
    """Whether the script adds canaries."""


@dataclass(frozen=True, kw_only=True)
class OwnChange:
    """The change's own part of a task with an injected bug on top of it."""

    fail_to_pass: frozenset[TestId]
    gold_patch: bytes
    """Against the base commit; it does not remove the bug."""
    statement: str


def verify_injection(
    lineage: Lineage,
    services: Services,
    patches: InjectionPatches,
    *,
    hidden: Sequence[str],
    files: Sequence[str],
    own: OwnChange | None = None,
    earlier: EarlierRuns | None = None,
    check: CheckRuns | None = None,
) -> InjectionEvidence | Reason:
    """Build the image of the agent's tree and evaluate it with and without the bug.

    Args:
        lineage: a verified change.
        services: sandbox, clones, and the builder of patched images.
        patches: patches of the bug.
        hidden: test files that the test patch adds.
        files: test files to run; empty for the whole suite.
        own: the change's own part of the task, if any.
        earlier: earlier runs of the trees; None for none.
        check: function that returns why lists and a run with the bug give no task, before controls are made.

    Raises:
        Transient: engine, disk or network failed.
    """
    candidate, plan = lineage.candidate, lineage.require_environment().plan
    if services.source_images is None:
        raise LookupError("no builder of patched images is configured")
    image = services.source_images.build(plan, candidate, patches.setup_patch)
    if image is None:
        return Reason.NO_IMAGE
    with services.sandbox.open_pool(image.name, limits=services.test_limits(plan.language)) as pool:
        verifier = _InjectionVerifier(
            lineage=lineage,
            services=services,
            patches=patches,
            hidden=hidden,
            files=files,
            own=own,
            earlier=earlier,
            check=check,
            image=image,
            pool=pool,
        )
        return verifier.verify()


@dataclass(frozen=True, kw_only=True)
class _InjectionVerifier:
    """Evaluates the image of an agent's tree; attributes as the arguments of `verify_injection`."""

    lineage: Lineage
    services: Services
    patches: InjectionPatches
    hidden: Sequence[str]
    files: Sequence[str]
    own: OwnChange | None
    earlier: EarlierRuns | None
    check: CheckRuns | None
    image: ImageInfo
    pool: ContainerPool

    def verify(self) -> InjectionEvidence | Reason:
        """Return the evidence, or why there is none."""
        if self.earlier is not None and self.own is None:
            evidence = self._verify_by_grading(self.earlier)
            if evidence is not None:
                return evidence
        evaluator, buggy_runs, gold_runs = self._run_both_trees()
        lists = self._make_lists(buggy_runs, gold_runs)
        if reason := self._check_lists(lists, buggy_runs[0]):
            return reason
        if self.own is not None and (reason := _check_both_needed(evaluator, lists, self.own)):
            return reason
        seconds = max(run.record.seconds for run in gold_runs)
        controls = self._build_controls(evaluator, lists, seconds)
        test_seconds = max(run.record.test_seconds for run in gold_runs)
        return self._make_evidence(evaluator, lists, controls, buggy_runs[0], test_seconds)

    def _verify_by_grading(self, earlier: EarlierRuns) -> InjectionEvidence | Reason | None:
        """Return the evidence whose run without the bug is the one that confirms the controls.

        With its gold patch the task's tree is that of the earlier runs, which make the lists. The last run of the
        controls is drawn as a grading is, and gold passes each listed test there, in the task's own image. Where there
        are no controls, a run of its own shows that. None where the canaries do not suit the test runner.
        """
        evaluator = self._make_evaluator(self.hidden if earlier.collects_canaries else ())
        limit = limit_repeat(earlier.seconds)
        buggy = evaluator.run(RunVariant.TEST_ONLY, seed=1, time_limit=limit)
        if buggy.result.canary_status not in ("right", "none"):
            return None
        buggy_runs = [buggy]
        if earlier.buggy is None:
            buggy_runs.append(evaluator.run(RunVariant.TEST_ONLY, time_limit=limit))
        else:
            buggy_runs.append(buggy.with_report(earlier.buggy))
        lists = self._make_lists(buggy_runs, [buggy.with_report(earlier.base)])
        if reason := self._check_lists(lists, buggy):
            return reason
        controls = self._build_controls(evaluator, lists, buggy.record.seconds)
        if controls.document is not None:
            return self._make_evidence(evaluator, lists, controls, buggy, controls.runs[-1].record.test_seconds)
        gold = evaluator.run(RunVariant.GOLD, patch=self.patches.gold_patch, time_limit=limit)
        confirmed = self._make_lists(buggy_runs, [gold, gold.with_report(earlier.base)])
        if reason := self._check_lists(confirmed, buggy):
            return reason
        if confirmed != lists:
            controls = self._build_controls(evaluator, confirmed, gold.record.seconds)
        return self._make_evidence(evaluator, confirmed, controls, buggy, gold.record.test_seconds)

    def _make_evaluator(self, canaries_beside: Sequence[str]) -> Evaluator:
        plan = self.lineage.require_environment().plan
        script = render_plan_script(
            plan,
            test_patch=self.patches.test_patch,
            files=self.files,
            canaries_beside=canaries_beside,
            config_patch=extract_config_patch(self.patches.gold_patch) if self.own else b"",
        )
        return Evaluator(
            services=self.services,
            pool=self.pool,
            image_digest=self.image.digest,
            workdir=plan.workdir,
            script=script,
        )

    def _run_both_trees(self) -> tuple[Evaluator, list[EvaluationRun], list[EvaluationRun]]:
        """Return the selected evaluator, and two runs each with the bug and without it, an earlier one last.

        Two runs exclude bugs that fail tests only sometimes; they differ in hash seed and order of files.
        """
        gold_patch, earlier = self.patches.gold_patch, self.earlier
        evaluator, first = select_evaluator(self._make_evaluator, self.hidden, gold_patch)
        limit = limit_repeat(first.record.seconds)
        buggy_runs = [evaluator.run(RunVariant.TEST_ONLY, seed=1, time_limit=limit)]
        if earlier is not None and earlier.buggy is not None:
            buggy_runs.append(buggy_runs[0].with_report(earlier.buggy))
        else:
            buggy_runs.append(evaluator.run(RunVariant.TEST_ONLY, time_limit=limit))
        if earlier is not None:
            return evaluator, buggy_runs, [first, first.with_report(earlier.base)]
        again = evaluator.run(RunVariant.GOLD, patch=gold_patch, seed=1, time_limit=limit)
        return evaluator, buggy_runs, [first, again]

    def _make_lists(self, buggy_runs: Sequence[EvaluationRun], gold_runs: Sequence[EvaluationRun]) -> OutcomeLists:
        candidate, patches = self.lineage.candidate, self.patches
        tree = TreeSource(
            repository=self.services.clones.open_history(candidate.source, candidate.repo, candidate.base_commit),
            base=candidate.base_commit,
            patches=(patches.setup_patch, patches.gold_patch, patches.test_patch),
        )
        return make_undated_lists(buggy_runs, gold_runs, tree)

    def _check_lists(self, lists: OutcomeLists, buggy_run: EvaluationRun) -> Reason | None:
        """Return why the lists give no task; None if they do."""
        own_tests = self.own.fail_to_pass if self.own else frozenset()
        kinds = {kind for test, kind in lists.fail_to_pass if test not in own_tests}
        if not kinds or not kinds <= set(BEHAVIOURAL_FAILURES):
            return Reason.NOT_STABLE
        if not lists.pass_to_pass:
            return Reason.ALL_TESTS_FAIL
        return self.check(lists, buggy_run) if self.check else None

    def _build_controls(self, evaluator: Evaluator, lists: OutcomeLists, seconds: float) -> BlindControls:
        """Return sabotaged copies of the FAIL_TO_PASS tests, on the agent's tree."""
        candidate, patches, earlier = self.lineage.candidate, self.patches, self.earlier
        repository = self.services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
        with open_patched_commit(repository, candidate.base_commit, patches.setup_patch) as (overlay, commit):
            return build_controls(
                evaluator,
                overlay,
                commit,
                test_patch=patches.test_patch,
                gold_patch=patches.gold_patch,
                tests=[test for test, _ in lists.fail_to_pass],
                others=lists.pass_to_pass,
                seconds=seconds,
                memory=earlier.memory if earlier else None,
                foreseen=earlier.foreseen if earlier else (),
            )

    def _make_evidence(
        self,
        evaluator: Evaluator,
        lists: OutcomeLists,
        controls: BlindControls,
        buggy_run: EvaluationRun,
        test_seconds: float,
    ) -> InjectionEvidence:
        return InjectionEvidence(
            image=self.image,
            script=evaluator.script,
            lists=lists,
            controls=controls,
            buggy_run=buggy_run,
            test_seconds=test_seconds,
            has_canaries=buggy_run.result.canary_status != "none",
        )


def _check_both_needed(evaluator: Evaluator, lists: OutcomeLists, own: OwnChange) -> Reason | None:
    """Return a reason unless the list has tests of the change, and the bug remains with its gold patch alone."""
    failing = {test for test, _ in lists.fail_to_pass}
    if not failing & own.fail_to_pass:
        return Reason.BUGS_DO_NOT_COMBINE
    run = evaluator.run(RunVariant.GOLD, patch=own.gold_patch)
    remaining = failing - own.fail_to_pass
    is_fixed = not run.result.is_applied or all(run.report.has_passed(test) for test in remaining)
    return Reason.BUGS_DO_NOT_COMBINE if is_fixed else None
