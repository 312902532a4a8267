"""Reward of a submission to a simulated task: a model predicts the test results. The score is marked as an estimate."""

from __future__ import annotations

from collections.abc import Iterable

from backends.git import GitError, list_patch_paths
from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport
from evaluation.simulation.simulated_run import SimulationError, build_simulation_input, simulate_run
from taskdb.records import Score, Task, TestId

EXPLANATION = "test results simulated by a model, nothing was run"


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """Return the score from the model's prediction; `value` is None without a model or a usable answer.

    Raises:
        Transient: the endpoint failed.
    """
    f2p = [test for test, _ in task.FAIL_TO_PASS]
    try:
        report = predict_report(task, services, submission)
    except (SimulationError, GitError) as error:
        message = str(error)
        return Score(
            task=task.name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=message
        )
    f2p_rate, p2p_rate = pass_rate(f2p, report), pass_rate(task.PASS_TO_PASS, report)
    resolved = f2p_rate == p2p_rate == 1.0
    return Score(
        task=task.name,
        value=1.0 if resolved else 0.0,
        resolved=resolved,
        f2p_rate=f2p_rate,
        p2p_rate=p2p_rate,
        explanation=EXPLANATION,
    )


def predict_report(task: Task, services: Services, submission: bytes, *, sample: int = 1) -> EvaluationReport:
    """Return the report that the model predicts for a submission to a task; it may have an environment, too.

    Raises:
        SimulationError, GitError: there is no model or usable answer, or a patch does not apply.
        Transient: the endpoint failed.
    """
    get = services.artifacts.get
    simulation_input = build_simulation_input(
        services.clones.open_tree(task.source, task.repo, task.base_commit),
        task.base_commit,
        language=task.language,
        test_patch=get(task.test_patch),
        patch=submission,
        files=list_patch_paths(get(task.gold_patch)),
        test_files={test.partition("::")[0] for test in (*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS)},
    )
    return simulate_run(simulation_input, services, sample=sample)


def pass_rate(tests: Iterable[TestId], report: EvaluationReport) -> float:
    """Return the share of tests that passed, 0..1; 1 if there are none."""
    listed = list(tests)
    return sum(report.has_passed(test) for test in listed) / len(listed) if listed else 1.0
