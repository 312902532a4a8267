"""Which evaluations a grading makes, and for which of them a container is prepared."""

from __future__ import annotations

import sys
from typing import cast

import pytest

from backends.sandbox.execution import ExecResult
from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from evaluation.runner.run import EvaluationResult
from evaluation.runner.time_limit import TimeLimit
from guest.controls import blind
from taskdb.records import FailureKind, Task
from tests import records
from verifiers.conditions import Conditions
from verifiers.grade import grade_patch

TEST = "tests/test_a.py::test_a"


class FakeEvaluator:
    """An evaluator whose runs all give the test one outcome; it records whether each run was announced as the last."""

    def __init__(self, status: OutcomeStatus) -> None:
        self.status = status
        self.last: list[bool] = []
        self.limits: list[TimeLimit | None] = []

    def run(self, *_: object, last: bool, time_limit: TimeLimit | None, **__: object) -> EvaluationRun:
        self.last.append(last)
        self.limits.append(time_limit)
        result = EvaluationResult(
            exec_result=ExecResult(exit_code=1, output="", files={}, seconds=0.0, killed_by=None),
            report=EvaluationReport(outcomes={TEST: Outcome(status=self.status)}, uncollected={}),
            test_seconds=0.0,
            script_sha256="",
            log="",
            is_applied=True,
            canary_status="none",
        )
        return EvaluationRun(record=records.make_test_run(), result=result)


def make_task(**fields: object) -> Task:
    candidate = records.make_candidate(records.make_pull_request(1))
    verification = records.make_verification(records.make_environment(candidate))
    listed = {"FAIL_TO_PASS": ((TEST, FailureKind.ASSERTION),), "PASS_TO_PASS": ()}
    return records.make_task(verification, candidate, **{**listed, **fields})


@pytest.mark.parametrize(
    ("status", "need_rates", "last"),
    [
        (OutcomeStatus.FAILED, False, [True]),
        (OutcomeStatus.PASSED, False, [True, True, True]),
        (OutcomeStatus.PASSED, True, [False, False, True]),
    ],
    ids=["as expected", "unexpected", "all needed"],
)
def test_no_container_is_prepared_for_an_evaluation_that_is_not_expected(
    monkeypatch: pytest.MonkeyPatch, status: OutcomeStatus, need_rates: bool, last: list[bool]
) -> None:
    task = make_task()
    drawn = [blind.Evaluation({}, {TEST: blind.PASSES}) for _ in range(3)]
    monkeypatch.setattr(sys.modules[grade_patch.__module__], "draw_task_evaluations", lambda *_, **__: drawn)
    evaluator = FakeEvaluator(status)
    score = grade_patch(task, cast(Services, None), cast(Evaluator, evaluator), b"patch", need_rates=need_rates)
    assert evaluator.last == last
    assert score.value == float(status is OutcomeStatus.PASSED)


def test_a_grading_may_take_ten_times_the_gold_run_and_longer_with_fewer_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [blind.Evaluation({}, {TEST: blind.PASSES})]
    monkeypatch.setattr(sys.modules[grade_patch.__module__], "draw_task_evaluations", lambda *_, **__: drawn)
    task, evaluator = make_task(test_seconds=40.0), FakeEvaluator(OutcomeStatus.PASSED)
    for share in (1.0, 0.5):
        conditions = Conditions(cpu_share=share)
        grade_patch(task, cast(Services, None), cast(Evaluator, evaluator), b"patch", conditions)
    assert [limit and limit.seconds for limit in evaluator.limits] == [400.0, 800.0]
