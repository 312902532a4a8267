"""Runs that take many times as long as an earlier run of the same tests. No container is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from backends.sandbox.base import ContainerPool
from backends.sandbox.execution import ExecResult
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.runner.time_limit import TimeLimit, limit_grading, limit_repeat


@dataclass
class TimedPool:
    """A pool whose command never ends by itself. `general`: its own limit in seconds."""

    general: float = 600.0
    limits: list[float | None] = field(default_factory=list)

    def run(self, command: Sequence[str], *, seconds: float | None = None, **_: object) -> ExecResult:
        self.limits.append(seconds)
        ended = min(self.general, seconds or self.general)
        return ExecResult(exit_code=137, output="", files={}, seconds=ended + 0.01, killed_by="time")


def run_endless(limit: TimeLimit | None, general: float = 600.0) -> tuple[EvaluationResult, TimedPool]:
    pool = TimedPool(general)
    return run_tests(cast(ContainerPool, pool), "true", time_limit=limit), pool


@pytest.mark.parametrize(
    ("expected", "repeat", "grading"), [(0.4, 120, 300), (11.9, 120, 300), (20.0, 200, 300), (45.0, 450, 450)]
)
def test_a_limit_is_ten_times_an_earlier_run_and_never_short(expected: float, repeat: float, grading: float) -> None:
    limits = [limit_repeat(expected), limit_grading(expected)]
    assert [limit and limit.seconds for limit in limits] == [repeat, grading]


def test_without_an_earlier_run_the_general_limit_holds() -> None:
    assert limit_repeat(0.0) is limit_grading(0.0) is None
    result, pool = run_endless(None)
    assert pool.limits == [None]
    assert not result.hangs
    assert result.failure_detail == "the tests were ended for time"


def test_a_run_that_hangs_is_ended_and_described_by_the_earlier_run() -> None:
    result, pool = run_endless(limit_repeat(3.04))
    assert pool.limits == [120.0]
    assert result.hangs
    assert result.failure_detail == "the tests hang: they were ended after 120 s, an earlier run took 3.0 s"


def test_a_run_that_the_general_limit_ends_does_not_count_as_hanging() -> None:
    result, _ = run_endless(limit_repeat(70.0))
    assert (result.time_limit and result.time_limit.seconds, result.hangs) == (700.0, False)
    assert result.failure_detail == "the tests were ended for time"
