"""The benchmark of what a certified task costs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.cost import STAGES, PhaseCost, Usage, parse_cpu_seconds, render_table, run_phase, sum_test_seconds
from taskdb.chains import StageResult
from taskdb.records import Stage
from taskdb.store import Store
from tests import records
from tests.sample import make_sample
from tests.taskdb.chains import add_chain, make_url

STAT = "cpu  1000 20 300 99999 77 5 6 7 800 9\ncpu0 1 2 3 4 5 6 7 8 9 10\nctxt 5\n"


def make_phase(cpu: float, wall: float) -> PhaseCost:
    stages = {"mine": Usage(1, 1, 0), "verify": Usage(cpu - 1, wall - 1, 2e9)}
    return PhaseCost("warm", stages, tasks=2, test_seconds=40)


def test_time_of_all_cores_counts_without_waiting_and_guests_once() -> None:
    assert parse_cpu_seconds(STAT) == (1000 + 20 + 300 + 5 + 6) / os.sysconf("SC_CLK_TCK")


def test_costs_are_per_task_and_decide_by_either_goal() -> None:
    cheap = make_phase(cpu=160, wall=100)
    assert cheap.cpu_beyond_tests == 60
    assert not cheap.misses_goal(0.04, 2)
    assert make_phase(cpu=162, wall=100).misses_goal(0.04, 2)
    assert make_phase(cpu=160, wall=1000).misses_goal(0.04, 2)
    assert render_table([cheap], 0.036, 2).splitlines()[2:] == [
        "| warm | mine | 0.5 | 0.5 | 0.000 | 0.00001 |",
        "| warm | verify | 79.5 | 49.5 | 1.000 | 0.00099 |",
        "| warm | all, 2 tasks | 80.0 | 50.0 | 1.000 | 0.00100 |",
        "| warm | beyond the tests | 60.0 | | | |",
    ]


def test_seconds_inside_of_tests_are_those_of_all_stages(tmp_path: Path) -> None:
    run = records.make_test_run(test_seconds=3.0)
    with Store.open(make_url(tmp_path)) as store:
        task = add_chain(store, to=Stage.DERIVE, runs=(run, run))
        certificate = records.make_certificate(task, evaluations=5)
        store.add_stage_results(
            StageResult(stage=Stage.CERTIFY, result=certificate, source="git:greet", name=task.name, seconds=1.0)
        )
        assert sum_test_seconds(store) == 2 * 1.0 + 2 * 3.0 + 5 * 3.0


@pytest.mark.docker
@pytest.mark.slow
def test_every_stage_of_a_small_repository_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_sample(tmp_path / "ada__greet")
    monkeypatch.chdir(tmp_path)
    phase = run_phase("warm", ["git:ada__greet"], tmp_path / "work")
    assert tuple(phase.stages) == STAGES
    assert phase.tasks == 2
    assert phase.stages["verify"].cpu_seconds > 1
    assert 0 < phase.test_seconds < phase.total.wall_seconds * (os.cpu_count() or 1)
    assert phase.cpu_beyond_tests > 0
