"""The server of worlds: many worlds and episodes, limits, wrong requests, the end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from backends.sandbox.docker import DockerSandbox
from core.errors import InputError, Transient
from guest.world.reasons import FaultReason
from tests.worlds.programs import CHECKS, STATE, make_checks, make_world
from worlds.definitions import State
from worlds.examples.loading import load_example_world
from worlds.server.limits import ServerLimits
from worlds.server.service import ServedWorld, WorldServer, open_world_server

pytestmark = pytest.mark.docker

SHARED = make_world(
    "    def __init__",
    """    seen: ClassVar[list[str]] = []

    def __init__""",
).program.replace("# count", 'self.seen.append("x")\n        return {"success": True, "data": len(self.seen)}')
"""The store with a list that all objects of the class share."""


def test_a_call_gives_the_result_and_the_state(server: WorldServer) -> None:
    with server.load(make_world()) as world, world.open_episode(STATE) as episode:
        before = episode.digest
        assert episode.call("get_item", {"item_id": "I-2"}).value["data"]["name"] == "vase"
        assert episode.digest == before
        added = episode.call("add_item", {"name": "clock", "shelf_id": "S-1"})
        assert (added.is_success, added.value["item_id"]) == (True, "I-3")
        assert episode.digest == added.digest != before
        assert episode.get_state()["items"]["I-3"]["name"] == "clock"
        assert STATE["items"].keys() == {"I-1", "I-2"}


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("rename_item", {"item_id": "I-1"}, "arguments lacks name"),
        ("rename_item", {"item_id": "I-1", "name": 5}, "arguments.name is not of type string"),
        ("rename_item", {"item_id": "I-1", "name": "x", "colour": "red"}, "arguments has no colour"),
        ("take_items", {"item_id": "I-1", "count": True}, "arguments.count is not of type integer"),
        ("fly", {}, "there is no tool fly"),
        ("__init__", {}, "there is no tool __init__"),
    ],
)
def test_wrong_arguments_never_reach_the_program(server: WorldServer, tool: str, arguments: State, error: str) -> None:
    with server.load(make_world()) as world, world.open_episode(STATE) as episode:
        before = episode.digest
        result = episode.call(tool, arguments)
        assert result.value == {"success": False, "error": error}
        assert result.digest == before


def test_an_optional_parameter_without_a_default_may_be_absent(server: WorldServer) -> None:
    body = 'return {"success": True, "data": self.items.get(item_id or "I-1")}'
    world = make_world("self, item_id: str) -> dict[str, Any]:", "self, item_id: str | None) -> dict[str, Any]:")
    world = type(world)(**{**vars(world), "program": world.program.replace("# get", body)})
    with server.load(world) as served, served.open_episode(STATE) as episode:
        assert episode.call("get_item", {}).value["data"]["name"] == "lamp"


def test_64_episodes_at_once_do_not_disturb_each_other(server: WorldServer) -> None:
    barrier = threading.Barrier(64)
    world = type(make_world())(**{**vars(make_world()), "program": SHARED})

    def play(number: int) -> tuple[str, int, int]:
        with served.open_episode(STATE, seed=number) as episode:
            barrier.wait(timeout=60)
            for turn in range(10):
                assert episode.call("rename_item", {"item_id": "I-1", "name": f"{number}-{turn}"}).is_success
                seen = episode.call("count_items", {}).value["data"]
            state = episode.get_state()
            return state["items"]["I-1"]["name"], seen, len(state["items"])

    with ServedWorld(server._connection, "shared", world) as served, ThreadPoolExecutor(64) as threads:
        results = list(threads.map(play, range(64)))
    assert results == [(f"{number}-9", 10, 2) for number in range(64)]


def test_a_loop_in_one_episode_does_not_stop_the_others(server: WorldServer) -> None:
    looping = make_world("# take", "while True:\n            pass")
    with server.load(looping) as world, world.open_episode(STATE) as stuck, world.open_episode(STATE) as other:
        with ThreadPoolExecutor(1) as threads:
            result = threads.submit(stuck.call, "take_items", {"item_id": "I-1", "count": 1})
            n_calls = 0
            while not result.done():
                assert other.call("count_items", {}).is_success
                n_calls += 1
        assert n_calls > 20
        fault = result.result().fault
        assert fault is not None
        assert fault.reason is FaultReason.ENDLESS_LOOP
        assert stuck.call("count_items", {}).fault == fault
        assert stuck.get_state() == STATE
        assert not any(
            check.is_passed for check in stuck.run_checks(make_checks("def holds(final_state):\n    return True"))
        )


def test_50_worlds_and_no_more(world_sandbox: DockerSandbox, world_image: str) -> None:
    with open_world_server(world_sandbox, world_image, ServerLimits(episodes=2)) as server:
        worlds = [server.load(load_example_world("clinic_rota")) for _ in range(50)]
        with pytest.raises(InputError, match="there are 50 worlds already"):
            server.load(make_world())
        worlds[0].close()
        with server.load(make_world()) as world:
            episodes = [world.open_episode(STATE) for _ in range(2)]
            with pytest.raises(InputError, match="there are 2 episodes already"):
                world.open_episode(STATE)
            episodes[0].close()
            world.open_episode(STATE).close()


def test_wrong_requests_are_input_errors(server: WorldServer) -> None:
    with server.load(make_world()) as world:
        episode = world.open_episode(STATE)
        episode.close()
        with pytest.raises(InputError, match="there is no episode"):
            episode.call("count_items", {})
        with pytest.raises(InputError, match="the state is no JSON"):
            world.open_episode({"clock": float("nan")})
    with pytest.raises(InputError, match="opens-file: line"):
        server.load(make_world("# add", 'open("x")'))


def test_a_request_to_an_ended_server_is_transient(world_sandbox: DockerSandbox, world_image: str) -> None:
    with open_world_server(world_sandbox, world_image, ServerLimits(lifetime_seconds=1.0)) as server:
        world = server.load(make_world())
        with pytest.raises(Transient, match="has ended"):
            call_until_it_fails(world)
        with pytest.raises(Transient, match="has ended"):
            server.load(make_world())


def call_until_it_fails(world: ServedWorld) -> None:
    episode = world.open_episode(STATE)
    while True:
        episode.call("count_items", {})


def test_checks_run_on_states_without_an_episode(server: WorldServer) -> None:
    final = {**STATE, "items": {**STATE["items"], "I-1": {**STATE["items"]["I-1"], "name": "floor lamp"}}}
    results = server.run_checks(make_checks(CHECKS), STATE, final)
    assert [result.is_passed for result in results] == [True, False, False]
