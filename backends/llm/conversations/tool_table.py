"""Tools of Responses as functions, and the calls of these functions as items of Responses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from backends.llm.call_pieces import read_arguments
from backends.llm.conversations.parts import Json, join_text, parse_arguments, refuse

NAMESPACE_SEPARATOR = "__"
_INPUT = "input"
_COMMAND_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "command": {"type": "array", "items": {"type": "string"}, "description": "Program and arguments."},
        "working_directory": {"type": "string"},
        "timeout_ms": {"type": "integer"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["command"],
}
_COMMANDS_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "commands": {"type": "array", "items": {"type": "string"}, "description": "Shell commands."},
        "timeout_ms": {"type": "integer"},
        "max_output_length": {"type": "integer"},
    },
    "required": ["commands"],
}
_PATCH_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
        "path": {"type": "string"},
        "diff": {"type": "string"},
    },
    "required": ["type", "path"],
}


@dataclass(frozen=True, kw_only=True)
class BuiltInTool:
    """A tool of Responses that the agent runs. `item`: type of its calls; `holder`: their key of the arguments."""

    item: str
    holder: str
    description: str
    schema: Json
    fixed: Json = field(default_factory=dict)
    """Part of the arguments that is always the same and no parameter."""


BUILT_IN_TOOLS = {
    "local_shell": BuiltInTool(
        item="local_shell_call",
        holder="action",
        description="Run a program.",
        schema=_COMMAND_SCHEMA,
        fixed={"type": "exec"},
    ),
    "shell": BuiltInTool(
        item="shell_call", holder="action", description="Run commands in a shell.", schema=_COMMANDS_SCHEMA
    ),
    "apply_patch": BuiltInTool(
        item="apply_patch_call",
        holder="operation",
        description="Create, change or delete a file.",
        schema=_PATCH_SCHEMA,
    ),
}
BUILT_IN_ITEMS = {tool.item: name for name, tool in BUILT_IN_TOOLS.items()}


@dataclass(frozen=True, kw_only=True)
class ToolForm:
    """How a tool is called in Responses. `kind`: function, custom, or a key of BUILT_IN_TOOLS."""

    kind: str
    name: str
    namespace: str = ""


class ToolTable:
    """The tools of a request: name of the function that the model sees -> how the agent calls it."""

    def __init__(self, tools: Iterable[Json] = ()) -> None:
        self._forms: dict[str, ToolForm] = {}
        self.functions: list[Json] = []
        """The tools as of chat completions."""
        for tool in tools:
            self._add(tool, "")

    def _add(self, tool: Json, namespace: str) -> None:
        kind = str(tool.get("type"))
        if kind == "namespace":
            for inner in tool.get("tools") or ():
                self._add(inner, str(tool.get("name", "")))
            return
        if kind not in ("function", "custom", *BUILT_IN_TOOLS):
            raise refuse(f"the tool of type {kind!r} cannot be translated")
        form = ToolForm(kind=kind, name=str(tool.get("name", kind)), namespace=namespace)
        name = flatten_name(form.name, namespace)
        self._forms[name] = form
        self.functions.append({"type": "function", "function": {"name": name} | _describe_tool(tool, kind)})

    def build_item(self, call: Json, *, status: str = "completed") -> Json:
        """Return the item of Responses for a call of chat completions."""
        function = call.get("function") or {}
        name, arguments = str(function.get("name", "")), function.get("arguments") or ""
        form = self._forms.get(name, ToolForm(kind="function", name=name))
        base: Json = {"id": f"fc_{call.get('id', '')}", "call_id": call.get("id", ""), "status": status}
        if form.kind == "custom":
            text = arguments if status == "in_progress" else read_custom_input(arguments)
            return base | {"type": "custom_tool_call", "name": form.name, "input": text}
        if form.kind in BUILT_IN_TOOLS:
            tool = BUILT_IN_TOOLS[form.kind]
            return base | {"type": tool.item, tool.holder: {**tool.fixed, **parse_arguments(arguments)}}
        made = base | {"type": "function_call", "name": form.name, "arguments": arguments}
        return made | ({"namespace": form.namespace} if form.namespace else {})

    def is_function(self, name: str) -> bool:
        """Return whether calls of a function are streamed as such."""
        return self._forms.get(name, ToolForm(kind="function", name=name)).kind == "function"


def flatten_name(name: str, namespace: str) -> str:
    """Return the name under which the model sees a tool."""
    return f"{namespace}{NAMESPACE_SEPARATOR}{name}" if namespace else name


def read_custom_input(arguments: str) -> str:
    """Return the text that a custom tool is called with; arguments that don't have it are that text."""
    text = parse_arguments(arguments).get(_INPUT)
    return text if isinstance(text, str) else arguments


def read_call(item: Json) -> Json:
    """Return the call of chat completions for an item of Responses."""
    kind = item["type"]
    if kind == "custom_tool_call":
        name, arguments = item.get("name"), json.dumps({_INPUT: item.get("input", "")}, ensure_ascii=False)
    elif kind in BUILT_IN_ITEMS:
        name = BUILT_IN_ITEMS[kind]
        tool = BUILT_IN_TOOLS[name]
        given = {k: v for k, v in (item.get(tool.holder) or {}).items() if k not in tool.fixed and v is not None}
        arguments = json.dumps(given, ensure_ascii=False)
    else:
        name, arguments = item.get("name"), read_arguments(item.get("arguments"))
    flat = flatten_name(str(name), str(item.get("namespace") or ""))
    call_id = item.get("call_id") or item.get("id") or ""
    return {"id": call_id, "type": "function", "function": {"name": flat, "arguments": arguments}}


def _describe_tool(tool: Json, kind: str) -> dict[str, Any]:
    """Return description and parameters of a tool."""
    if kind in BUILT_IN_TOOLS:
        return {"description": BUILT_IN_TOOLS[kind].description, "parameters": BUILT_IN_TOOLS[kind].schema}
    description = join_text(tool.get("description"))
    if kind == "function":
        parameters = tool.get("parameters") or {"type": "object", "properties": {}}
        strict = {"strict": tool["strict"]} if tool.get("strict") else {}
        return {"description": description, "parameters": parameters} | strict
    grammar = (tool.get("format") or {}).get("definition")
    syntax = (tool.get("format") or {}).get("syntax", "")
    if grammar:
        description = f"{description}\n\nThe input follows this {syntax} grammar:\n{grammar}".strip()
    schema = {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}
    return {"description": description, "parameters": schema}
