"""Reward of a faster solution: the tests pass, and the workload's speed-up is significant and large enough.

Time is measured by the kernel's accounting for the whole container. Changing clocks or moving work to another process
does not affect it, and a solution that skips work fails the tests, which are the workload.
"""

from __future__ import annotations

from collections.abc import Sequence

from backends.services import Services
from evaluation.performance.workload import WorkloadSample, measure_interleaved
from guest.scoring.timing import RUNS_PER_TREE, is_faster
from taskdb.records import Score, Task
from taskdb.records.oracles import PerformanceOracle
from verifiers.grade import grade as grade_tests


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """Return the score of a patch; the no-op is the base tree and is not timed.

    `parts`: `ratio` (median seconds before / after), `expert_ratio` (the gold patch's, measured when the task was
    made), `p` (p-value of the order of the times).

    Raises:
        Transient: engine, disk or network failed.
    """
    oracle = task.oracle
    if not isinstance(oracle, PerformanceOracle):
        raise TypeError(f"{task.name} is no performance task")
    parts = {"ratio": 1.0, "expert_ratio": oracle.ratio, "p": 1.0}
    if not submission.strip():
        return Score(
            task=task.name,
            value=0.0,
            resolved=False,
            f2p_rate=0.0,
            p2p_rate=1.0,
            parts=parts,
            explanation="the patch is empty, so nothing is faster",
        )
    tests_score = grade_tests(task, services, submission)
    if not tests_score.resolved:
        return tests_score.model_copy(
            update={"parts": {"expert_ratio": oracle.ratio}} if tests_score.value is not None else {}
        )
    with services.sandbox.open_pool(task.image, limits=services.test_limits(task.language)) as pool:
        timings = measure_interleaved(
            pool,
            services.artifacts.get_text(oracle.workload),
            oracle.tests,
            (b"", submission),
            workdir=task.require_plan().workdir,
            runs=RUNS_PER_TREE,
        )
    return _score_times(tests_score, oracle, timings)


def _score_times(
    tests_score: Score, oracle: PerformanceOracle, timings: Sequence[Sequence[WorkloadSample]] | WorkloadSample
) -> Score:
    """Return the score of a submission that passes its tests, from the times of both trees."""
    if isinstance(timings, WorkloadSample) and timings.infrastructure_error:
        return tests_score.model_copy(
            update={"value": None, "resolved": False, "infrastructure_error": timings.infrastructure_error}
        )
    if isinstance(timings, WorkloadSample):
        return tests_score.model_copy(update={"value": 0.0, "resolved": False, "explanation": timings.invalid_reason})
    before, after = ([sample.get_seconds(oracle.clock) for sample in samples] for samples in timings)
    resolved, speedup, p = is_faster(before, after, oracle.threshold)
    explanation = (
        f"{speedup:.2f} times as fast (p = {p:.3g}); required {oracle.threshold:.2f}, gold patch {oracle.ratio:.2f}"
    )
    return tests_score.model_copy(
        update={
            "value": 1.0 if resolved else 0.0,
            "resolved": resolved,
            "explanation": explanation,
            "parts": {"ratio": round(speedup, 3), "expert_ratio": oracle.ratio, "p": p},
        }
    )
