"""The benchmark of what a further task of an environment costs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks import further_tasks
from benchmarks.further_tasks import KindCost, Meters, StageCost, count_runs, render_table
from benchmarks.isolated_engine import ControlGroup
from benchmarks.run_meter import RunMeter
from evaluation.runner.evaluator import Evaluator
from taskdb.records import RunVariant


def make_stage(*, cpu: float = 40.0, control: int = 8, other: int = 12) -> StageCost:
    return StageCost(cpu_seconds=cpu, test_cpu_seconds=10.0, wall_seconds=60.0, control_runs=control, other_runs=other)


def make_cost(derive: StageCost) -> KindCost:
    certify = make_stage(cpu=60.0, control=0, other=16)
    return KindCost(kind="injected", tasks=4, certified=3, derive=derive, certify=certify)


def test_costs_are_per_further_task() -> None:
    assert render_table([make_cost(make_stage())]).splitlines()[2:] == [
        "| injected | 4 | 3 | derive | 2.00 | 3.00 | 10.0 | 2.5 | 15.0 |",
        "| injected | 4 | 3 | certify | 0.00 | 4.00 | 15.0 | 2.5 | 15.0 |",
        "| injected | | | beyond the tests | | | 20.0 | | |",
    ]


@pytest.mark.parametrize(
    ("derive", "words"),
    [
        (make_stage(), []),
        (make_stage(control=9), ["2.25 runs for controls"]),
        (make_stage(other=13), ["3.25 other runs"]),
        (make_stage(cpu=41.0), ["20.2 CPU s beyond"]),
    ],
    ids=["within", "controls", "others", "cpu"],
)
def test_each_goal_can_be_missed(derive: StageCost, words: list[str]) -> None:
    misses = make_cost(derive).list_misses()
    assert len(misses) == len(words)
    assert all(word in line for word, line in zip(words, misses, strict=True))


def test_a_stage_has_the_runs_and_seconds_that_are_made_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = tmp_path / "cpuacct" / "group" / "cpuacct.usage"
    usage.parent.mkdir(parents=True)
    usage.write_text("1000000000\n")
    monkeypatch.setattr(Evaluator, "run", lambda *_, **__: None)
    evaluator: Any = SimpleNamespace()
    costs: list[StageCost] = []
    with count_runs() as runs:
        meters = Meters(group=ControlGroup("group", tmp_path), tests=RunMeter(), runs=runs)
        Evaluator.run(evaluator, RunVariant.GOLD)
        with meters.measure(costs):
            for variant in (RunVariant.CONTROL, RunVariant.GOLD, RunVariant.TEST_ONLY, RunVariant.CONTROL):
                Evaluator.run(evaluator, variant)
            meters.tests.add({"/report/cpu": b"500000000"})
            usage.write_text("3500000000\n")
    (cost,) = costs
    assert (cost.control_runs, cost.other_runs) == (2, 2)
    assert (cost.cpu_seconds, cost.test_cpu_seconds) == (2.5, 0.5)


def test_no_further_task_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(further_tasks, "run_command_line", lambda _: 0)
    monkeypatch.setattr(further_tasks, "_list_ids", lambda *_: set())
    group = SimpleNamespace(read_cpu_seconds=lambda: 0.0)
    with count_runs() as runs:
        meters = Meters(group=cast(ControlGroup, group), tests=RunMeter(), runs=runs)
        with pytest.raises(SystemExit, match="no further task of the kind rebuild"):
            further_tasks.measure_kind("rebuild", ["git:greet"], "sqlite://", meters, first=1, number=2)
    monkeypatch.setattr(further_tasks, "run_command_line", lambda _: 3)
    with pytest.raises(SystemExit, match="3"):
        further_tasks.measure_kind("rebuild", ["git:greet"], "sqlite://", meters, first=1, number=2)
