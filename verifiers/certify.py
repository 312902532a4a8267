"""Proof that a task holds, from its own image and script: gold is worth 1 in every run, doing nothing 0.

A verification run that differs from a certification run in nothing but the list read afterwards (same image digest,
same script) counts as one, so a task whose bundle is what was verified costs no run more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from backends.services import Services
from backends.testing.outcomes import Report
from taskdb.lineage import Lineage
from taskdb.records import Certificate, Rejection, RunKind, Stage, Task, TestRun, Verification
from verifiers.grade import grade, pass_rate

GOLD_RUNS = 3


class Reason(StrEnum):
    """Why a task got no certificate."""

    GOLD_FAILS = "gold-fails"
    NOOP_PASSES = "noop-passes"
    NO_IMAGE = "no-image"
    NOT_SCORED = "not-scored"


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
    task = lineage.the_task
    image = services.sandbox.image(task.image)
    if image is None:
        return _rejection(task, Reason.NO_IMAGE, f"there is no image {task.image}", started)
    proof = _prove(task, lineage.the_verification, services, image.digest)
    if isinstance(proof, str):
        return _rejection(task, Reason.NOT_SCORED, proof, started)
    if min(proof.gold) < 1.0:
        return _rejection(task, Reason.GOLD_FAILS, f"the gold patch scored {list(proof.gold)}", started)
    if proof.noop > 0.0:
        return _rejection(task, Reason.NOOP_PASSES, "an empty patch passes", started)
    return Certificate(
        parent=task.id, name=task.name, gold=proof.gold, noop=proof.noop, image_digest=image.digest,
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _prove(task: Task, verification: Verification, services: Services, digest: str) -> _Proof | str:
    """Scores of the runs that count and of those still needed; or why one has no score."""
    same = [run for run in verification.runs if run.script == task.eval_script and run.image_digest == digest]
    counted = [run for run in same if run.kind is RunKind.SOLVED and run.killed_by is None]
    twins_ran = not task.twins or any(run.kind is RunKind.TWIN for run in same)
    gold = [_worth(task, run, services) for run in counted if twins_ran][:GOLD_RUNS]
    noop = [_worth(task, run, services) for run in same if run.kind is RunKind.TESTED][:1]
    patch = services.artifacts.get(task.gold_patch)
    while len(gold) < GOLD_RUNS or not noop:
        submission, scores = (patch, gold) if len(gold) < GOLD_RUNS else (b"", noop)
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
