"""A request of Messages as one of chat completions."""

from __future__ import annotations

from typing import Any

from backends.llm.conversations.messages import read_messages, translate_tool
from samplers.gateway.json_text import Json

_COPIED = ("model", "temperature", "top_p", "max_tokens", "stream")
_TRANSLATED = frozenset(("system", "messages", "tools", "tool_choice", "stop_sequences", "output_config", *_COPIED))


def translate_messages_request(body: Json) -> tuple[Json, list[str]]:
    """Return a request of chat completions and the names of parameters that have no counterpart.

    Raises:
        GatewayFailure: it holds a part that cannot be translated.
    """
    chat: Json = {key: body[key] for key in _COPIED if key in body}
    chat["messages"] = list(read_messages(body))
    if body.get("tools"):
        chat["tools"] = [translate_tool(tool) for tool in body["tools"]]
    if body.get("tool_choice"):
        chat |= _translate_choice(body["tool_choice"])
    if body.get("stop_sequences"):
        chat["stop"] = body["stop_sequences"]
    output = body.get("output_config") or {}
    if (output.get("format") or {}).get("type") == "json_schema":
        schema = {"name": "answer", "strict": True, "schema": output["format"].get("schema", {})}
        chat["response_format"] = {"type": "json_schema", "json_schema": schema}
    return chat, sorted(set(body) - _TRANSLATED)


def _translate_choice(choice: Json) -> dict[str, Any]:
    kinds: dict[str, Any] = {"auto": "auto", "any": "required", "none": "none"}
    named = {"type": "function", "function": {"name": choice.get("name", "")}}
    made = {"tool_choice": named if choice.get("type") == "tool" else kinds.get(str(choice.get("type")), "auto")}
    return made | ({"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {})
