"""Conversations and tools in the form of Anthropic's Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator

from backends.llm.conversations.parts import Json, join_text, refuse, split_images, to_chat_content

ERROR_PREFIX = "Error: "
"""Before the result of a failed tool: chat completions have no mark for it."""

_SHELL_SCHEMA: Json = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "restart": {"type": "boolean"}},
}
_EDITOR_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert"]},
        "path": {"type": "string"},
        "file_text": {"type": "string"},
        "old_str": {"type": "string"},
        "new_str": {"type": "string"},
        "insert_line": {"type": "integer"},
        "insert_text": {"type": "string"},
        "view_range": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["command", "path"],
}
CLIENT_TOOLS = {
    "bash_": ("Run commands in a bash shell.", _SHELL_SCHEMA),
    "text_editor_": ("View, create and edit files.", _EDITOR_SCHEMA),
}
"""Beginning of the type of Anthropic's tools that the agent runs -> description and schema for other models."""


def read_messages(body: Json) -> Iterator[Json]:
    """Yield the conversation of a request of Messages as messages of chat completions."""
    system = join_text(body.get("system"))
    if system:
        yield {"role": "system", "content": system}
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise refuse("`messages` is missing")
    for message in messages:
        role, content = message.get("role"), message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if role == "assistant":
            yield read_assistant(blocks)
        elif role == "system":
            yield {"role": "system", "content": join_text(blocks)}
        else:
            yield from read_user(blocks)


def read_assistant(blocks: list[Json]) -> Json:
    """Return an assistant's message; blocks of tools that ran elsewhere are left out."""
    message: Json = {"role": "assistant", "content": join_text([b for b in blocks if b.get("type") == "text"])}
    thinking = [block for block in blocks if block.get("type") in ("thinking", "redacted_thinking")]
    reasoning = "\n".join(block["thinking"] for block in thinking if block.get("thinking"))
    if reasoning:
        message["reasoning_content"] = reasoning
    if any(block.get("signature") or block.get("data") for block in thinking):
        message["thinking_blocks"] = thinking
    calls = [_translate_call(block) for block in blocks if block.get("type") == "tool_use"]
    if calls:
        message["tool_calls"] = calls
    return message


def _translate_call(block: Json) -> Json:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    return {"id": block.get("id", ""), "type": "function", "function": {"name": block["name"], "arguments": arguments}}


def read_user(blocks: list[Json]) -> Iterator[Json]:
    """Yield the results of tools, then the text that the user wrote; images of results become the user's."""
    images: list[Json] = []
    rest: list[Json] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            text, pictures = split_images(block.get("content"))
            images += pictures
            failed = block.get("is_error") and not text.startswith(ERROR_PREFIX)
            content = f"{ERROR_PREFIX}{text}" if failed else text
            yield {"role": "tool", "tool_call_id": block.get("tool_use_id", ""), "content": content}
        else:
            rest.append(block)
    if images or rest:
        yield {"role": "user", "content": to_chat_content([*images, *rest])}


def translate_tool(tool: Json) -> Json:
    """Return a tool of Messages as one of chat completions."""
    kind = str(tool.get("type") or "custom")
    known = next((entry for start, entry in CLIENT_TOOLS.items() if kind.startswith(start)), None)
    if "input_schema" not in tool and not known:
        raise refuse(f"the tool {tool.get('name', kind)!r} of type {kind!r} cannot be translated")
    description, schema = known or ("", tool.get("input_schema"))
    function = {
        "name": tool["name"],
        "description": tool.get("description", description),
        "parameters": tool.get("input_schema", schema),
    }
    return {"type": "function", "function": function}
