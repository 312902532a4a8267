"""A request of Responses as one of chat completions."""

from __future__ import annotations

from typing import Any

from backends.llm.conversations.items import read_items
from backends.llm.conversations.parts import refuse
from backends.llm.conversations.tool_table import ToolTable, flatten_name
from samplers.gateway.json_text import Json

_COPIED = ("model", "temperature", "top_p", "stream", "parallel_tool_calls")
_TRANSLATED = frozenset(
    ("instructions", "input", "tools", "tool_choice", "max_output_tokens", "text", "store", *_COPIED)
)
_STATEFUL = {
    "previous_response_id": "the whole conversation has to be sent as `input`",
    "conversation": "the whole conversation has to be sent as `input`",
    "background": "nothing is stored",
    "prompt": "no prompts are stored",
}
"""Parameters for the state that the server keeps -> the setting to do without."""


def translate_responses_request(body: Json) -> tuple[Json, list[str], ToolTable]:
    """Return a request of chat completions, the names of parameters without counterpart, and the tools.

    Raises:
        GatewayFailure: it holds a part that cannot be translated, or needs a server that stores answers.
    """
    _refuse_state(body)
    table = ToolTable(body.get("tools") or ())
    chat: Json = {key: body[key] for key in _COPIED if body.get(key) is not None}
    chat["messages"] = read_items(body)
    if table.functions:
        chat["tools"] = table.functions
        if body.get("tool_choice"):
            chat["tool_choice"] = _translate_choice(body["tool_choice"])
    else:
        chat.pop("parallel_tool_calls", None)
    if body.get("max_output_tokens"):
        chat["max_tokens"] = body["max_output_tokens"]
    chat |= _translate_format((body.get("text") or {}).get("format") or {})
    return chat, sorted(set(body) - _TRANSLATED), table


def _refuse_state(body: Json) -> None:
    for key, advice in _STATEFUL.items():
        if body.get(key):
            raise refuse(f"`{key}` is not available: {advice}")
    if body.get("store") is True:
        raise refuse("`store` is not available: answers are recorded for the rollout and not for the agent")


def _translate_choice(choice: str | Json) -> str | Json:
    if isinstance(choice, str):
        return choice
    if choice.get("type") == "allowed_tools":
        return str(choice.get("mode", "auto"))
    name = str(choice.get("name") or choice.get("type"))
    return {"type": "function", "function": {"name": flatten_name(name, str(choice.get("namespace") or ""))}}


def _translate_format(wanted: Json) -> dict[str, Any]:
    if wanted.get("type") == "json_object":
        return {"response_format": {"type": "json_object"}}
    if wanted.get("type") != "json_schema":
        return {}
    schema = {key: wanted[key] for key in ("name", "description", "schema", "strict") if wanted.get(key) is not None}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
