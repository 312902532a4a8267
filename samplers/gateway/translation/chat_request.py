"""A request of chat completions as a limit of Messages."""

from __future__ import annotations

from typing import Any

from backends.llm.conversations.messages import ERROR_PREFIX
from backends.llm.conversations.parts import join_text, parse_arguments, refuse, to_blocks
from samplers.gateway.json_text import Json

DEFAULT_MAX_TOKENS = 8192
"""Length of an answer where the agent sets none: Messages require one."""
MAX_TEMPERATURE = 1.0

_COPIED = ("model", "top_p", "top_k", "stream")
_TRANSLATED = frozenset(
    (
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stop",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "stream_options",
        *_COPIED,
    )
)


def translate_chat_request(body: Json) -> tuple[Json, list[str]]:
    """Return a request of Messages and the names of parameters that have no counterpart.

    Raises:
        GatewayFailure: it holds a part that cannot be translated.
    """
    made: Json = {key: body[key] for key in _COPIED if key in body}
    made["max_tokens"] = body.get("max_tokens") or body.get("max_completion_tokens") or DEFAULT_MAX_TOKENS
    system, made["messages"] = _translate_conversation(body.get("messages"))
    if system:
        made["system"] = system
    if body.get("temperature") is not None:
        made["temperature"] = min(body["temperature"], MAX_TEMPERATURE)
    if body.get("stop"):
        made["stop_sequences"] = [body["stop"]] if isinstance(body["stop"], str) else body["stop"]
    if body.get("tools"):
        made["tools"] = [_translate_tool(tool) for tool in body["tools"]]
        made |= _translate_choice(body)
    made |= _translate_format(body.get("response_format") or {})
    return made, sorted(set(body) - _TRANSLATED)


def _translate_conversation(messages: object) -> tuple[list[Json], list[Json]]:
    """Return the system blocks, those before the first turn, and the turns, in which roles alternate."""
    if not isinstance(messages, list):
        raise refuse("`messages` is missing")
    system: list[Json] = []
    turns: list[Json] = []
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer") and not turns:
            system += to_blocks(message.get("content"))
            continue
        role, blocks = _translate_message(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return system, turns


def _translate_message(message: Json) -> tuple[str, list[Json]]:
    if message.get("role") == "tool":
        text = join_text(message.get("content"))
        result: Json = {"type": "tool_result", "tool_use_id": message.get("tool_call_id", ""), "content": text}
        return "user", [result | ({"is_error": True} if text.startswith(ERROR_PREFIX) else {})]
    if message.get("role") != "assistant":
        return "user", to_blocks(message.get("content"))
    blocks = [*(message.get("thinking_blocks") or ()), *to_blocks(message.get("content"))]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = parse_arguments(function.get("arguments"))
        blocks.append({"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments})
    return "assistant", blocks


def _translate_tool(tool: Json) -> Json:
    function = tool.get("function")
    if not isinstance(function, dict):
        raise refuse(f"the tool of type {tool.get('type')!r} cannot be translated")
    made: Json = {
        "name": function["name"],
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }
    return made | ({"description": function["description"]} if function.get("description") else {})


def _translate_choice(body: Json) -> dict[str, Any]:
    choice = body.get("tool_choice") or "auto"
    kinds = {"auto": "auto", "required": "any", "none": "none"}
    made: Json = (
        {"type": "tool", "name": (choice.get("function") or {}).get("name", "")}
        if isinstance(choice, dict)
        else {"type": kinds.get(choice, "auto")}
    )
    if body.get("parallel_tool_calls") is False and made["type"] != "none":
        made["disable_parallel_tool_use"] = True
    return {"tool_choice": made} if made != {"type": "auto"} else {}


def _translate_format(wanted: Json) -> dict[str, Any]:
    if wanted.get("type") != "json_schema":
        return {}
    schema = (wanted.get("json_schema") or {}).get("schema") or {}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
