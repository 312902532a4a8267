"""Tools in words, for models that know no tool calls: how they are told of them, and how their calls are read.

A call is a fenced block of JSON::

    ```tool
    {"name": "run", "arguments": {"command": "ls"}}
    ```

Also read are a block marked `json` or not at all that holds such an object with a known name, and `<tool_call>` tags,
which some models write whatever they are told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import json_repair

from backends.llm.answers import NO_OBJECT, tool_call
from backends.llm.base import Message, Tool, ToolCall

_BLOCK = re.compile(
    r"^[ \t]*```[ \t]*(?P<mark>\w*)[^\n]*\n(?P<fenced>.*?)(?:^[ \t]*```[ \t]*$|\Z)|"
    r"<tool_call>(?P<tagged>.*?)(?:</tool_call>|\Z)",
    re.DOTALL | re.MULTILINE,
)
MARKS = ("tool", "tool_call", "tool_code")
HOW = """\
You have tools. To use one, end your answer with one fenced block marked `tool` that holds one JSON object with `name` \
and `arguments`, and wait for the result:

```tool
{"name": "NAME", "arguments": {...}}
```

The tools, each with the JSON schema of its arguments:
"""


def described(tools: Sequence[Tool]) -> str:
    """What a model is told."""
    return HOW + "\n".join(f"- {t.name}: {t.description}\n  {json.dumps(t.parameters)}" for t in tools)


def in_words(messages: Sequence[Message], tools: Sequence[Tool]) -> list[dict[str, str]]:
    """The conversation as messages of the API in which tools are talked of only in words, speakers alternating."""
    told = [("system", described(tools))] if tools else []
    for message in messages:
        if message.role == "tool":
            told.append(("user", f"Result of `{message.tool}`:\n{message.text}"))
        else:
            blocks = [_written(call) for call in message.calls]
            told.append((message.role, "\n\n".join([part for part in (message.text, *blocks) if part])))
    # What is said first goes first: instructions, then how to use tools.
    told.sort(key=lambda one: one[0] != "system")
    if tools and len(told) > 1 and told[1][0] == "system":
        told[0], told[1] = told[1], told[0]
    merged: list[dict[str, str]] = []
    for role, text in told:
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += f"\n\n{text}"
        else:
            merged.append({"role": role, "content": text})
    return merged


def read_calls(text: str, names: Collection[str], *, cut: bool = False) -> tuple[str, tuple[ToolCall, ...]]:
    """(the text without them, the calls in it). `names`: the tools there are; `cut`: the answer ended at its limit."""
    calls: list[ToolCall] = []

    def taken(block: re.Match[str]) -> str:
        marked = block["tagged"] is not None or block["mark"].lower() in MARKS
        if not marked and block["mark"].lower() not in ("json", ""):
            return block[0]
        found = _call(block["tagged"] or block["fenced"] or "", f"call_{len(calls) + 1}", names, marked, cut)
        if found is None:
            return block[0]
        calls.append(found)
        return ""

    rest = _BLOCK.sub(taken, text).strip()
    return rest, tuple(calls)


def _call(content: str, call_id: str, names: Collection[str], marked: bool, cut: bool) -> ToolCall | None:
    """The call a block holds; None when it is none."""
    data = _loaded(content, repair=marked and not cut)
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        problem = "it was cut off at the limit of an answer: write less" if cut else NO_OBJECT
        return (
            ToolCall(id=call_id, name="", arguments=None, problem=f"{problem} with name and arguments")
            if marked
            else None
        )
    arguments = data.get("arguments", data.get("parameters", {}))
    if not marked and (data["name"] not in names or not isinstance(arguments, Mapping)):
        return None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return tool_call(call_id, data["name"], text)


def _loaded(content: str, *, repair: bool) -> Any:
    try:
        return json.loads(content, strict=False)
    except ValueError:
        return json_repair.loads(content) if repair else None


def _written(call: ToolCall) -> str:
    return f"```tool\n{json.dumps({'name': call.name, 'arguments': call.arguments or {}})}\n```"
