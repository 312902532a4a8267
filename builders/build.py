"""The stage: a candidate's plan is built, tried, and where it fails built anew one rung further down the ladder."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

from backends.git import GitError, Repository
from backends.sandbox.base import ImageInfo
from backends.services import Services
from builders import bases, layers
from builders.accept import Accepted, Reason, Refused, accept, best_line
from builders.ladder import ladder, settled_first
from builders.seed import IncompleteCloneError
from builders.tree import Tree
from languages.draft import Context, Draft, NoPlanError
from languages.registry import language
from taskdb.records import BuildPlan, Candidate, Environment, Rejection, Stage

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Built:
    """A plan whose image stood the acceptance."""

    plan: BuildPlan
    image: ImageInfo
    accepted: Accepted


def build(candidate: Candidate, services: Services) -> Environment | Rejection:
    """An image in which the tests of the candidate's base commit were seen to run, or why there is none.

    Raises:
        Transient: engine, network or disk failed.
        MachineError: this machine cannot make the base image.
    """
    started = time.monotonic()
    clone = services.clones.open(candidate.source, candidate.repo)
    tree = Tree(clone, candidate.base_commit)
    try:
        known = language(candidate.language)
        first = known.draft(tree, Context(
            available=lambda: bases.available(known.NAME, services),
            day=date.fromisoformat(candidate.created_at[:10]),
            version=candidate.version or nearest_tag(clone, candidate.base_commit),
            touched=(*candidate.gold_files, *candidate.test_files),
        ))  # fmt: skip
        first = settled_first(first, bases.moving(known.NAME, services))
        attempt, result = _climb(first, tree, candidate, services, lambda: time.monotonic() - started)
    except NoPlanError as error:
        attempt, result = 0, Refused(reason=Reason.NO_PLAN, detail=str(error), log="")
    except IncompleteCloneError as error:
        attempt, result = 0, Refused(reason=Reason.INCOMPLETE_CLONE, detail=str(error), log="")
    seconds = time.monotonic() - started
    if isinstance(result, Refused):
        return Rejection(
            parent=candidate.id, name=candidate.name, source=candidate.source, stage=Stage.BUILD, reason=result.reason,
            detail=result.detail, log=services.artifacts.put_text(result.log) if result.log else None, seconds=seconds,
        )  # fmt: skip
    accepted = result.accepted
    return Environment(
        parent=candidate.id, name=candidate.name, plan=result.plan, attempt=attempt,
        image=result.image.name, image_digest=result.image.digest, image_bytes=result.image.layer_bytes,
        collected_share=accepted.share, counts=accepted.counts,
        base_report=services.artifacts.put(accepted.stable.to_bytes()), log=services.artifacts.put_text(accepted.log),
        seconds=seconds, test_seconds=accepted.test_seconds,
    )  # fmt: skip


def _climb(
    first: Draft, tree: Tree, candidate: Candidate, services: Services, elapsed: Callable[[], float]
) -> tuple[int, _Built | Refused]:
    """(attempt, result): the first rung that is accepted, else the refusal that came furthest."""
    refusals: list[Refused] = []
    attempt = 0
    for attempt, rung in enumerate(ladder(first), 1):
        if refusals and elapsed() > services.settings.budget_seconds:
            break
        result = _try(language(rung.language).render(rung), tree, candidate, services)
        if isinstance(result, _Built):
            accepted = replace(result.accepted, log=_told(refusals) + result.accepted.log)
            return attempt, replace(result, accepted=accepted)
        log.info("%s: attempt %d refused: %s: %s", candidate.name, attempt, result.reason, result.detail)
        refusals.append(result)
        if result.reason in HOPELESS:
            break
    furthest = max(reversed(refusals), key=lambda refused: list(Reason).index(refused.reason))
    return attempt, replace(furthest, log=_told(refusals))


def _told(refusals: list[Refused]) -> str:
    """The logs of refused attempts, each below a line that says why."""
    return "".join(f"===== attempt {n}: {r.reason}: {r.detail}\n{r.log}\n" for n, r in enumerate(refusals, 1))


HOPELESS = frozenset({Reason.TIMEOUT, Reason.OUT_OF_MEMORY, Reason.DISK_FULL, Reason.UNSTABLE})
"""Refusals that no other choice of versions mends."""


def _try(plan: BuildPlan, tree: Tree, candidate: Candidate, services: Services) -> _Built | Refused:
    """Build the plan's layers and run the tests."""
    layer = layers.dependencies(plan, tree.repository, services)
    if layer.image is None:
        return _refused(layer, Reason.DEPENDENCIES_FAILED)
    layer = layers.source(plan, tree.repository, candidate.base_commit, candidate.repo, services)
    if layer.image is None:
        return _refused(layer, Reason.INSTALL_FAILED)
    image = layer.image
    result = accept(plan, tree, candidate, image.name, services)
    return _Built(plan=plan, image=image, accepted=result) if isinstance(result, Accepted) else result


def _refused(layer: layers.Layer, reason: Reason) -> Refused:
    """Why a layer could not be made."""
    log = layer.ran.output if layer.ran else ""
    killed = layer.ran.killed_by if layer.ran else None
    detail = f"stopped: {killed}; {best_line(log)}" if killed else best_line(log)
    return Refused(reason=reason, detail=detail, log=log)


def nearest_tag(clone: Repository, commit: str) -> str:
    """The nearest tag that `commit` descends from, empty when there is none."""
    try:
        return clone.git("describe", "--tags", "--abbrev=0", commit).decode(errors="replace").strip()
    except GitError:
        return ""
