"""An attempt: build a plan's layers and run its tests."""

from __future__ import annotations

from dataclasses import dataclass

from backends.sandbox.images import ImageInfo
from backends.services import Services
from backends.tree import CommitTree
from builders import layers
from builders.acceptance import BuildAcceptance, BuildRejection, Reason, run_acceptance
from builders.error_lines import find_error_line
from builders.gold_check import check_gold_tests, passes_gold_run, plan_gold_run
from builders.repair.edits import AGENT_ORIGIN
from taskdb.records import BuildPlan, Candidate


@dataclass(frozen=True, kw_only=True)
class AcceptedBuild:
    """A plan with its image, which passed acceptance."""

    plan: BuildPlan
    image: ImageInfo
    acceptance: BuildAcceptance


@dataclass(frozen=True, kw_only=True)
class GoldFailure(BuildRejection):
    """An accepted build in which the change's own tests fail with the gold patch: it is used if none is better."""

    accepted: AcceptedBuild


def run_attempt(
    plan: BuildPlan,
    tree: CommitTree,
    candidate: Candidate,
    services: Services,
    *,
    accepted_before: GoldFailure | None = None,
) -> AcceptedBuild | BuildRejection:
    """Build the plan's layers, run acceptance and the change's own tests.

    `accepted_before`: an accepted build to improve. The change's tests then run first: where no more of them pass, the
    base tree's tests need not run.

    Raises:
        Transient: engine, network or disk failed.
        MachineError: this machine cannot make the base image.
        IncompleteCloneError: the clone lacks objects of the tree.
    """
    layer = layers.build_dependency_layer(plan, tree.repository, services)
    if layer.image is None:
        return _create_layer_rejection(layer, Reason.DEPENDENCIES_FAILED)
    layer = layers.build_source_layer(plan, tree.repository, candidate.base_commit, candidate.repo, services)
    if layer.image is None:
        return _create_layer_rejection(layer, Reason.INSTALL_FAILED)
    image = layer.image
    if accepted_before is not None:
        base_seconds = accepted_before.accepted.acceptance.test_seconds
        failure = check_gold_tests(plan, candidate, image.name, services, base_seconds=base_seconds)
        if failure is not None and failure.measure_progress() <= accepted_before.measure_progress():
            return failure
    is_model_edited = any(evidence.path == AGENT_ORIGIN for evidence in plan.evidence)
    # Most changes pass, so that the check needs no container of its own.
    result = run_acceptance(
        plan,
        tree,
        candidate,
        image.name,
        services,
        check_forgery=is_model_edited,
        following=plan_gold_run(plan, candidate, services),
    )
    if isinstance(result, BuildRejection):
        return result
    accepted = AcceptedBuild(plan=plan, image=image, acceptance=result)
    if result.following is not None and passes_gold_run(result.following, candidate):
        return accepted
    failure = check_gold_tests(plan, candidate, image.name, services, base_seconds=result.test_seconds)
    return accepted if failure is None else GoldFailure(**vars(failure), accepted=accepted)


def _create_layer_rejection(layer: layers.LayerBuild, reason: Reason) -> BuildRejection:
    log = layer.result.output if layer.result else ""
    killed = layer.result.killed_by if layer.result else None
    detail = f"stopped: {killed}; {find_error_line(log)}" if killed else find_error_line(log)
    return BuildRejection(reason=reason, detail=detail, log=log)
