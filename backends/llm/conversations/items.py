"""Conversations in the form of OpenAI's Responses: a list of items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from backends.llm.conversations.parts import (
    Json,
    join_text,
    open_reasoning,
    read_text,
    refuse,
    split_images,
    to_chat_content,
)
from backends.llm.conversations.tool_table import BUILT_IN_ITEMS, read_call

CALL_ITEMS = frozenset(("function_call", "custom_tool_call", *BUILT_IN_ITEMS))
_OUTPUT_SUFFIX = "_output"
OUTPUT_ITEMS = frozenset(
    ("function_call_output", "custom_tool_call_output", *(f"{item}{_OUTPUT_SUFFIX}" for item in BUILT_IN_ITEMS))
)
_SKIPPED_ITEMS = frozenset(("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"))


def read_items(body: Json) -> list[Json]:
    """Return the conversation of a request of Responses as messages of chat completions.

    Reasoning, text and calls that follow each other are a message of the assistant.
    """
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise refuse("`input` is missing")
    messages: list[Json] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": join_text(body["instructions"])})
    for item in items:
        for message in read_item(item):
            _append_message(messages, message)
    return messages


def _append_message(messages: list[Json], message: Json) -> None:
    last = messages[-1] if messages else {}
    if message["role"] == "assistant" == last.get("role"):
        merge_assistant(last, message)
    elif message["role"] == "system" and len(messages) == 1 and last.get("role") == "system":
        last["content"] = f"{last['content']}\n\n{message['content']}"  # templates accept one at the beginning
    else:
        messages.append(message)


def merge_assistant(last: Json, message: Json) -> None:
    """Add reasoning, text and calls of a message to the message of the assistant before it."""
    for key in ("reasoning_content", "content"):
        if message.get(key):
            last[key] = f"{last[key]}\n{message[key]}" if last.get(key) else message[key]
    for key in ("tool_calls", "thinking_blocks"):
        if message.get(key):
            last[key] = [*last.get(key, ()), *message[key]]


def read_item(item: Json) -> Iterator[Json]:
    """Yield the messages of an item; items of tools that ran elsewhere have none."""
    kind = item.get("type") or "message"
    if kind in CALL_ITEMS:
        yield {"role": "assistant", "content": "", "tool_calls": [read_call(item)]}
    elif kind.endswith(_OUTPUT_SUFFIX):
        yield from _read_output(item)
    elif kind == "reasoning":
        yield _read_reasoning(item)
    elif kind == "message":
        yield _read_message(item)
    elif kind not in _SKIPPED_ITEMS:
        raise refuse(f"an item of type {kind!r} cannot be translated")


def _read_message(item: Json) -> Json:
    role, content = item.get("role"), item.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    if role == "assistant":
        return {"role": role, "content": join_text(parts)}
    if role in ("system", "developer"):
        return {"role": "system", "content": join_text(parts)}
    return {"role": "user", "content": to_chat_content(parts)}


def _read_output(item: Json) -> Iterator[Json]:
    output = item.get("output")
    if isinstance(output, list) and output and "type" not in output[0]:  # of `shell`: a list of results
        output = [{"type": "text", "text": _format_result(part)} for part in output]
    text, images = split_images(output)
    yield {"role": "tool", "tool_call_id": item.get("call_id") or item.get("id") or "", "content": text}
    if images:
        yield {"role": "user", "content": images}


def _format_result(result: Mapping[str, Any]) -> str:
    outcome = result.get("outcome") or {}
    code = f"exit code {outcome['exit_code']}" if "exit_code" in outcome else str(outcome.get("type", ""))
    return "\n".join(part for part in (result.get("stdout"), result.get("stderr"), code) if part)


def _read_reasoning(item: Json) -> Json:
    sealed, blocks = open_reasoning(item.get("encrypted_content"))
    shown = item.get("content") or item.get("summary") or ()
    text = sealed or "\n".join(filter(None, map(read_text, shown)))
    message: Json = {"role": "assistant", "content": ""}
    return message | ({"reasoning_content": text} if text else {}) | ({"thinking_blocks": blocks} if blocks else {})
