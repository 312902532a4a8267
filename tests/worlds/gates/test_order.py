"""Worlds that go by the order of their dicts: an episode that goes on from a saved state gives the same results."""

from __future__ import annotations

import pytest

from guest.world.reasons import CheckOutcome
from tests.worlds.local_server import make_local_server
from tests.worlds.programs import STATE, make_scenario, make_world
from worlds.definitions import State, WorldDefinition
from worlds.examples.loading import split_checks
from worlds.gates.arguments import StateValues, draw_arguments
from worlds.gates.world_gates import WorldGateSettings, assess_world
from worlds.server.service import WorldServer

FEW = WorldGateSettings(calls_per_tool=40)
REVERSED: State = {**STATE, "items": dict(reversed(STATE["items"].items()))}
FIRST = '''
def has_first(final_state):
    """Has I-1 first."""
    return next(iter(final_state["items"])) == "I-1"
'''


def make_ordered_world() -> WorldDefinition:
    """Return a store whose query shows the items in the order of their dict, which begins with the last id."""
    return make_world(
        '"data": sum(item["count"] for item in self.items.values())', '"data": list(self.items)', state=REVERSED
    )


def test_arguments_do_not_depend_on_the_order_of_a_dict() -> None:
    tools = make_local_server().load(make_ordered_world()).analysis.tools
    drawn = [arguments for listed in draw_arguments(tools, 40, 0).values() for arguments in listed]
    filled = [[StateValues(state).fill(arguments) for arguments in drawn] for state in (STATE, REVERSED)]
    assert filled[0] == filled[1] != drawn


def test_the_command_of_a_bundle_keeps_the_order_of_a_dict() -> None:
    world = make_local_server().load(make_ordered_world())
    with world.open_episode(REVERSED) as episode:
        assert episode.call("rename_item", {"item_id": "I-1", "name": "stool"}).is_success
        assert list(episode.get_state()["items"]) == ["I-2", "I-1"]


@pytest.mark.docker
def test_a_program_may_go_by_the_order_of_a_dict(server: WorldServer) -> None:
    report = assess_world(make_ordered_world(), server, settings=FEW)
    assert report.reason is None, report.failure
    with server.load(make_ordered_world()) as world, world.open_episode(REVERSED) as episode:
        assert list(episode.get_state()["items"]) == ["I-2", "I-1"]


@pytest.mark.docker
def test_checks_see_the_keys_sorted_wherever_the_state_comes_from(server: WorldServer) -> None:
    checks = split_checks(FIRST)
    assert make_scenario().state == REVERSED
    with server.load(make_ordered_world()) as world, world.open_episode(REVERSED) as episode:
        outcomes = [episode.run_checks(checks), server.run_checks(checks, REVERSED, REVERSED)]
    assert [result.outcome for results in outcomes for result in results] == [CheckOutcome.PASSED] * 2
