"""Episodes over HTTP: rewards, ends, limits, faults, the death of the container, and no crosstalk."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from backends.llm.client import ChatModel
from backends.sandbox.docker import DockerSandbox
from core.config import Settings
from core.settings.machine import HostSettings
from tests.backends.llm.server import ScriptedAnswer, ScriptedFailure, run_model_server
from tests.world_service import RunningService, offer, open_in_container, serve_worlds, solve
from tests.worlds.programs import SOLUTION, make_scenario, make_world
from worlds.examples.loading import list_example_worlds, load_example_scenarios
from worlds.users import ModelUser

pytestmark = pytest.mark.docker
SCENARIOS = [scenario for world in list_example_worlds() for scenario in load_example_scenarios(world)]
FAULTY = make_world("# take", "1 / 0")


@pytest.fixture(scope="module")
def store(world_sandbox: DockerSandbox, world_image: str) -> Iterator[RunningService]:
    """A service of the store, one of whose tools raises."""
    with serve_worlds(open_in_container(world_sandbox, world_image), catalog=offer(FAULTY, make_scenario())) as opened:
        yield opened


def open_store(store: RunningService, **options: object) -> str:
    return str(store.ask("/reset", world="store", **options)["episode"])


@pytest.mark.parametrize(
    "scenario", [scenario.name for world in list_example_worlds() for scenario in load_example_scenarios(world)]
)
def test_a_solution_earns_1_and_nothing_earns_0(service: RunningService, scenario: str) -> None:
    world = scenario.partition(".")[0]
    definition = next(example for example in load_example_scenarios(world) if example.name == scenario)
    opened = service.ask("/reset", world=world, scenario=scenario, seed=3)
    episode = opened["episode"]
    assert (opened["environment"], opened["observation"]["task"]) == ("synthetic", definition.task)
    assert service.ask("/evaluate", episode=episode)["reward"] == 0.0
    solve(
        lambda tool, given: dict(service.ask("/step", episode=episode, tool=tool, arguments=given)["observation"]),
        definition,
    )
    score = service.ask("/evaluate", episode=episode)
    assert (score["reward"], score["ended"]) == (1.0, False)
    assert {"function", "outcome", "kept"} == set(score["checks"][0])
    last = service.ask("/step", episode=episode, action="Task Completed")
    assert (last["reward"], last["terminated"], last["observation"]) == (1.0, True, {})
    assert service.ask("/evaluate", episode=episode)["reward"] == 1.0
    status, answer = service.send("/step", {"episode": episode, "action": "Task Completed"})
    assert (status, answer["advice"]) == (409, "POST /evaluate has its reward")
    assert service.ask("/state", episode=episode)["ended"] is True
    assert service.ask("/close", episode=episode)["closed"] is True
    assert service.send("/evaluate", {"episode": episode})[0] == 404


def test_the_same_seed_gives_the_same_states(service: RunningService) -> None:
    opened = [service.ask("/reset", world="parcel_depot", seed=seed) for seed in (4, 4)]
    states = [service.ask("/state", episode=episode["episode"]) for episode in opened]
    assert states[0]["state"] == states[1]["state"]
    assert states[0]["digest"] == states[1]["digest"] == opened[0]["info"]["digest"]


def test_64_episodes_at_once_do_not_disturb_each_other(store: RunningService) -> None:
    barrier = threading.Barrier(64)

    def play(number: int) -> tuple[str, int, float]:
        episode = open_store(store, seed=number)
        barrier.wait(timeout=60)
        for turn in range(6):
            given = {"item_id": "I-1", "name": f"{number}-{turn}"}
            assert store.ask("/step", episode=episode, tool="rename_item", arguments=given)["observation"]["success"]
            state = store.ask("/state", episode=episode)["state"]
            assert state["items"]["I-1"]["name"] == f"{number}-{turn}"
        if number % 2:
            for call in SOLUTION:
                store.ask("/step", episode=episode, tool=call.tool, arguments=dict(call.arguments))
        state = store.ask("/state", episode=episode)["state"]
        reward = store.ask("/step", episode=episode, action={"stop": True})["reward"]
        store.ask("/close", episode=episode)
        return state["items"]["I-1"]["name"], len(state["items"]), reward

    with ThreadPoolExecutor(64) as threads:
        results = list(threads.map(play, range(64)))
    assert results == [("floor lamp", 3, 1.0) if number % 2 else (f"{number}-5", 2, 0.0) for number in range(64)]


def test_an_agents_action_is_answered_and_a_programs_mistake_is_an_error(store: RunningService) -> None:
    episode = open_store(store, max_steps=4)
    status, answer = store.send("/step", {"episode": episode, "tool": "fly", "arguments": {}})
    assert (status, answer["error"]) == (404, "store has no tool fly")
    texts = ["", '<tool_call>{"name": "fly", "arguments": {}}</tool_call>', "<tool_call>{</tool_call>"]
    for text in texts:
        answer = store.ask("/step", episode=episode, action=text)
        assert answer["observation"]["success"] is False
        assert answer["truncated"] is False
    answer = store.ask("/step", episode=episode, action={"tool": "count_items", "arguments": {}})
    assert (answer["observation"], answer["reward"]) == ({"success": True, "data": 43}, 0.0)
    assert (answer["terminated"], answer["truncated"]) == (False, True)


def test_an_action_that_is_sent_again_is_taken_once(store: RunningService) -> None:
    episode = open_store(store)
    body = {
        "episode": episode,
        "action": {"tool": "add_item", "arguments": {"name": "x", "shelf_id": "S-1"}},
        "number": 1,
    }
    assert store.ask("/step", **body) == store.ask("/step", **body)
    assert len(store.ask("/state", episode=episode)["state"]["items"]) == 3
    status, answer = store.send("/step", {**body, "number": 3})
    assert (status, answer["error"]) == (409, "action 3 cannot follow action 1")
    end = {"episode": episode, "action": {"stop": True}, "number": 2}
    assert store.ask("/step", **end) == store.ask("/step", **end)


def test_a_fault_of_the_world_ends_its_episode_and_nothing_else(store: RunningService) -> None:
    faulty, other = open_store(store), open_store(store)
    for call in SOLUTION:
        store.ask("/step", episode=faulty, tool=call.tool, arguments=dict(call.arguments))
    answer = store.ask("/step", episode=faulty, tool="take_items", arguments={"item_id": "I-1", "count": 1})
    assert (answer["reward"], answer["terminated"], answer["info"]["fault"]) == (0.0, True, "raises")
    score = store.ask("/evaluate", episode=faulty)
    assert (score["reward"], {check["outcome"] for check in score["checks"]}) == (0.0, {"crashed"})
    assert store.ask("/step", episode=other, tool="count_items", arguments={})["observation"]["data"] == 43


def test_a_named_episode_is_started_again(store: RunningService) -> None:
    assert open_store(store, episode="mine") == "mine"
    store.ask("/step", episode="mine", tool="rename_item", arguments={"item_id": "I-1", "name": "x"})
    open_store(store, episode="mine")
    assert store.ask("/state", episode="mine")["state"]["items"]["I-1"]["name"] == "lamp"


def test_too_many_episodes_and_idle_ones(world_sandbox: DockerSandbox, world_image: str) -> None:
    opener, catalog = open_in_container(world_sandbox, world_image), offer(FAULTY, make_scenario())
    with serve_worlds(opener, catalog=catalog, limit=2, idle_seconds=2.0) as service:
        first, second = open_store(service), open_store(service)
        status, answer = service.send("/reset", {"world": "store"})
        assert (status, answer["error"]) == (429, "2 episodes are open")
        service.ask("/step", episode=first, action={"stop": True})
        third = open_store(service)
        deadline = time.monotonic() + 20
        while service.send("/health")[1]["episodes"] > 1:
            assert time.monotonic() < deadline
            service.ask("/state", episode=third)
            time.sleep(0.1)
        assert service.send("/state", {"episode": second})[0] == 404
        assert service.ask("/state", episode=third)["steps"] == 0


def test_a_dead_container_is_no_reward_and_another_takes_its_place(
    world_sandbox: DockerSandbox, world_image: str
) -> None:
    opener, catalog = open_in_container(world_sandbox, world_image), offer(FAULTY, make_scenario())
    with serve_worlds(opener, catalog=catalog) as service:
        ended, lost = open_store(service), open_store(service)
        service.ask("/step", episode=ended, action={"stop": True})
        kill_container(service)
        for path, body in (("/step", {"action": "x"}), ("/evaluate", {}), ("/state", {})):
            status, answer = service.send(path, {"episode": lost, **body})
            assert (status, answer["reward"]) == (503, None), path
            assert answer["infrastructure_error"] == f"the container of the episode {lost} has ended"
        assert service.send(f"/mcp/{lost}", {})[0] == 503
        assert service.ask("/evaluate", episode=ended)["reward"] == 0.0
        again = open_store(service)
        assert service.ask("/step", episode=again, tool="count_items", arguments={})["observation"]["data"] == 43
        assert service.send("/health")[1]["containers_started"] == 2


def kill_container(service: RunningService) -> None:
    """End the server in the container, as a crash would."""
    running = service.host._running
    assert running is not None
    running.server._connection._process.write(b'{"op": "no such operation"}\n')
    while service.host.is_running:
        time.sleep(0.01)


def test_a_conversation_over_http(store: RunningService) -> None:
    opened = store.ask("/reset", world="store", mode="conversational")
    assert opened["observation"]["user"] == "Hello, can you help me?"
    assert "task" not in opened["observation"]
    assert opened["observation"]["tools"][-1]["name"] == "chat_with_user"
    episode = opened["episode"]
    texts = ("How can I help?", '{"name": "chat_with_user", "arguments": {"message": "And then?"}}')
    said = [store.ask("/step", episode=episode, action=text)["observation"]["data"] for text in texts]
    assert " ".join(said) == make_scenario().task
    for call in SOLUTION:
        store.ask("/step", episode=episode, action={"tool": call.tool, "arguments": dict(call.arguments)})
    last = store.ask("/step", episode=episode, action="All done.")
    assert (last["reward"], last["terminated"]) == (1.0, True)


def test_a_user_whose_model_fails_costs_no_reward_and_the_action_can_be_sent_again(
    world_sandbox: DockerSandbox, world_image: str
) -> None:
    opener, catalog = open_in_container(world_sandbox, world_image), offer(FAULTY, make_scenario())
    with ExitStack() as opened:
        model = opened.enter_context(run_model_server())
        client = opened.enter_context(
            closing(
                ChatModel(
                    Settings(llm=model.url, model="scripted").llm,
                    HostSettings(),
                    first_pause=0.01,
                )
            )
        )
        service = opened.enter_context(
            serve_worlds(opener, catalog=catalog, make_user=lambda definition: ModelUser(client, definition.task))
        )
        model.set_answers(ScriptedAnswer(text="Hello!"), ScriptedFailure(status=429, headers={"Retry-After": "9999"}))
        episode = open_store(service, mode="conversational")
        body = {"episode": episode, "action": "What can I do?", "number": 1}
        status, answer = service.send("/step", body)
        assert (status, answer["reward"]) == (503, None)
        assert "429" in answer["infrastructure_error"]
        model.set_answers(ScriptedAnswer(text="Rename it."))
        assert service.ask("/step", **body)["observation"] == {"success": True, "data": "Rename it."}
        model.set_answers(ScriptedFailure(status=429, headers={"Retry-After": "9999"}))
        assert service.send("/reset", {"world": "store", "mode": "conversational"})[0] == 503
