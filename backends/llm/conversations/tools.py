"""Tools of stored conversations, in the forms of the model APIs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from backends.llm.conversations.messages import CLIENT_TOOLS, translate_tool
from backends.llm.conversations.parts import Json, refuse
from backends.llm.conversations.tool_table import BUILT_IN_TOOLS, ToolTable


def read_tools(value: object) -> list[Json]:
    """Return tools as chat completions have them.

    Args:
        value: list of tools of any API, or of functions; JSON of such a list; or nothing.

    Raises:
        ConversationError: it is something else, or a tool that runs elsewhere.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise refuse("its tools are no JSON") from error
    if not value:
        return []
    if not isinstance(value, list) or not all(isinstance(tool, Mapping) for tool in value):
        raise refuse("its tools are no list of objects")
    return [_read_tool(dict(tool)) for tool in value]


def _read_tool(tool: Json) -> Json:
    kind = str(tool.get("type") or "")
    function: Any = tool.get("function")
    if isinstance(function, Mapping):
        made: Json = {"type": "function", "function": dict(function)}
    elif "input_schema" in tool or kind.startswith(tuple(CLIENT_TOOLS)):
        made = translate_tool({"name": "", **tool})
    elif kind in ("custom", *BUILT_IN_TOOLS):
        made = ToolTable([tool]).functions[0]
    elif kind in ("", "function"):
        made = {"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}
    else:
        raise refuse(f"the tool of type {kind!r} is not read")
    if not made["function"].get("name"):
        raise refuse("a tool has no name")
    return made
