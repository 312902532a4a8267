"""Certify tasks with their own image and oracle: reward 1 for gold in every grading, 0 for an empty submission.

The gradings are made when the lists of tests and the controls are frozen, each in fresh containers. No run from which
the lists were chosen counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from backends.services import Services
from taskdb.lineage import Lineage
from taskdb.records import Certificate, Rejection, Stage, Task
from verifiers.rewards import grade, select_reward

GOLD_RUNS = 3


class Reason(StrEnum):
    """Reason a task was not certified."""

    GOLD_FAILS = "gold-fails"
    NOOP_PASSES = "noop-passes"
    NO_IMAGE = "no-image"
    NOT_SCORED = "not-scored"
    SIMULATED = "simulated"
    """No test was run; a model simulated the results."""


@dataclass(frozen=True)
class _CertificationScores:
    gold: tuple[float, ...]
    noop: float


def certify(lineage: Lineage, services: Services) -> Certificate | Rejection:
    """Certify a task.

    Args:
        lineage: the task.
        services: sandbox, artifacts and settings.

    Raises:
        Transient: the engine failed.
    """
    started = time.perf_counter()
    task, digest = lineage.require_task(), ""
    if task.environment == "simulated":
        return _reject(task, Reason.SIMULATED, "its test results were simulated by a model", started)
    if task.image:
        image = services.images.inspect(task.image)
        if image is None:
            return _reject(task, Reason.NO_IMAGE, f"image {task.image} does not exist", started)
        digest = image.digest
    proof = _collect_scores(task, services)
    if isinstance(proof, str):
        return _reject(task, Reason.NOT_SCORED, proof, started)
    if min(proof.gold) < 1.0:
        return _reject(task, Reason.GOLD_FAILS, f"the gold submission scored {list(proof.gold)}", started)
    if proof.noop > 0.0:
        return _reject(task, Reason.NOOP_PASSES, f"an empty submission scored {proof.noop}", started)
    return Certificate(
        parent=task.id,
        name=task.name,
        gold=proof.gold,
        noop=proof.noop,
        image_digest=digest,
        seconds=time.perf_counter() - started,
    )


def _collect_scores(task: Task, services: Services) -> _CertificationScores | str:
    """Return the scores of fresh gradings, or the reason one has no score; the first that decides is the last."""
    submissions = [select_reward(task).make_gold(task, services)] * GOLD_RUNS + [b""]
    values = []
    for submission in submissions:
        scored = grade(task, services, submission)
        if scored.value is None:
            return scored.infrastructure_error or f"no score from {task.image}"
        values.append(scored.value)
        if submission and scored.value < 1.0:
            return _CertificationScores(tuple(values), 0.0)
    return _CertificationScores(tuple(values[:-1]), values[-1])


def _reject(task: Task, reason: Reason, detail: str, started: float) -> Rejection:
    return Rejection(
        parent=task.id,
        name=task.name,
        source=task.source,
        stage=Stage.CERTIFY,
        reason=reason,
        detail=detail,
        seconds=time.perf_counter() - started,
    )
