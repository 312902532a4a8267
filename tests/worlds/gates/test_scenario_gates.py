"""Gates of scenarios: the examples pass, and each kind of wrong checks is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.worlds.programs import CHECKS, SOLUTION, STATE, TASK, make_checks, make_scenario, make_world
from worlds.definitions import Call, ScenarioDefinition, WorldDefinition
from worlds.examples.loading import list_example_worlds, load_example_scenarios, load_example_world
from worlds.gates.scenario_gates import SCENARIO_GATES, assess_scenario
from worlds.reasons import Reason
from worlds.server.service import ServedWorld, WorldServer

pytestmark = pytest.mark.docker

CLOCK = "self.clock += 1\n        "
CLOCKED = make_world().program
for mark in ("get", "count", "rename", "move", "add", "take"):
    CLOCKED = CLOCKED.replace(f"# {mark}", CLOCK.strip())
CLOCKED = CLOCKED.replace('"count": 1}', '"count": 1, "made_at": f"2025-01-01T00:00:{self.clock:02}"}').replace(
    "    count: int\n", "    count: int\n    made_at: str\n"
)
"""The store with a clock that every call moves on, and a time stamp that it makes."""
CLOCKED_STATE = {
    **STATE,
    "items": {key: {**item, "made_at": "2024-01-01T00:00:00"} for key, item in STATE["items"].items()},
}


def replace_check(function: str, body: str, parameters: str = "final_state") -> str:
    """Return the checks with one function written again."""
    parts = CHECKS.split("\n\n\n")
    kept = [part for part in parts if f"def {function}(" not in part]
    return "\n\n\n".join([*kept, f"def {function}({parameters}):\n    {body}\n"])


WRONG: dict[str, tuple[ScenarioDefinition, Reason]] = {
    "all-hold-from-the-start": (
        make_scenario('def has_shelves(final_state):\n    return len(final_state["shelves"]) == 2\n'),
        Reason.CHECKS_ALREADY_HOLD,
    ),
    "ignores-a-named-field": (
        make_scenario(
            "def has_added(initial_state, final_state):\n"
            '    return len(final_state["items"]) > len(initial_state["items"])\n'
        ),
        Reason.CHECKS_BLIND,
    ),
    "demands-a-made-id": (
        make_scenario(replace_check("has_added", 'return "I-3" in final_state["items"]')),
        Reason.CHECKS_TOO_NARROW,
    ),
    "alters-the-state": (
        make_scenario(replace_check("has_moved", 'return final_state["items"].pop("I-1")["shelf_id"] == "S-2"')),
        Reason.CHECKS_MUTATE,
    ),
    "returns-1": (make_scenario(replace_check("has_moved", "return 1")), Reason.CHECKS_NOT_BOOLEAN),
    "returns-none": (make_scenario(replace_check("has_moved", "pass")), Reason.CHECKS_NOT_BOOLEAN),
    "draws-lots": (
        make_scenario(f"import random\n{replace_check('has_moved', 'return random.random() < 0.5')}"),
        Reason.CHECKS_VARY,
    ),
    "opens-a-file": (make_scenario(replace_check("has_moved", 'return bool(open("/x"))')), Reason.CHECKS_REFUSED),
    "no-solution": (make_scenario(solution=None), Reason.UNSOLVED),
    "half-a-solution": (make_scenario(solution=SOLUTION[:2]), Reason.UNSOLVED),
    "raises-at-the-end": (make_scenario(replace_check("has_moved", "return {}[1]")), Reason.CHECKS_RAISE),
    "never-ends": (make_scenario(replace_check("has_moved", "\n    while True: pass")), Reason.CHECKS_RAISE),
    "breaks-what-held": (
        make_scenario(
            f'{CHECKS}\n\ndef is_lamp(final_state):\n    return final_state["items"]["I-1"]["name"] == "lamp"\n'
        ),
        Reason.UNSOLVED,
    ),
}


@pytest.fixture(scope="module")
def store(server: WorldServer) -> Iterator[ServedWorld]:
    with server.load(make_world()) as world:
        yield world


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_scenario_is_refused_by_name(server: WorldServer, store: ServedWorld, name: str) -> None:
    report = assess_scenario(WRONG[name][0], store, server)
    assert report.reason == WRONG[name][1], report.failure


def test_a_check_that_demands_an_unnamed_time_stamp_is_too_narrow(server: WorldServer) -> None:
    world = WorldDefinition(name="store", program=CLOCKED, documentation="", states={"first": CLOCKED_STATE})
    body = 'return any(one["made_at"] == "2025-01-01T00:00:03" for one in final_state["items"].values())'
    with server.load(world) as served:
        for checks, reason in (
            (CHECKS, None),
            (f"{CHECKS}\n\ndef is_stamped(final_state):\n    {body}\n", Reason.CHECKS_TOO_NARROW),
        ):
            scenario = ScenarioDefinition(
                name="store.clocked",
                world="store",
                state=CLOCKED_STATE,
                task=TASK,
                checks=make_checks(checks),
                solution=SOLUTION,
            )
            assert assess_scenario(scenario, served, server).reason == reason


def test_a_check_that_demands_an_order_is_too_narrow(server: WorldServer, store: ServedWorld) -> None:
    """Two items are made; the check demands the first one's id, which depends on the order."""
    solution = (*SOLUTION, Call(tool="add_item", arguments={"name": "stool", "shelf_id": "S-1"}))
    checks = """
def has_both(final_state):
    names = {key: one["name"] for key, one in final_state["items"].items()}
    made = sorted(key for key in names if key not in ("I-1", "I-2"))
    return [names[key] for key in made] == ["clock", "stool"]
"""
    report = assess_scenario(make_scenario(checks, solution=solution), store, server)
    assert (report.reason, report.results[-1].gate) == (Reason.CHECKS_TOO_NARROW, "orders")


def test_a_state_that_breaks_a_foreign_key_is_refused(server: WorldServer, store: ServedWorld) -> None:
    scenario = make_scenario()
    state = {**STATE, "shelves": {}}
    broken = ScenarioDefinition(**{**vars(scenario), "state": state})
    assert assess_scenario(broken, store, server).reason == Reason.DANGLING_KEY


def test_a_good_scenario_passes_and_its_kept_checks_are_named(server: WorldServer, store: ServedWorld) -> None:
    kept = '\n\ndef has_vase(final_state):\n    return final_state["items"]["I-2"]["count"] == 3\n'
    report = assess_scenario(make_scenario(CHECKS + kept), store, server)
    assert report.reason is None, report.failure
    assert report.kept == ("has_vase",)
    assert len(report.results) == len(SCENARIO_GATES)
    assert report.values["orders"] >= 2
    assert report.values["mutations"] == 1.0


@pytest.mark.parametrize("name", list_example_worlds())
def test_the_example_scenarios_pass_all_gates(server: WorldServer, name: str) -> None:
    scenarios = load_example_scenarios(name)
    assert len(scenarios) == 2
    with server.load(load_example_world(name)) as world:
        for scenario in scenarios:
            report = assess_scenario(scenario, world, server)
            assert report.reason is None, (scenario.name, report.failure)
            assert len(scenario.task.split()) >= 50
