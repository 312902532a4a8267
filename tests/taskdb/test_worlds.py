"""Themes, worlds and scenarios in the database: identity, current records, what is pending, names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from taskdb.queries import readonly
from taskdb.queries import tasks as queries
from taskdb.queries.tasks import TaskFilters
from taskdb.queries.worlds import (
    WorldFilters,
    find_certified_worlds,
    find_pending_scenarios,
    find_pending_themes,
    find_pending_worlds,
    find_scenario_certificate,
    find_state,
    find_world_certificate,
    list_scenarios,
    list_worlds,
    resolve_scenario,
    resolve_theme,
    resolve_world,
)
from taskdb.records.worlds import World, WorldCertificate, WorldOrigin, WorldStep, compute_seed_task_id
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.worlds import (
    make_scenario,
    make_scenario_certificate,
    make_theme,
    make_world,
    make_world_certificate,
    reject,
)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return make_url(tmp_path)


def test_a_rerun_adds_nothing_and_records_are_read_as_they_were(db: str) -> None:
    theme = make_theme()
    world = make_world(theme)
    scenario = make_scenario(world)
    chain = [
        theme,
        world,
        make_world_certificate(world),
        scenario,
        make_scenario_certificate(scenario),
        reject(compute_seed_task_id("Draw a picture."), "tasks.jsonl:2", WorldStep.DISCOVER, "rule"),
    ]
    with Store.open(db) as store:
        assert len(store.add(*reversed(chain))) == len(chain)
        assert store.add(*chain) == []
        for record in chain:
            assert store.get(type(record), record.id) == record


def test_what_was_measured_does_not_identify() -> None:
    world = make_world()
    assert make_world(source="other", n_tools=3).id == world.id
    assert make_world(program="0" * 64).id != world.id
    certificate = make_world_certificate(world)
    assert make_world_certificate(world, log="1" * 64).id == certificate.id
    assert make_world_certificate(world, passed=83, failed=16).id != certificate.id
    assert reject("p", "n", WorldStep.BUILD, detail="x").id == reject("p", "n", WorldStep.BUILD, detail="y").id


def test_pass_rate_and_score_differ_by_warnings_and_are_none_without_rounds() -> None:
    certificate = make_world_certificate(make_world())
    assert (certificate.pass_rate, certificate.score) == (0.84, 0.85)
    unassessed = WorldCertificate(parent="w", name="n", n_calls=200, gates=())
    assert (unassessed.pass_rate, unassessed.score) == (None, None)


def test_a_theme_is_pending_until_it_has_a_world_or_a_rejection(db: str) -> None:
    themes = [make_theme(name) for name in ("built", "not_chosen", "failed", "waiting")]
    with Store.open(db) as store:
        store.add(*themes, make_world(themes[0]))
        store.add(reject(themes[1].id, "not_chosen", WorldStep.DISCOVER, "same-label"))
        store.add(reject(themes[2].id, "failed", WorldStep.BUILD, "syntax-error"))
        assert [pending_theme.name for pending_theme in find_pending_themes(store)] == ["waiting"]
        assert {pending_theme.name for pending_theme in find_pending_themes(store, retry=["syntax-error"])} == {
            "waiting",
            "failed",
        }
        store.add(make_world(themes[2]))  # a record with a child is not rejected
        assert [pending_theme.name for pending_theme in find_pending_themes(store, retry=["syntax-error"])] == [
            "waiting"
        ]
        rows = readonly.run_query(store, "SELECT name, status, rejected_by, reason FROM themes ORDER BY name")
        assert {row["name"]: tuple(row.values())[1:] for row in rows} == {
            "built": ("built", None, None),
            "failed": ("built", None, None),
            "not_chosen": ("rejected", "discover", "same-label"),
            "waiting": ("waiting", None, None),
        }


def test_worlds_and_scenarios_are_pending_until_certified_or_rejected(db: str) -> None:
    worlds = [make_world(name=name) for name in ("good", "bad", "new")]
    with Store.open(db) as store:
        store.add(*worlds, make_world_certificate(worlds[0]))
        store.add(reject(worlds[1].id, "bad", WorldStep.ASSESS))
        store.add(
            *(
                reject(world.id, f"{world.name}.none", WorldStep.SCENARIOS, "no-task")
                for world in (worlds[0], worlds[2])
            )
        )
        assert [pending_world.name for pending_world in find_pending_worlds(store)] == ["new"]
        assert {pending_world.name for pending_world in find_pending_worlds(store, retry=["query-mutates"])} == {
            "new",
            "bad",
        }
        assert [certified_world.name for certified_world in find_certified_worlds(store)] == ["good"]
        states = {row["name"]: row["status"] for row in list_worlds(store, WorldFilters())}
        assert states == {"good": "certified", "bad": "rejected", "new": "waiting"}
        scenarios = [make_scenario(worlds[0], name) for name in ("solved", "blind", "open")]
        store.add(*scenarios, make_scenario_certificate(scenarios[0]))
        store.add(reject(scenarios[1].id, scenarios[1].name, WorldStep.SCENARIOS, "checks-blind"))
        assert find_pending_scenarios(store) == [scenarios[2]]
        assert len(find_pending_scenarios(store, retry=["checks-blind"])) == 2
        assert {scenario.name for scenario in list_scenarios(store, worlds[0])} == {
            scenario.name for scenario in scenarios
        }
        assert list_scenarios(store, worlds[0], certified=True) == [scenarios[0]]
        rejected = readonly.run_query(store, "SELECT name FROM world_rejections ORDER BY name")
        assert [row["name"] for row in rejected] == ["bad", "good.blind", "good.none", "new.none"]
        scenario_certificate = find_scenario_certificate(store, scenarios[0])
        assert scenario_certificate is not None
        assert scenario_certificate.solution_origin == "written"
        assert find_scenario_certificate(store, scenarios[2]) is None


def test_what_was_accepted_after_all_is_not_among_the_rejections(db: str) -> None:
    theme = make_theme()
    world = make_world(theme)
    scenario = make_scenario(world)
    rejections = [
        reject(theme.parent, "tasks.jsonl:1", WorldStep.DISCOVER),
        reject(theme.id, theme.name, WorldStep.BUILD),
        reject(world.id, world.name, WorldStep.ASSESS),
        reject(world.id, scenario.name, WorldStep.SCENARIOS),
        reject(scenario.id, scenario.name, WorldStep.SCENARIOS),
    ]
    with Store.open(db) as store:
        store.add(theme, *rejections[:2])
        assert count_rejections(store) == 1  # the seed task has a theme
        store.add(world, *rejections[2:4])
        assert count_rejections(store) == 2  # the theme has a world
        store.add(make_world_certificate(world), scenario, rejections[4])
        assert count_rejections(store) == 1
        store.add(make_scenario_certificate(scenario))
        assert count_rejections(store) == 0


def count_rejections(store: Store) -> int:
    (row,) = readonly.run_query(store, "SELECT count(*) AS n FROM world_rejections")
    return int(row["n"])


def test_the_newest_scenario_of_a_name_counts(tmp_path: Path) -> None:
    world = make_world()
    old, new = make_scenario(world), make_scenario(world, task="Lend four books.")
    with Store.open(make_url(tmp_path)) as store:
        store.add(world, old)
        store.add(new)
        store.add(make_scenario_certificate(old))
        assert list_scenarios(store, world) == find_pending_scenarios(store) == [new]
        assert find_state(store, old) == {"status": "superseded", "reason": None}
        assert find_state(store, new) == {"status": "waiting", "reason": None}


def test_the_newest_world_of_a_name_and_the_newest_certificate_count(db: str) -> None:
    old, new = make_world(), make_world(program="0" * 64)
    elsewhere = make_world(origin=WorldOrigin.IMPORTED, source="env.json")
    with Store.open(db) as store:
        store.add(old)
        store.add(new, elsewhere)
        store.add(make_world_certificate(new), make_world_certificate(old))
        store.add(make_world_certificate(new, passed=90, failed=9))
        assert {row["id"] for row in list_worlds(store, WorldFilters())} == {new.id, elsewhere.id}
        assert [pending_world.id for pending_world in find_pending_worlds(store)] == [elsewhere.id]
        world_certificate = find_world_certificate(store, new)
        assert world_certificate is not None
        assert world_certificate.passed == 90
        (listed,) = list_worlds(store, WorldFilters(min_score=0.9))
        assert (listed["pass_rate"], listed["score"]) == (0.9, 0.91)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, {"clinic", "depot", "library"}),
        ({"name": "LI"}, {"clinic", "library"}),
        ({"name": "%"}, set()),
        ({"origin": (WorldOrigin.IMPORTED,)}, {"depot"}),
        ({"status": ("certified",)}, {"library"}),
        ({"license": ("MIT",)}, {"clinic", "library"}),
        ({"min_score": 0.85}, {"library"}),
        ({"min_score": 0.86}, set()),
        ({"min_tools": 12, "max_tools": 16}, {"depot", "library"}),
    ],
)
def test_filters_select_worlds(sqlite: str, filters: dict[str, Any], names: set[str]) -> None:
    library = make_world(name="library")
    with Store.open(sqlite) as store:
        store.add(library, make_world_certificate(library), make_scenario(library))
        store.add(make_world(name="depot", origin=WorldOrigin.IMPORTED, license="Apache-2.0", n_tools=12))
        store.add(make_world(name="clinic", n_tools=20))
        rows = {row["name"]: row for row in list_worlds(store, WorldFilters(**filters))}
    assert set(rows) == names
    if "library" in rows:
        assert (rows["library"]["scenarios"], rows["library"]["certified_scenarios"]) == (1, 0)
        assert rows["library"]["environment"] == "synthetic"


def test_names_and_beginnings_of_ids_are_resolved(sqlite: str) -> None:
    theme = make_theme()
    world = make_world(theme)
    scenario = make_scenario(world)
    with Store.open(sqlite) as store:
        store.add(theme, world, scenario)
        assert resolve_theme(store, "library_loans") == theme
        assert resolve_world(store, "library_loans") == resolve_world(store, world.id[:12]) == world
        assert resolve_scenario(store, "library_loans.busy_morning") == scenario
        with pytest.raises(InputError, match="there is no world nothing"):
            resolve_world(store, "nothing")
        store.add(make_world(origin=WorldOrigin.IMPORTED, source="env.json"))
        with pytest.raises(InputError, match="library_loans is ambiguous, 2 worlds match"):
            resolve_world(store, "library_loans")


def test_worlds_are_apart_from_changes_and_tasks(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store)
        world = make_world()
        scenario = make_scenario(world)
        store.add(world, make_world_certificate(world), scenario, make_scenario_certificate(scenario))
        store.add(reject("0" * 64, "tasks.jsonl:1", WorldStep.DISCOVER))
        assert [row["name"] for row in queries.list_tasks(store, TaskFilters())] == [task.name]
        assert queries.compute_funnel(store)[0]["in"] == 1
        with pytest.raises(InputError, match=f"there is no change {scenario.id[:16]}"):
            queries.resolve_change(store, scenario.id[:16])
        assert store.load_all(World) == [world]
