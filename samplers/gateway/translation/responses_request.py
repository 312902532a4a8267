"""A request of Responses as one of chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from samplers.gateway.json_text import Json
from samplers.gateway.translation.parts import (
    join_text,
    open_reasoning,
    read_text,
    refuse,
    split_images,
    to_chat_content,
)
from samplers.gateway.translation.tool_table import BUILT_IN_ITEMS, ToolTable, flatten_name, read_call

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
_CALL_ITEMS = frozenset(("function_call", "custom_tool_call", *BUILT_IN_ITEMS))
_OUTPUT_SUFFIX = "_output"
_SKIPPED_ITEMS = frozenset(("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"))


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
        for message in _read_item(item):
            _append_message(messages, message)
    return messages


def _append_message(messages: list[Json], message: Json) -> None:
    last = messages[-1] if messages else {}
    if message["role"] == "assistant" == last.get("role"):
        _merge_assistant(last, message)
    elif message["role"] == "system" and len(messages) == 1 and last.get("role") == "system":
        last["content"] = f"{last['content']}\n\n{message['content']}"  # templates accept one at the beginning
    else:
        messages.append(message)


def _merge_assistant(last: Json, message: Json) -> None:
    for key in ("reasoning_content", "content"):
        if message.get(key):
            last[key] = f"{last[key]}\n{message[key]}" if last.get(key) else message[key]
    for key in ("tool_calls", "thinking_blocks"):
        if message.get(key):
            last[key] = [*last.get(key, ()), *message[key]]


def _read_item(item: Json) -> Iterator[Json]:
    kind = item.get("type") or "message"
    if kind in _CALL_ITEMS:
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
