"""`mergemill trajectories compare`: win rates of agents on the same tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import InputError
from mergemill.agents.agent_comparison import AgentComparison, compare_agents
from taskdb.records import Kind
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.bench.making import make_scored, make_set
from tests.mergemill.bench.test_held_out import add_relative
from tests.taskdb.lineages import make_url

STRONG, WEAK = "org/strong/react", "weak@step-9/react"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve tasks and a variant of the first: the strong agent solves all twelve, the weak one every third."""
    folder = tmp_path_factory.mktemp("agents")
    _, tasks = make_set(folder, 12)
    with Store.open(make_url(folder)) as store:
        variant = add_relative(store, tasks[0], "terse", kind=Kind.TERSE, variant_of=tasks[0].name)
        for number, task in enumerate([*tasks, variant]):
            value = None if number == 12 else 1.0
            store.add(make_scored(task, 1, value, model="org/strong"))
            given = {"model": "weak", "checkpoint": "step-9"}
            store.add(make_scored(task, 1, float(number % 3 == 0), **given))
        # An attempt that was made again after a failure counts once, with the value of its newest run.
        store.add(make_scored(tasks[1], 2, None, model="org/strong"))
        store.add(make_scored(tasks[1], 2, 0.5, model="org/strong", retry=1, at="2026-01-02"))
    return folder


def compare(folder: Path, first: str, second: str) -> AgentComparison:
    with Store.open(make_url(folder), create=False) as store:
        return compare_agents(store, (first, second), environments=None, tasks=None)


def test_agents_are_compared_task_by_task(folder: Path) -> None:
    value, resolved = compare(folder, STRONG, WEAK).rows
    assert [(row["measure"], row["first"], row["second"]) for row in (value, resolved)] == [
        ("value", STRONG, WEAK),
        ("resolved", STRONG, WEAK),
    ]
    assert (value["wins"], value["ties"], value["losses"]) == (round(8 / 12, 6), round(4 / 12, 6), 0.0)
    assert (resolved["wins"], resolved["ties"]) == (round(7.5 / 12, 6), round(4.5 / 12, 6))
    assert (value["n"], value["families"], value["incomplete"]) == (12, 12, 1)
    assert value["bounds"] == [round(10 / 13, 6), round(11 / 13, 6)]
    assert value["low"] > 0.5
    assert value["p"] < 0.05
    (backwards, _) = compare(folder, WEAK, STRONG).rows
    assert backwards["rate"] == pytest.approx(1 - value["rate"])


def test_an_agent_is_named_by_a_part_that_only_it_has(folder: Path) -> None:
    assert compare(folder, "org/strong", "weak").rows == compare(folder, STRONG, "weak@step-9").rows
    for word, problem in (("react", "react is ambiguous, 2 match"), ("other", "there is no rollout of other")):
        with pytest.raises(InputError, match=problem):
            compare(folder, STRONG, word)
    with pytest.raises(InputError, match="both names are of org/strong/react"):
        compare(folder, STRONG, "org/strong")


def test_scores_of_several_graders_are_named(tmp_path: Path) -> None:
    _, tasks = make_set(tmp_path, 2)
    with Store.open(make_url(tmp_path)) as store:
        store.add(make_scored(tasks[0], 1, 1.0, model="a"), make_scored(tasks[0], 1, 0.0, model="b", grader="2"))
        store.add(make_scored(tasks[1], 1, 1.0, model="c"))
        store.add(*(make_scored(tasks[0], 1, 0.0, model=model, grader="") for model in ("d", "e")))
    comparison = compare(tmp_path, "a", "b")
    mixed = "mixed-graders: 1 task with scores of several versions of the grader"
    unknown = "unknown-grader: 1 task with scores of an unknown version of it"
    assert comparison.remarks == [mixed]
    assert compare(tmp_path, "a", "d").remarks == [mixed, unknown]
    assert compare(tmp_path, "d", "e").remarks == [unknown]
    with pytest.raises(InputError, match="no task has results of both a/react and c/react"):
        compare(tmp_path, "a", "c")


def test_the_command_prints_a_row_for_each_measure(folder: Path) -> None:
    words = ("trajectories", "compare", STRONG, WEAK, "--db", make_url(folder))
    rows = run_mergemill(*words, "--json", cwd=folder).lines
    assert rows == [dict(row) for row in compare(folder, STRONG, WEAK).rows]
    table = run_mergemill(*words, "--repo", "ada/greet", cwd=folder)
    assert table.stdout.splitlines()[1].split()[:3] == ["value", STRONG, WEAK]
