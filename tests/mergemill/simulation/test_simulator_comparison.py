"""`mergemill simulate compare`: win rates of simulators at the same seeds and submissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from mergemill.simulation.simulator_comparison import compare_simulators
from taskdb.records.simulator_measurements import SimulatorMeasurement, SubmissionKind
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.simulations import drop, make_conversation, reject_seed


def measure(task: Any, submission: str, simulator: str, predicted: tuple[bool | None, ...], *, resolved: bool) -> Any:
    return SimulatorMeasurement(
        parent=task.id,
        name=task.name,
        simulator=simulator,
        prompt="1",
        kind=SubmissionKind.GOLD,
        submission=submission * 64,
        samples=len(predicted),
        grader="1",
        resolved=resolved,
        predicted=predicted,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulators")
    records: list[Any] = []
    for simulator, seeds in {
        "m1": {"aa": (2, 0), "bb": (1, 1), "dd": (1, 0)},
        "m2": {"aa": (1, 1), "bb": (1, 1)},
    }.items():
        for seed, (kept, dropped) in seeds.items():
            answers = [f"{simulator} {seed} {number}" for number in range(kept + dropped)]
            for number, answer in enumerate(answers):
                fields = {"simulator": simulator, "answer": answer}
                if number < kept:
                    records.append(make_conversation(seed, number + 1, **fields))
                else:
                    records.append(drop(seed, number + 1, "4 tools", "unknown-tool", **fields))
    records.append(reject_seed("cc", simulator="m1"))  # no conversation of it was written
    with Store.open(make_url(folder)) as store:
        task, other = add_lineage(store, 1), add_lineage(store, 2)
        records += [
            measure(task, "a", "m1", (True, True), resolved=True),
            measure(task, "a", "m2", (True, False), resolved=True),
            measure(task, "b", "m1", (True,), resolved=False),
            measure(task, "b", "m2", (False,), resolved=False),
            measure(other, "a", "m1", (None,), resolved=True),
            measure(other, "a", "m2", (True,), resolved=True),
            measure(other, "c", "m1", (True,), resolved=True),
            measure(other, "c", "m2", (False,), resolved=True),
            measure(other, "b", "m3", (True,), resolved=True),
        ]
        store.add(*records)
    return folder


def test_simulators_are_compared_by_seed_and_by_submission(folder: Path) -> None:
    with Store.open(make_url(folder), create=False) as store:
        kept, right = compare_simulators(store, ("m1", "m2"))
        (seeds,) = compare_simulators(store, ("m1", "m2"), domains=["retail"], profiles=["default"])[:1]
        assert compare_simulators(store, ("m1", "m2"), domains=["airline"]) == [right]
    assert seeds == kept
    assert (kept["measure"], kept["n"], kept["families"], kept["incomplete"]) == ("kept", 2, 2, 1)
    # Of seed aa half of the pairs are won and half are ties; of bb a quarter is won, a quarter lost.
    assert (kept["wins"], kept["ties"], kept["losses"]) == (0.375, 0.5, 0.125)
    assert kept["bounds"] == [round(1.25 / 3, 6), round(2.25 / 3, 6)]
    assert (right["measure"], right["n"], right["families"], right["incomplete"]) == ("right", 3, 2, 1)
    assert (right["wins"], right["losses"], right["rate"]) == (round(2 / 3, 6), round(1 / 3, 6), round(2 / 3, 6))
    assert right["bounds"] == [0.5, 0.75]


def test_simulators_without_anything_in_common_are_named(folder: Path) -> None:
    with Store.open(make_url(folder), create=False) as store:
        for names, problem in (
            (("m1", "m3"), "m1 and m3 have no seed and no submission in common"),
            (("m1", "m4"), "there is nothing of a simulator m4 .known: m1, m2, m3."),
            (("m1", "m1"), "both names are m1"),
        ):
            with pytest.raises(InputError, match=problem):
                compare_simulators(store, names)


def test_the_command_prints_a_row_for_each_measure(folder: Path) -> None:
    words = ("simulate", "compare", "m1", "m2", "--db", make_url(folder))
    assert [row["measure"] for row in run_mergemill(*words, "--json", cwd=folder).lines] == ["kept", "right"]
    (table,) = run_mergemill(*words, "--domain", "airline", "--profile", "simia", cwd=folder).stdout.splitlines()[1:]
    assert table.split()[:3] == ["right", "m1", "m2"]
