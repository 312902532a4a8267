"""Certify tasks with their own image and oracle: reward 1 for gold in every run, 0 for an empty submission.

For tasks graded by test lists, a verification run with the same image digest and script counts as a certification run:
only the list read afterwards differs. Such a task costs no further run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport
from taskdb.lineage import Lineage
from taskdb.records import Certificate, Rejection, RunVariant, Stage, Task, TestRun, Verification
from verifiers.grade import pass_rate
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
        lineage: the task and the verification it was derived from.
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
    proof = _collect_scores(task, _find_reusable_runs(task, lineage.verification, digest), services)
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


def _find_reusable_runs(task: Task, verification: Verification | None, digest: str) -> list[TestRun]:
    """Return verification runs with the task's image digest and script."""
    if verification is None or task.oracle is not None:
        return []
    return [run for run in verification.runs if run.script == task.eval_script and run.image_digest == digest]


def _collect_scores(task: Task, reusable: Sequence[TestRun], services: Services) -> _CertificationScores | str:
    """Return the scores of reusable and further runs, or the reason a run has no score."""
    gold_runs = [run for run in reusable if run.variant is RunVariant.GOLD and run.killed_by is None]
    controls_ran = not task.controls or any(run.variant is RunVariant.CONTROL for run in reusable)
    gold = [_score_run(task, run, services) for run in gold_runs if controls_ran][:GOLD_RUNS]
    noop = [_score_run(task, run, services) for run in reusable if run.variant is RunVariant.TEST_ONLY][:1]
    gold_submission = select_reward(task).make_gold(task, services)
    while len(gold) < GOLD_RUNS or not noop:
        submission, scores = (gold_submission, gold) if len(gold) < GOLD_RUNS else (b"", noop)
        scored = grade(task, services, submission)
        if scored.value is None:
            return scored.infrastructure_error or f"no score from {task.image}"
        scores.append(scored.value)
    return _CertificationScores(tuple(gold), noop[0])


def _score_run(task: Task, run: TestRun, services: Services) -> float:
    """Return the score that `grade` gives a recorded run."""
    report = EvaluationReport.from_bytes(services.artifacts.get(run.report))
    f2p = pass_rate([test for test, _ in task.FAIL_TO_PASS], report)
    return 1.0 if f2p == pass_rate(task.PASS_TO_PASS, report) == 1.0 else 0.0


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
