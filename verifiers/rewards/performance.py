"""What a faster solution is worth: the tests hold, and the work takes less time by more than chance and by enough.

Time is taken from outside, by the kernel's account of everything in the box: a submission that alters clocks, sleeps
less in its own eyes or moves work to another process has the same time. One that leaves work out fails the tests, which
are the work.
"""

from __future__ import annotations

from collections.abc import Sequence

from backends.services import Services
from backends.testing.timing import ALPHA, RUNS, p_value, ratio
from backends.testing.workload import Sample, interleaved
from taskdb.oracles import Performance
from taskdb.records import Score, Task
from verifiers.grade import grade as grade_tests


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """The score of a patch; empty is the no-op, which is not timed: it is the base tree.

    `parts`: `ratio` (seconds before by seconds after, medians), `expert_ratio` (the change's own, when the task was
    made), `p` (of such an order of times by chance).

    Raises:
        Transient: engine, disk or network failed.
    """
    oracle = task.oracle
    if not isinstance(oracle, Performance):
        raise TypeError(f"{task.name} is no performance task")
    parts = {"ratio": 1.0, "expert_ratio": oracle.ratio, "p": 1.0}
    if not submission.strip():
        return Score(
            task=task.name, value=0.0, resolved=False, f2p_rate=0.0, p2p_rate=1.0, parts=parts,
            explanation="nothing is changed, so nothing is faster",
        )  # fmt: skip
    held = grade_tests(task, services, submission)
    if not held.resolved:
        return held.model_copy(update={"parts": {"expert_ratio": oracle.ratio}} if held.value is not None else {})
    with services.sandbox.series(task.image, limits=services.test_limits()) as boxes:
        taken = interleaved(
            boxes, services.artifacts.text(oracle.workload), oracle.tests, (b"", submission),
            workdir=task.the_plan.workdir, runs=RUNS,
        )  # fmt: skip
    return _judged(held, oracle, taken)


def _judged(held: Score, oracle: Performance, taken: Sequence[Sequence[Sample]] | Sample) -> Score:
    """The score of a submission whose tests hold, by the times of both trees."""
    if isinstance(taken, Sample) and taken.fault:
        return held.model_copy(update={"value": None, "resolved": False, "infrastructure_error": taken.fault})
    if isinstance(taken, Sample):
        return held.model_copy(update={"value": 0.0, "resolved": False, "explanation": taken.wrong})
    before, after = ([one.seconds(oracle.clock) for one in series] for series in taken)
    seen, p = ratio(before, after), p_value(before, after)
    resolved = p < ALPHA and seen >= oracle.threshold
    why = (
        f"{seen:.2f} times as fast (p = {p:.3g}); {oracle.threshold:.2f} is asked for, {oracle.ratio:.2f} is the gold's"
    )
    return held.model_copy(
        update={
            "value": 1.0 if resolved else 0.0, "resolved": resolved, "explanation": why,
            "parts": {"ratio": round(seen, 3), "expert_ratio": oracle.ratio, "p": p},
        }
    )  # fmt: skip
