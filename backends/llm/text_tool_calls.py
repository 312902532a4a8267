"""Tool calls as text, for models without tool calls: the description of the tools and the parser of the calls.

A call is a fenced block of JSON::

    ```tool
    {"name": "run", "arguments": {"command": "ls"}}
    ```

A block marked `json`, or not marked, that contains such an object with a known tool name is also parsed, and so are
`<tool_call>` tags, which some models write regardless of the instructions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import json_repair

from backends.llm.base import Message, Tool, ToolCall
from backends.llm.response import NOT_AN_OBJECT, parse_tool_call

_BLOCK = re.compile(
    r"^[ \t]*```[ \t]*(?P<mark>\w*)[^\n]*\n(?P<fenced>.*?)(?:^[ \t]*```[ \t]*$|\Z)|"
    r"<tool_call>(?P<tagged>.*?)(?:</tool_call>|\Z)",
    re.DOTALL | re.MULTILINE,
)
BLOCK_LANGUAGES = ("tool", "tool_call", "tool_code")
INSTRUCTIONS = """\
You have tools. To use one, end your answer with one fenced block marked `tool` that holds one JSON object with `name` \
and `arguments`, and wait for the result:

```tool
{"name": "NAME", "arguments": {...}}
```

The tools, each with the JSON schema of its arguments:
"""


def describe_tools(tools: Sequence[Tool]) -> str:
    """Return the instructions for tool calls, with all tools."""
    return INSTRUCTIONS + "\n".join(f"- {t.name}: {t.description}\n  {json.dumps(t.parameters)}" for t in tools)


def build_text_messages(messages: Sequence[Message], tools: Sequence[Tool]) -> list[dict[str, str]]:
    """Return the conversation as messages of the API with tools as text and alternating roles."""
    turns = [("system", describe_tools(tools))] if tools else []
    for message in messages:
        if message.role == "tool":
            turns.append(("user", f"Result of `{message.tool_name}`:\n{message.text}"))
        else:
            blocks = [_format_call(call) for call in message.tool_calls]
            turns.append((message.role, "\n\n".join([part for part in (message.text, *blocks) if part])))
    # The instructions of the conversation precede those for tools.
    turns.sort(key=lambda turn: turn[0] != "system")
    if tools and len(turns) > 1 and turns[1][0] == "system":
        turns[0], turns[1] = turns[1], turns[0]
    merged: list[dict[str, str]] = []
    for role, text in turns:
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += f"\n\n{text}"
        else:
            merged.append({"role": role, "content": text})
    return merged


def extract_tool_calls(text: str, names: Collection[str], *, cut: bool = False) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text without tool calls, and the calls.

    `names` are the known tools; `cut`: the answer was cut off at its limit.
    """
    calls: list[ToolCall] = []

    def extract_call(block: re.Match[str]) -> str:
        marked = block["tagged"] is not None or block["mark"].lower() in BLOCK_LANGUAGES
        if not marked and block["mark"].lower() not in ("json", ""):
            return block[0]
        call = _parse_call(block["tagged"] or block["fenced"] or "", f"call_{len(calls) + 1}", names, marked, cut)
        if call is None:
            return block[0]
        calls.append(call)
        return ""

    rest = _BLOCK.sub(extract_call, text).strip()
    return rest, tuple(calls)


def _parse_call(content: str, call_id: str, names: Collection[str], marked: bool, cut: bool) -> ToolCall | None:
    """Return the call in a block, or None when there is none."""
    data = _load_json(content, repair=marked and not cut)
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        problem = "it was cut off at the limit of an answer: write less" if cut else NOT_AN_OBJECT
        return (
            ToolCall(id=call_id, name="", arguments=None, problem=f"{problem} with name and arguments")
            if marked
            else None
        )
    arguments = data.get("arguments", data.get("parameters", {}))
    if not marked and (data["name"] not in names or not isinstance(arguments, Mapping)):
        return None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return parse_tool_call(call_id, data["name"], text)


def _load_json(content: str, *, repair: bool) -> Any:
    try:
        return json.loads(content, strict=False)
    except ValueError:
        return json_repair.loads(content) if repair else None


def _format_call(call: ToolCall) -> str:
    return f"```tool\n{json.dumps({'name': call.name, 'arguments': call.arguments or {}})}\n```"
