"""MCP (Model Context Protocol) over streamable HTTP: the tools of an episode at `/mcp/EPISODE`.

The address binds a client to its episode, so that it needs neither a session nor a header of ours. Rewards and states
are not part of it: it is the view that an agent is given.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from core.episodes.errors import RefusedRequestError
from core.errors import MergemillError
from mergemill import __version__
from mergemill.web.request_guard import MAX_BODY_BYTES
from mergemill.worlds.service.episodes import WorldEpisodes
from worlds.actions import CHAT_TOOL

Context = Any
PATH = "/mcp"
TASK_PROMPT = "task"
"""Prompt that holds the text that the agent was given."""


class EpisodeProtocol:
    """MCP server of all episodes.

    Args:
        episodes: the episodes.
        run: does blocking work in a thread.
    """

    def __init__(self, episodes: WorldEpisodes, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        self._episodes = episodes
        self._run = run
        self._manager = StreamableHTTPSessionManager(
            Server(
                "mergemill-worlds",
                version=__version__,
                on_list_tools=self._list_tools,
                on_call_tool=self._call_tool,
                on_list_prompts=self._list_prompts,
                on_get_prompt=self._get_prompt,
            ),
            json_response=True,
            stateless=True,
            max_request_body_size=MAX_BODY_BYTES,
        )

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serve until the end of the block."""
        async with self._manager.run():
            yield

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request below `/mcp`."""
        name = scope["path"].removeprefix(PATH).strip("/")
        try:
            self._check_episode(name)
        except MergemillError as error:
            status = error.status if isinstance(error, RefusedRequestError) else 503
            answer = JSONResponse({"error": str(error), "advice": error.advice}, status)
            await answer(scope, receive, send)
            return
        await self._manager.handle_request({**scope, "episode": name}, receive, send)

    def _check_episode(self, name: str) -> None:
        """Check that there is an episode of a name.

        Raises:
            RefusedRequestError: there is none.
            Transient: its container has ended.
        """
        if not name or "/" in name:
            raise RefusedRequestError(
                "an address of MCP names an episode", status=404, advice="POST /reset, then use /mcp/EPISODE"
            )
        self._episodes.table.touch(name)

    async def _list_tools(self, context: Context, _: Any) -> types.ListToolsResult:
        tools = self._episodes.table.touch(_find_episode(context)).run.tools
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool["name"], description=tool["description"], input_schema=dict(tool["parameters"]))
                for tool in tools
            ]
        )

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        action = {"tool": params.name, "arguments": params.arguments or {}}
        try:
            outcome = await self._run(lambda: self._episodes.act(_find_episode(context), action))
        except MergemillError as error:
            return _make_result({"success": False, "error": str(error)})
        observation = outcome.observation
        if "fault" in outcome.info:
            observation = {"success": False, "error": "the tool failed, and the episode has ended"}
        elif not observation and outcome.terminated:
            observation = {"success": True, "message": "the user has ended the conversation"}
        return _make_result(observation)

    async def _list_prompts(self, _: Context, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=TASK_PROMPT, description="The rules of this world, and the task.")]
        )

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != TASK_PROMPT:
            raise ValueError(f"there is no prompt {params.name}")
        opening = self._episodes.table.touch(_find_episode(context)).run.observation
        given = opening.get("task") or f'The user says: "{opening["user"]}" Answer with the tool {CHAT_TOOL}.'
        text = f"{opening['documentation'].strip()}\n\n{given}"
        content = types.TextContent(type="text", text=text)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


def _find_episode(context: Context) -> str:
    return str(context.request.scope["episode"])


def _make_result(observation: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(observation, ensure_ascii=False))],
        structured_content=observation,
        is_error=observation.get("success") is False,
    )
