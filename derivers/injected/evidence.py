"""The environment of an injected bug: the agent's tree as an image, its script, and its lists from repeated runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from backends.overlay import open_patched_commit
from backends.sandbox.images import ImageInfo
from backends.services import Services
from derivers.bugfix import BEHAVIOURAL_FAILURES
from derivers.injected.patches import InjectionPatches
from derivers.injected.search import Reason
from evaluation.controls.controls import BlindControls, build_controls
from evaluation.controls.trials import ControlMemory
from evaluation.dated_ids import make_undated_lists
from evaluation.lists import OutcomeLists
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import EvaluationRun, Evaluator, select_evaluator
from evaluation.runner.time_limit import limit_repeat
from evaluation.script.render import extract_config_patch, render_plan_script
from evaluation.weak_tests.find import TreeSource
from taskdb.records import RunVariant, TestId
from taskdb.records.lineage import Lineage


@dataclass(frozen=True, kw_only=True)
class EarlierRuns:
    """Reports of the same trees from other images, each of which stands for a run in the task's own image."""

    base: EvaluationReport
    """Outcomes of the tree without the bug, of tests with the same status in each run."""
    buggy: EvaluationReport | None
    """Outcomes of the tree with all bugs of the task; None where they were not tried together."""
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

        def build_evaluator(beside: Sequence[str]) -> Evaluator:
            script = render_plan_script(
                plan,
                test_patch=patches.test_patch,
                files=files,
                canaries_beside=beside,
                config_patch=extract_config_patch(patches.gold_patch) if own else b"",
            )
            return Evaluator(
                services=services, pool=pool, image_digest=image.digest, workdir=plan.workdir, script=script
            )

        evaluator, buggy_runs, gold_runs = _run_both_trees(build_evaluator, hidden, patches.gold_patch, earlier)
        tree = TreeSource(
            repository=services.clones.open_history(candidate.source, candidate.repo, candidate.base_commit),
            base=candidate.base_commit,
            patches=(patches.setup_patch, patches.gold_patch, patches.test_patch),
        )
        lists = make_undated_lists(buggy_runs, gold_runs, tree)
        own_tests = own.fail_to_pass if own else frozenset()
        kinds = {kind for test, kind in lists.fail_to_pass if test not in own_tests}
        if not kinds or not kinds <= set(BEHAVIOURAL_FAILURES):
            return Reason.NOT_STABLE
        if not lists.pass_to_pass:
            return Reason.ALL_TESTS_FAIL
        if own is not None and (reason := _check_both_needed(evaluator, lists, own)):
            return reason
        seconds = max(run.record.seconds for run in gold_runs)
        controls = _build_controls(lineage, services, patches, evaluator, lists=lists, seconds=seconds, earlier=earlier)
    return InjectionEvidence(
        image=image,
        script=evaluator.script,
        lists=lists,
        controls=controls,
        buggy_run=buggy_runs[0],
        test_seconds=max(run.record.test_seconds for run in gold_runs),
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


def _build_controls(
    lineage: Lineage,
    services: Services,
    patches: InjectionPatches,
    evaluator: Evaluator,
    *,
    lists: OutcomeLists,
    seconds: float,
    earlier: EarlierRuns | None,
) -> BlindControls:
    """Return sabotaged copies of the FAIL_TO_PASS tests, on the agent's tree."""
    candidate = lineage.candidate
    repository = services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
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


def _run_both_trees(
    build_evaluator: Callable[[Sequence[str]], Evaluator],
    hidden: Sequence[str],
    gold_patch: bytes,
    earlier: EarlierRuns | None,
) -> tuple[Evaluator, list[EvaluationRun], list[EvaluationRun]]:
    """Return the selected evaluator, and two runs each with the bug and without it, an earlier one last.

    Two runs exclude bugs that fail tests only sometimes; they differ in hash seed and order of files.
    """
    evaluator, first = select_evaluator(build_evaluator, hidden, gold_patch)
    limit = limit_repeat(first.record.seconds)
    buggy_runs = [evaluator.run(RunVariant.TEST_ONLY, seed=1, time_limit=limit)]
    if earlier is not None and earlier.buggy is not None:
        buggy_runs.append(buggy_runs[0].with_report(earlier.buggy))
    else:
        buggy_runs.append(evaluator.run(RunVariant.TEST_ONLY, time_limit=limit))
    if earlier is not None:
        return evaluator, buggy_runs, [first, first.with_report(earlier.base)]
    return evaluator, buggy_runs, [first, evaluator.run(RunVariant.GOLD, patch=gold_patch, seed=1, time_limit=limit)]
