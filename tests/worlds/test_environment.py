"""The environment: episodes of the example worlds, rewards, ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import InputError
from tests.worlds.programs import CHECKS, SOLUTION, make_scenario, make_world
from worlds.environment import WorldEnvironment
from worlds.examples.loading import load_example_scenarios, load_example_world
from worlds.rewards import RewardMode
from worlds.server.service import ServedWorld, WorldServer
from worlds.users import make_scripted_user

pytestmark = pytest.mark.docker
PAGE = Path(__file__).parents[2] / "docs/guide/worlds/worlds.md"
KEPT = CHECKS + '\n\ndef has_vase(final_state):\n    return final_state["items"]["I-2"]["name"] == "vase"\n'


@pytest.fixture
def store(server: WorldServer) -> Iterator[WorldEnvironment]:
    with WorldEnvironment(server, make_world(), [make_scenario(KEPT)], max_steps=5) as environment:
        yield environment


def act(tool: str, **arguments: object) -> dict[str, object]:
    return {"tool": tool, "arguments": arguments}


def test_a_solved_episode_earns_1(store: WorldEnvironment) -> None:
    observation, info = store.reset(seed=5)
    assert (observation["documentation"], info["scenario"]) == ("A store.", "store.first")
    assert [tool["name"] for tool in observation["tools"]] == [tool["name"] for tool in store.tools]
    for call in SOLUTION:
        observation, reward, terminated, truncated, info = store.step(act(call.tool, **call.arguments))
        assert (observation["success"], reward, terminated, truncated) == (True, 0.0, False, False)
    observation, reward, terminated, truncated, info = store.step({"stop": True})
    assert (observation, reward, terminated, truncated) == ({}, 1.0, True, False)
    assert info["checks"][-1] == {"function": "has_vase", "outcome": "passed", "kept": True}
    with pytest.raises(InputError, match="there is no episode"):
        store.step({"stop": True})


def test_nothing_done_earns_0_and_a_part_its_share(store: WorldEnvironment) -> None:
    store.reset()
    assert store.step({"stop": True})[1] == 0.0
    store.reset()
    store.step(act("move_item", item_id="I-1", shelf_id="S-2"))
    assert store.evaluate().reward == pytest.approx(1 / 3)
    assert store.get_state()["items"]["I-1"]["shelf_id"] == "S-2"
    store.step(act("rename_item", item_id="I-2", name="jug"))
    assert store.step({"stop": True})[1] == 0.0, "a kept check broke"


def test_unreadable_actions_are_answered_and_counted(store: WorldEnvironment) -> None:
    store.reset()
    for number, action in enumerate([{}, {"tool": 5}, {"tool": "x", "arguments": []}, act("fly"), act("get_item")], 1):
        observation, reward, terminated, truncated, _ = store.step(action)
        assert observation["success"] is False
        assert (reward, terminated, truncated) == (0.0, False, number == 5)


def test_all_or_nothing(server: WorldServer) -> None:
    mode = RewardMode.ALL_OR_NOTHING
    with WorldEnvironment(server, make_world(), [make_scenario()], reward_mode=mode) as environment:
        environment.reset()
        environment.step(act("move_item", item_id="I-1", shelf_id="S-2"))
        assert environment.step({"stop": True})[1] == 0.0


def test_a_fault_of_the_world_ends_the_episode_without_reward(server: WorldServer) -> None:
    with WorldEnvironment(server, make_world("# take", "1 / 0"), [make_scenario()]) as environment:
        environment.reset()
        for call in SOLUTION:
            environment.step(act(call.tool, **call.arguments))
        observation, reward, terminated, _, info = environment.step(act("take_items", item_id="I-1", count=1))
        assert (observation, reward, terminated, info["fault"]) == ({}, 0.0, True, "raises")


def test_the_seed_or_the_options_choose_the_scenario(server: WorldServer) -> None:
    scenarios = load_example_scenarios("clinic_rota")
    with WorldEnvironment(server, load_example_world("clinic_rota"), scenarios) as environment:
        names = [environment.reset(seed=seed)[1]["scenario"] for seed in (0, 1, 2)]
        assert names == ["clinic_rota.first_week", "clinic_rota.holiday_cover", "clinic_rota.first_week"]
        options = {"scenario": "clinic_rota.holiday_cover"}
        assert environment.reset(seed=0, options=options)[1]["scenario"] == "clinic_rota.holiday_cover"
        with pytest.raises(InputError, match="there is no scenario x"):
            environment.reset(options={"scenario": "x"})
    with pytest.raises(InputError, match="has no scenarios"):
        WorldEnvironment(server, load_example_world("clinic_rota"), [])


def test_the_program_of_the_page_solves_a_scenario(world_image: str) -> None:
    block = next(
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "environment.step" in block
    )
    names: dict[str, object] = {"image": world_image}
    exec(block, names)  # noqa: S102 - the page is ours
    assert (names["reward"], names["terminated"]) == (1.0, True)


@pytest.mark.parametrize("name", ["clinic_rota", "library_loans", "parcel_depot"])
def test_initial_states_come_back_unchanged(server: WorldServer, name: str) -> None:
    definition = load_example_world(name)
    with server.load(definition) as world:
        assert isinstance(world, ServedWorld)
        for state in definition.states.values():
            with world.open_episode(state) as episode:
                assert episode.fault is None
                assert episode.get_state() == state


def test_texts_of_a_model_are_actions(store: WorldEnvironment) -> None:
    store.reset()
    for call in SOLUTION:
        text = json.dumps({"name": call.tool, "arguments": call.arguments})
        assert store.step(f"<think>Now.</think><tool_call>{text}</tool_call>")[0]["success"] is True
    assert store.step("Everything is done. Task Completed")[1:4] == (1.0, True, False)


def test_a_conversation_is_ended_by_the_user(server: WorldServer) -> None:
    with WorldEnvironment(server, make_world(), [make_scenario()], make_user=make_scripted_user) as environment:
        observation, _ = environment.reset()
        assert observation["user"] == "Hello, can you help me?"
        assert "task" not in observation
        assert observation["tools"][-1]["name"] == environment.tools[-1]["name"] == "chat_with_user"
        replies = [environment.step("What can I do?")[0]["data"], environment.step("And then?")[0]["data"]]
        assert " ".join(replies) == make_scenario().task
        for call in SOLUTION:
            environment.step(act(call.tool, **call.arguments))
        observation, reward, terminated, truncated, _ = environment.step(act("chat_with_user", message="Done."))
        assert (observation, reward, terminated, truncated) == ({}, 1.0, True, False)


def test_a_tool_must_not_have_the_name_of_the_conversations(server: WorldServer) -> None:
    world = make_world("def count_items", "def chat_with_user")
    options = {"make_user": make_scripted_user}
    with (
        WorldEnvironment(server, world, [make_scenario()], **options) as environment,
        pytest.raises(InputError) as raised,
    ):
        environment.reset()
    assert str(raised.value) == "a tool of store is named chat_with_user"
    with WorldEnvironment(server, world, [make_scenario()]) as environment:
        environment.reset()
        assert environment.step(act("chat_with_user"))[0]["data"] == 43
