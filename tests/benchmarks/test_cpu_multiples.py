"""The benchmark of CPU seconds of a certified task, as a multiple of two runs."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import cpu_multiples
from benchmarks.cpu_multiples import ChangeCost, CostMeasurement, list_misses, render_table
from evaluation.runner.evaluator import Evaluator
from taskdb.records import RunVariant


def make_cost(language: str, stages: float, *, tasks: int = 1, pairs: float = 2.0) -> ChangeCost:
    return ChangeCost(language=language, name=f"{language}-{stages:g}", tasks=tasks, stages=stages, pairs=pairs)


def test_rows_are_medians_of_changes_with_a_certified_task() -> None:
    costs = [
        make_cost("python", 8.0),
        make_cost("python", 40.0, tasks=2, pairs=4.0),
        make_cost("python", 12.0),
        make_cost("go", 6.0),
        make_cost("go", 30.0, tasks=0, pairs=0.0),
    ]
    lines = render_table(costs, 100.0).splitlines()
    assert lines[2:4] == ["| go | 1 | 1 | 2.0 | 6.0 | 3.0 | 3.0 |", "| python | 3 | 4 | 2.0 | 15.0 | 6.0 | 10.0 |"]
    assert "building 5 environments took 100 CPU s" in lines[-2]
    assert lines[-1] == "1 changes gave no certified task and took 30 CPU s."


def test_a_language_misses_the_goal_by_its_median() -> None:
    costs = [make_cost("go", 100.0), make_cost("go", 2.0), make_cost("go", 3.0), make_cost("python", 14.2)]
    assert [line.partition(":")[0] for line in list_misses(costs)] == ["python"]
    assert not list_misses([make_cost("python", 14.0)])


def test_a_change_has_the_seconds_of_its_stages_and_of_two_runs_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    used, commands = [0.0], []

    def run_command(arguments: list[str]) -> int:
        commands.append(arguments)
        used[0] += 5.0
        return 0

    monkeypatch.setattr(cpu_multiples, "run_command_line", run_command)
    monkeypatch.setattr(cpu_multiples, "SETTLING_SECONDS", 0.0)
    monkeypatch.setattr(cpu_multiples, "run_pair", lambda *_: used.__setitem__(0, used[0] + 1.5))
    monkeypatch.setattr(CostMeasurement, "_load_certified", lambda *_: ["task", "another task"])
    measurement = CostMeasurement(db="sqlite:///m.db", kinds="bugfix", read_cpu_seconds=lambda: used[0])
    candidate: Any = SimpleNamespace(name="ada__till-1", language="python")
    services: Any = None
    cost = measurement.measure(candidate, services)
    assert (cost.stages, cost.pairs, cost.tasks) == (20.0, 3.0, 2)
    assert [command[1] for command in commands] == ["verify", "judge", "derive", "certify"]
    assert all(command[2:4] == ["--only", "ada__till-1"] and "bugfix" in command for command in commands)
    monkeypatch.setattr(cpu_multiples, "run_command_line", lambda _: 75)
    with pytest.raises(SystemExit, match="75"):
        measurement.measure(candidate, services)


def test_a_pair_is_a_run_without_the_gold_patch_and_one_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    monkeypatch.setattr(
        Evaluator, "run", lambda _, variant, **options: runs.append((variant, options.get("patch", b"")))
    )
    contents = {"script": b"true\n", "gold": b"diff\n"}
    sandbox = SimpleNamespace(open_pool=lambda *_, **__: nullcontext())
    services: Any = SimpleNamespace(
        artifacts=SimpleNamespace(get=contents.__getitem__, get_text=lambda key: contents[key].decode()),
        sandbox=sandbox,
        test_limits=lambda *_, **__: None,
    )
    plan = SimpleNamespace(workdir="/testbed")
    task: Any = SimpleNamespace(
        language="python",
        require_plan=lambda: plan,
        image="image",
        image_digest="sha256:1",
        require_script=lambda: "script",
        gold_patch="gold",
    )
    cpu_multiples.run_pair(task, services)
    assert runs == [(RunVariant.TEST_ONLY, b""), (RunVariant.GOLD, b"diff\n")]
