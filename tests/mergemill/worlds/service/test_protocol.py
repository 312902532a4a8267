"""MCP: the SDK's client lists and calls the tools of an episode, and the reward follows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from tests.world_service import RunningService, fill_results
from worlds.actions import CHAT_TOOL
from worlds.examples.loading import load_example_scenarios, load_example_world
from worlds.program.analysis import analyse_program

pytestmark = pytest.mark.docker


def read_result(result: Any) -> dict[str, Any]:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    value = json.loads(content.text)
    assert value == result.structured_content
    return dict(value)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_solves_a_scenario(service: RunningService, mode: str) -> None:
    scenario = load_example_scenarios("library_loans")[1]
    opened = service.ask("/reset", world="library_loans", scenario=scenario.name)

    async def play() -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        async with Client(f"{service.url}{opened['mcp']}", mode=mode) as client:
            tools = (await client.list_tools()).tools
            wanted = analyse_program(load_example_world("library_loans").program).tools
            assert [(tool.name, tool.description, tool.input_schema) for tool in tools] == [
                (tool.name, tool.description, tool.parameters) for tool in wanted
            ]
            prompt = (await client.get_prompt("task")).messages[0].content
            assert isinstance(prompt, types.TextContent)
            assert prompt.text.endswith(scenario.task)
            for call in scenario.solution or ():
                result = await client.call_tool(call.tool, fill_results(call.arguments, results))
                assert not result.is_error, result
                results.append(read_result(result))
            refused = await client.call_tool("get_book", {"book_id": 5})
            assert refused.is_error
            assert read_result(refused)["error"] == "arguments.book_id is not of type string"
            unknown = await client.call_tool("fly", {})
            assert read_result(unknown) == {"success": False, "error": "there is no tool fly"}
        return results

    results = asyncio.run(play())
    assert all(result["success"] for result in results)
    assert "reward" not in json.dumps(results)
    assert service.ask("/evaluate", episode=opened["episode"])["reward"] == 1.0


def test_each_address_is_an_episode_of_its_own(service: RunningService) -> None:
    episodes = [service.ask("/reset", world="library_loans", seed=0) for _ in range(2)]

    async def change(number: int) -> None:
        async with Client(f"{service.url}{episodes[number]['mcp']}") as client:
            for turn in range(3):
                email = f"{turn}@t{number}.example"
                result = await client.call_tool("change_email", {"member_id": "M-2", "email": email})
                assert not result.is_error, result

    async def change_both() -> None:
        await asyncio.gather(change(0), change(1))

    asyncio.run(change_both())
    texts = [json.dumps(service.ask("/state", episode=episode["episode"])["state"]) for episode in episodes]
    assert [("@t0" in text, "@t1" in text) for text in texts] == [(True, False), (False, True)]


def test_a_conversation_and_its_end(service: RunningService) -> None:
    opened = service.ask("/reset", world="parcel_depot", mode="conversational")

    async def talk() -> list[dict[str, Any]]:
        async with Client(f"{service.url}{opened['mcp']}") as client:
            assert CHAT_TOOL in [tool.name for tool in (await client.list_tools()).tools]
            replies = [read_result(await client.call_tool(CHAT_TOOL, {"message": "Yes?"}))]
            while "data" in replies[-1]:
                replies.append(read_result(await client.call_tool(CHAT_TOOL, {"message": "And then?"})))
            late = await client.call_tool(CHAT_TOOL, {"message": "Hello?"})
            assert late.is_error
            return replies

    replies = asyncio.run(talk())
    scenario = next(
        example_scenario
        for example_scenario in load_example_scenarios("parcel_depot")
        if example_scenario.name == opened["scenario"]
    )
    assert " ".join(reply["data"] for reply in replies[:-1]) == scenario.task
    assert replies[-1] == {"success": True, "message": "the user has ended the conversation"}
    assert service.ask("/evaluate", episode=opened["episode"])["ended"] is True
