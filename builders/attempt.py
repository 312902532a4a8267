"""One attempt: a plan's layers are built and its tests run."""

from __future__ import annotations

from dataclasses import dataclass

from backends.sandbox.base import ImageInfo
from backends.services import Services
from backends.tree import Tree
from builders import layers
from builders.accept import Accepted, Reason, Refused, accept, best_line
from builders.repair.edits import AGENT
from taskdb.records import BuildPlan, Candidate


@dataclass(frozen=True, kw_only=True)
class Built:
    """A plan whose image stood the acceptance."""

    plan: BuildPlan
    image: ImageInfo
    accepted: Accepted


def attempt(plan: BuildPlan, tree: Tree, candidate: Candidate, services: Services) -> Built | Refused:
    """Build the plan's layers and run the tests.

    Raises:
        Transient: engine, network or disk failed.
        MachineError: this machine cannot make the base image.
        IncompleteCloneError: the clone lacks objects of the tree.
    """
    layer = layers.dependencies(plan, tree.repository, services)
    if layer.image is None:
        return _refused(layer, Reason.DEPENDENCIES_FAILED)
    layer = layers.source(plan, tree.repository, candidate.base_commit, candidate.repo, services)
    if layer.image is None:
        return _refused(layer, Reason.INSTALL_FAILED)
    image = layer.image
    doubted = any(evidence.path == AGENT for evidence in plan.evidence)
    result = accept(plan, tree, candidate, image.name, services, doubted=doubted)
    return Built(plan=plan, image=image, accepted=result) if isinstance(result, Accepted) else result


def _refused(layer: layers.Layer, reason: Reason) -> Refused:
    """Why a layer could not be made."""
    log = layer.ran.output if layer.ran else ""
    killed = layer.ran.killed_by if layer.ran else None
    detail = f"stopped: {killed}; {best_line(log)}" if killed else best_line(log)
    return Refused(reason=reason, detail=detail, log=log)
