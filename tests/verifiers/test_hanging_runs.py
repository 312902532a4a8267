"""Verification of changes whose tests hang without the gold patch. No container is needed."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backends.sandbox.base import ContainerPool
from backends.sandbox.execution import ExecResult
from backends.services import Services
from core.config import Settings
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from evaluation.runner.run import EvaluationResult
from evaluation.runner.time_limit import TimeLimit
from taskdb.records import RunVariant
from taskdb.records.lineage import ChangeTests
from tests import records
from verifiers.verify import CandidateVerifier, Reason


def make_run(seconds: float, killed_by: str | None, time_limit: TimeLimit | None) -> EvaluationRun:
    result = EvaluationResult(
        exec_result=ExecResult(exit_code=0, output="", files={}, seconds=seconds, killed_by=killed_by),
        report=None,
        test_seconds=0.0,
        script_sha256="",
        log="",
        is_applied=True,
        canary_status="none",
        time_limit=time_limit,
    )
    return EvaluationRun(record=records.make_test_run(seconds=seconds), result=result)


@pytest.mark.parametrize("variant", [RunVariant.TEST_ONLY, RunVariant.GOLD])
def test_a_run_of_many_times_the_longest_gold_run_is_rejected_as_hanging(
    variant: RunVariant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, time_limit: TimeLimit | None, **__: object) -> EvaluationRun:
        assert time_limit is not None
        return make_run(time_limit.seconds + 0.1, "time", time_limit)

    candidate = records.make_candidate(records.make_pull_request(1))
    verifier = CandidateVerifier(
        candidate=candidate,
        tests=cast(ChangeTests, None),
        environment=records.make_environment(candidate),
        services=cast(Services, SimpleNamespace(settings=Settings())),
        pool=cast(ContainerPool, None),
        started=time.perf_counter(),
    )
    monkeypatch.setattr(CandidateVerifier, "gold_patch", b"")
    verifier.evaluator = cast(Evaluator, SimpleNamespace(run=run))
    verifier.gold_runs = [make_run(seconds, None, None) for seconds in (12.0, 20.0)]
    failure: Any = verifier._add_run(variant, 0)
    assert failure.reason is Reason.HANGS
    where = f"in the {variant.value} run"
    assert failure.detail == f"the tests hang: they were ended after 200 s, an earlier run took 20.0 s, {where}"
