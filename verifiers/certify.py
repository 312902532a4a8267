"""Proof that a task holds, from its own image and oracle: gold is worth 1 in every run, doing nothing 0.

Where the lists of tests are the oracle, a verification run that differs from a certification run in nothing but the
list read afterwards (same image digest, same script) counts as one, so a task whose bundle is what was verified costs
no run more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from backends.services import Services
from backends.testing.outcomes import Report
from taskdb.lineage import Lineage
from taskdb.records import Certificate, Rejection, RunKind, Stage, Task, TestRun, Verification
from verifiers.grade import pass_rate
from verifiers.rewards import grade, reward_of

GOLD_RUNS = 3


class Reason(StrEnum):
    """Why a task got no certificate."""

    GOLD_FAILS = "gold-fails"
    NOOP_PASSES = "noop-passes"
    NO_IMAGE = "no-image"
    NOT_SCORED = "not-scored"
    SIMULATED = "simulated"
    """No test was ever run; a model played them."""


@dataclass(frozen=True)
class _Proof:
    gold: tuple[float, ...]
    noop: float


def certify(lineage: Lineage, services: Services) -> Certificate | Rejection:
    """The certificate of a task.

    Args:
        lineage: task and the verification it was derived from.
        services: sandbox, artifacts and settings.

    Raises:
        Transient: the engine failed.
    """
    started = time.perf_counter()
    task, digest = lineage.the_task, ""
    if task.environment == "simulated":
        return _rejection(task, Reason.SIMULATED, "a model played its tests", started)
    if task.image:
        image = services.sandbox.image(task.image)
        if image is None:
            return _rejection(task, Reason.NO_IMAGE, f"there is no image {task.image}", started)
        digest = image.digest
    proof = _prove(task, _seen(task, lineage.verification, digest), services)
    if isinstance(proof, str):
        return _rejection(task, Reason.NOT_SCORED, proof, started)
    if min(proof.gold) < 1.0:
        return _rejection(task, Reason.GOLD_FAILS, f"the gold submission scored {list(proof.gold)}", started)
    if proof.noop > 0.0:
        return _rejection(task, Reason.NOOP_PASSES, f"an empty submission scored {proof.noop}", started)
    return Certificate(
        parent=task.id, name=task.name, gold=proof.gold, noop=proof.noop, image_digest=digest,
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _seen(task: Task, verification: Verification | None, digest: str) -> list[TestRun]:
    """Runs of the verification that differ from a certification run in nothing but the list read afterwards."""
    if verification is None or task.oracle is not None:
        return []
    return [run for run in verification.runs if run.script == task.eval_script and run.image_digest == digest]


def _prove(task: Task, same: Sequence[TestRun], services: Services) -> _Proof | str:
    """Scores of the runs that count and of those still needed; or why one has no score."""
    counted = [run for run in same if run.kind is RunKind.SOLVED and run.killed_by is None]
    twins_ran = not task.twins or any(run.kind is RunKind.TWIN for run in same)
    gold = [_worth(task, run, services) for run in counted if twins_ran][:GOLD_RUNS]
    noop = [_worth(task, run, services) for run in same if run.kind is RunKind.TESTED][:1]
    best = reward_of(task).gold(task, services)
    while len(gold) < GOLD_RUNS or not noop:
        submission, scores = (best, gold) if len(gold) < GOLD_RUNS else (b"", noop)
        scored = grade(task, services, submission)
        if scored.value is None:
            return scored.infrastructure_error or f"no score from {task.image}"
        scores.append(scored.value)
    return _Proof(tuple(gold), noop[0])


def _worth(task: Task, run: TestRun, services: Services) -> float:
    """What `grade` would have said of a run that was seen."""
    report = Report.from_bytes(services.artifacts.get(run.report))
    f2p = pass_rate([test for test, _ in task.FAIL_TO_PASS], report)
    return 1.0 if f2p == pass_rate(task.PASS_TO_PASS, report) == 1.0 else 0.0


def _rejection(task: Task, reason: Reason, detail: str, started: float) -> Rejection:
    return Rejection(
        parent=task.id, name=task.name, source=task.source, stage=Stage.CERTIFY, reason=reason, detail=detail,
        seconds=time.perf_counter() - started,
    )  # fmt: skip
