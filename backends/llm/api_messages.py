"""Requests of the chat completions API, as data."""

from __future__ import annotations

import json
from typing import Any

from backends.llm.base import Message, ResponseSchema, Tool


def build_api_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool in the format of the API."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def build_response_format(response_schema: ResponseSchema) -> dict[str, Any]:
    """Return a response schema in the format of the API."""
    schema = {"name": response_schema.name, "strict": True, "schema": dict(response_schema.schema)}
    return {"type": "json_schema", "json_schema": schema}


def build_api_message(message: Message) -> dict[str, Any]:
    """Return a message in the format of the API. Arguments are sent as the model wrote them.

    Unparsable arguments are sent as `{}`, because servers reject them.
    """
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.written or json.dumps(call.arguments or {})},
        }
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}
