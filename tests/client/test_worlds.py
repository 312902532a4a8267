"""The client's environment: Gymnasium's interface over the HTTP API of a running service."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mergemill_client.errors import ClientError
from mergemill_client.worlds import RemoteWorldEnvironment, WorldConnection, WorldNotFoundError, WorldUnavailableError

from backends.sandbox.docker import DockerSandbox
from tests.grading_server import serve_answers
from tests.mergemill.worlds.service.test_episodes import kill_container
from tests.world_service import RunningService, open_in_container, serve_worlds, solve
from tests.worlds.conftest import world_image, world_sandbox  # noqa: F401 - fixtures
from worlds.examples.loading import load_example_scenarios

TOKEN = "correct horse"
OPENED = {"episode": "e", "observation": {}, "info": {}}
STEP = {"observation": {"success": True}, "reward": 0.0, "terminated": False, "truncated": False, "info": {}}


@pytest.fixture(scope="module")
def service(world_sandbox: DockerSandbox, world_image: str) -> Iterator[RunningService]:  # noqa: F811
    with serve_worlds(open_in_container(world_sandbox, world_image), token=TOKEN, limit=2) as opened:
        yield opened


def open_remote(service: RunningService, world: str = "library_loans", **options: Any) -> RemoteWorldEnvironment:
    return RemoteWorldEnvironment(service.url, world, token=TOKEN, patience=0.5, **options)


@pytest.mark.docker
def test_a_solved_episode_earns_1(service: RunningService) -> None:
    scenario = load_example_scenarios("library_loans")[1]
    with open_remote(service, scenario=scenario.name) as environment:
        observation, info = environment.reset(seed=2)
        assert (observation["task"], info["scenario"]) == (scenario.task, scenario.name)
        assert environment.mcp_url == f"{service.url}/mcp/{info['episode']}"
        solve(lambda tool, given: environment.step({"tool": tool, "arguments": given})[0], scenario)
        assert environment.evaluate()["reward"] == 1.0
        assert environment.get_state()["members"]
        _, reward, terminated, truncated, info = environment.step("Task Completed")
        assert (reward, terminated, truncated) == (1.0, True, False)
        assert all(check["outcome"] == "passed" for check in info["checks"])
    with pytest.raises(ClientError, match="call reset first"):
        environment.step("Task Completed")
    assert service.table.count().episodes == 0


@pytest.mark.docker
def test_a_conversation(service: RunningService) -> None:
    with open_remote(service, "clinic_rota", mode="conversational", max_steps=3) as environment:
        observation, _ = environment.reset()
        assert observation["user"] == "Hello, can you help me?"
        assert environment.step("How?")[0]["success"] is True
        assert environment.step("")[0]["success"] is False
        assert environment.step("How?")[1:4] == (0.0, False, True)


@pytest.mark.docker
def test_a_dead_container_gives_no_reward(service: RunningService) -> None:
    with open_remote(service) as environment:
        environment.reset()
        kill_container(service)
        observation, reward, terminated, truncated, info = environment.step("Task Completed")
        assert (observation, reward, terminated, truncated) == ({}, None, False, True)
        assert "has ended" in info["infrastructure_error"]
        assert environment.evaluate()["reward"] is None
        environment.reset()
        assert environment.step({"stop": True})[1] == 0.0


@pytest.mark.docker
def test_a_full_server_is_waited_for_and_wrong_requests_are_errors(service: RunningService) -> None:
    others = [open_remote(service) for _ in range(2)]
    for other in others:
        other.reset()
    with open_remote(service) as environment:
        with pytest.raises(WorldUnavailableError, match="2 episodes are open"):
            environment.reset()
        for other in others:
            other.close()
        environment.reset()
        with pytest.raises(WorldNotFoundError, match="there is no scenario x"):
            environment.reset(options={"scenario": "x"})
    with open_remote(service, "x") as environment, pytest.raises(WorldNotFoundError, match="there is no world x"):
        environment.reset()
    with WorldConnection(service.url) as connection, pytest.raises(ClientError, match="needs its token"):
        connection.list_worlds()
    with WorldConnection(service.url, TOKEN) as connection:
        assert len(connection.list_worlds()) == 3
        assert len(connection.describe_world("parcel_depot")["tools"]) == 16


def test_a_lost_answer_is_fetched_again_with_the_same_number() -> None:
    with serve_answers((200, {"content-type": "application/json"}, OPENED)) as server:
        environment = RemoteWorldEnvironment(server.url, "w")
        environment.reset()
        server.answers = [("reset", {}, b""), (200, {"content-type": "application/json"}, STEP)]
        assert environment.step("x")[0] == {"success": True}
        assert [body["number"] for body in server.bodies[1:]] == [1, 1]
        environment.step("y")
        assert server.bodies[-1]["number"] == 2
        server.answers = [(200, {"content-type": "application/json"}, {})]
        environment.close()


def test_a_server_that_is_gone_gives_no_reward() -> None:
    with serve_answers((200, {"content-type": "application/json"}, OPENED)) as server:
        environment = RemoteWorldEnvironment(server.url, "w", patience=0.3)
        environment.reset()
    assert environment.step("x")[1] is None
    assert environment.evaluate()["reward"] is None
    environment.close()
    with pytest.raises(WorldUnavailableError, match="no server answers"):
        environment.reset()
    with pytest.raises(ClientError, match="is no address of a server"):
        WorldConnection("localhost:8600")


def test_the_client_needs_the_standard_library_alone() -> None:
    script = (
        "import sys; before = set(sys.modules); import mergemill_client.worlds; "
        "print({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)"
    )
    folder = Path(__file__).parents[2] / "client"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'mergemill_client'}"
