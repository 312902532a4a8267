"""Counts of seed tasks, themes, worlds and scenarios by step, and where a single one went."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import InputError
from taskdb.queries.world_histories import compute_world_funnel, look_up_world
from taskdb.records.worlds import WorldOrigin, WorldStep, compute_seed_task_id
from taskdb.store import Store
from tests.taskdb.lineages import make_url
from tests.taskdb.worlds import (
    make_scenario,
    make_scenario_certificate,
    make_theme,
    make_world,
    make_world_certificate,
    reject,
)

OTHER = "swe"


def fill(store: Store) -> None:
    """Add one of each outcome."""
    library, depot, low = make_theme(), make_theme("depot"), make_theme("low")
    waiting = make_theme("waiting", source=OTHER)
    world, clinic = make_world(library), make_world(name="clinic")
    scenarios = [make_scenario(world, name) for name in ("busy_morning", "blind", "open")]
    store.add(library, depot, low, waiting, world, clinic, make_world_certificate(world), *scenarios)
    store.add(make_scenario_certificate(scenarios[0]))
    store.add(
        reject(compute_seed_task_id("Draw."), "tasks.jsonl:7", WorldStep.DISCOVER, "rule", detail="picture"),
        reject(low.id, "low", WorldStep.DISCOVER, "not-nearest"),
        reject(depot.id, "depot", WorldStep.BUILD, "syntax-error", log="9" * 64),
        reject(clinic.id, "clinic", WorldStep.ASSESS, detail="find(id='x')"),
        reject(scenarios[1].id, scenarios[1].name, WorldStep.SCENARIOS, "checks-blind"),
        reject(world.id, "library_loans.none", WorldStep.SCENARIOS, "no-task"),
    )


def read_funnel(store: Store, *sources: str) -> dict[str, tuple[int, int, int, dict[str, int]]]:
    rows, _ = compute_world_funnel(store, sources)
    for row in rows:
        assert row["in"] == row["out"] + row["waiting"] + sum(row["rejected"].values()), row
    return {row["step"]: (row["in"], row["out"], row["waiting"], row["rejected"]) for row in rows}


def test_each_step_counts_what_came_to_it(db: str) -> None:
    with Store.open(db) as store:
        fill(store)
        assert read_funnel(store) == {
            "discover": (5, 3, 0, {"not-nearest": 1, "rule": 1}),
            "build": (3, 1, 1, {"syntax-error": 1}),
            "assess": (2, 1, 0, {"query-mutates": 1}),
            "scenarios": (4, 1, 1, {"checks-blind": 1, "no-task": 1}),
        }
        _, examples = compute_world_funnel(store)
        assert examples["discover", "rule"] == "tasks.jsonl:7"
        assert examples["scenarios", "no-task"] == "library_loans.none"
        assert read_funnel(store, OTHER)["discover"] == (1, 1, 0, {})
        assert read_funnel(store, "tasks.jsonl")["discover"] == (4, 2, 0, {"not-nearest": 1, "rule": 1})


def test_nothing_is_counted_twice_or_after_it_passed(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        fill(store)
        # a seed task of three themes, two of which were chosen, and one that another model found no theme in
        store.add(make_theme("lending", task=make_theme().task, model="org/third"))
        again = make_theme("loans", task=make_theme().task, model="org/other")
        store.add(again, reject(again.id, "loans", WorldStep.DISCOVER, "same-label"))
        store.add(reject(make_theme().parent, "tasks.jsonl:1", WorldStep.DISCOVER, "no-domain"))
        # a rejected world whose program was written again, and passed
        clinic = make_world(name="clinic", program="0" * 64)
        store.add(clinic, make_world_certificate(clinic))
        # a scenario that was written at the second try, and a theme rejected twice
        world = make_world(make_theme())
        late = make_scenario(world, "none")
        store.add(late, make_scenario_certificate(late))
        store.add(reject(make_theme("depot").id, "depot", WorldStep.BUILD, "no-world-class"))
        assert read_funnel(store) == {
            "discover": (5, 3, 0, {"not-nearest": 1, "rule": 1}),
            "build": (4, 1, 2, {"no-world-class": 1}),
            "assess": (2, 2, 0, {}),
            "scenarios": (4, 2, 1, {"checks-blind": 1}),
        }


@pytest.mark.parametrize(
    ("word", "steps"),
    [
        ("tasks.jsonl:7", ["discover rule"]),
        ("low", ["discover ok", "discover not-nearest"]),
        ("depot", ["discover ok", "build syntax-error"]),
        ("waiting", ["discover ok"]),
        ("clinic", ["build ok", "assess query-mutates"]),
        ("library_loans", ["discover ok", "build ok", "assess ok"]),
        ("library_loans.blind", ["discover ok", "build ok", "assess ok", "scenarios ok", "scenarios checks-blind"]),
        ("library_loans.busy_morning", ["discover ok", "build ok", "assess ok", "scenarios ok", "scenarios ok"]),
        ("library_loans.none", ["discover ok", "build ok", "assess ok", "scenarios no-task"]),
    ],
)
def test_each_name_has_its_events_in_order(db: str, word: str, steps: list[str]) -> None:
    with Store.open(db) as store:
        fill(store)
        story = look_up_world(store, word)
    assert story is not None
    assert [f"{event['step']} {'ok' if event['ok'] else event['reason']}" for event in story["events"]] == steps
    assert (story["of"], story["name"], story["environment"]) == ("worlds", word, "synthetic")
    assert story["log"] == ("9" * 64 if word == "depot" else None)
    states = {scenario["name"]: scenario["status"] for scenario in story["scenarios"]}
    assert states == (
        {
            "library_loans.blind": "rejected",
            "library_loans.busy_morning": "certified",
            "library_loans.none": "rejected",
            "library_loans.open": "waiting",
        }
        if word == "library_loans"
        else {}
    )


def test_ids_and_their_beginnings_name_records_and_seed_tasks(tmp_path: Path) -> None:
    seed_task = compute_seed_task_id("Draw.")
    world = make_world(make_theme())
    with Store.open(make_url(tmp_path)) as store:
        fill(store)
        for word, name in ((seed_task, "tasks.jsonl:7"), (world.id[:10], "library_loans"), (world.id, "library_loans")):
            story = look_up_world(store, word)
            assert story is not None
            assert story["name"] == name
        of_seed = look_up_world(store, make_theme().parent)
        assert of_seed is not None
        assert [event["thing"] for event in of_seed["events"]] == ["theme", "world", "world certificate"]
        assert look_up_world(store, "nothing") is None
        with pytest.raises(InputError, match="is ambiguous, "):
            look_up_world(store, "")


def test_worlds_of_one_name_have_one_story(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        fill(store)
        store.add(make_world(origin=WorldOrigin.IMPORTED, source="env.json"))
        story = look_up_world(store, "library_loans")
    assert story is not None
    assert sorted(event["detail"] for event in story["events"] if event["thing"] == "world") == [
        "imported, 16 tools",
        "synthesised, 16 tools",
    ]
