"""Conversations in the forms of model APIs: a known conversation is written in each of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.samplers.forms.streams import TOOLS, Json, draw_arguments

EMPTY_FIELDS: list[Json] = [{}, {"tool_calls": None}, {"tool_calls": []}, {"function_call": None, "refusal": None}]
EMPTY_RESULTS: list[Json] = [{}, {"content": ""}, {"content": []}]
NO_ERRORS: list[Json] = [{}, {"is_error": False}]
MARKS: list[Json] = [{}, {"weight": 1}, {"name": None}, {"timestamp": "2026-01-01"}]
CACHE_MARKS: list[Json] = [{}, {"cache_control": {"type": "ephemeral"}}]
ITEM_TYPES: list[Json] = [{}, {"type": "message"}]
TEXTS = ("Fix the sum.", 'it\'s "so"\n', "ü ☃", "[tool_use]")


def draw_conversation(draw: random.Random) -> list[Json]:
    """Return a conversation of chat completions whose arguments are objects."""
    messages: list[Json] = []
    if draw.random() < 0.6:
        messages.append({"role": "system", "content": draw.choice(TEXTS)})
    messages.append({"role": "user", "content": draw.choice(TEXTS)})
    for turn in range(draw.randint(0, 3)):
        calls = [make_call(f"c{turn}_{at}", draw) for at in range(draw.randint(1, 3))]
        messages.append(make_answer(draw.choice(["", *TEXTS]), draw, calls))
        for call in calls:
            content = draw.choice(["", *TEXTS])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        if draw.random() < 0.3:
            messages.append({"role": "user", "content": draw.choice(TEXTS)})
    messages.append(make_answer(draw.choice(TEXTS), draw, []))
    return messages


def make_call(call_id: str, draw: random.Random) -> Json:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": draw.choice(TOOLS), "arguments": draw_arguments(draw)},
    }


def make_answer(text: str, draw: random.Random, calls: list[Json]) -> Json:
    thought = {"reasoning_content": draw.choice(TEXTS)} if draw.random() < 0.4 else {}
    return {"role": "assistant", "content": text, **thought, **({"tool_calls": calls} if calls else {})}


def write_text(text: str, draw: random.Random, kind: str = "text") -> Any:
    """Return a content: text, or a list of one part."""
    listed = [{"type": kind, "text": text, **draw.choice(CACHE_MARKS)}]
    return draw.choice([text, listed if text else []])


def write_arguments(arguments: Json, draw: random.Random) -> Any:
    forms = [arguments, json.dumps(arguments), json.dumps(arguments, ensure_ascii=False)]
    return draw.choice([*forms, *([] if arguments else [None])])


def write_chat(messages: Sequence[Json], draw: random.Random) -> Json:
    """Return a row of chat completions."""
    written: list[Json] = []
    for message in messages:
        made = {**message, "content": write_text(message["content"], draw)}
        if message["role"] == "system":
            made["role"] = draw.choice(["system", "developer"])
        if thought := made.pop("reasoning_content", None):
            made[draw.choice(["reasoning_content", "reasoning", "thinking"])] = thought
        if message.get("tool_calls"):
            made["content"] = made["content"] or draw.choice([None, "", []])
            made["tool_calls"] = [write_chat_call(call, draw) for call in message["tool_calls"]]
        else:
            made |= draw.choice(
                [{}, {"tool_calls": None}, {"tool_calls": []}, {"function_call": None, "refusal": None}]
            )
        written.append(made | draw.choice([{}, {"weight": 1}, {"name": None}, {"timestamp": "2026-01-01"}]))
    return {"messages": written}


def write_chat_call(call: Json, draw: random.Random) -> Json:
    """Return a call as chat completions and their templates have it."""
    function = {"name": call["function"]["name"], "arguments": write_arguments(call["function"]["arguments"], draw)}
    kind = draw.choice([{}, {"type": "function"}])
    return {
        "id": call["id"],
        **draw.choice([{**kind, "function": function}, function, {"index": 0, "function": function}]),
    }


def write_former_chat(messages: Sequence[Json], draw: random.Random) -> Json:
    """Return a row of the earlier form, in which a message has a single call without id."""
    written = []
    names: dict[str, str] = {}
    for message in messages:
        made = dict(message)
        if calls := made.pop("tool_calls", None):
            (call,) = calls
            names[call["id"]] = call["function"]["name"]
            arguments = write_arguments(call["function"]["arguments"], draw)
            made["function_call"] = {"name": call["function"]["name"], "arguments": arguments}
            made["content"] = made["content"] or draw.choice(["", None])
        if call_id := made.pop("tool_call_id", None):
            made |= {"role": "function", "name": names[call_id]}
        written.append(made)
    return {"messages": written}


def write_anthropic(messages: Sequence[Json], draw: random.Random) -> Json:
    """Return a row of Messages."""
    row: Json = {"messages": []}
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "system":
            row["system"] = write_text(content, draw)
        elif role == "user":
            add_blocks(row["messages"], "user", [{"type": "text", "text": content}], draw)
        elif role == "tool":
            shown = {"content": write_text(content, draw)} if content else draw.choice(EMPTY_RESULTS)
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], **shown}
            add_blocks(row["messages"], "user", [result | draw.choice(NO_ERRORS)], draw)
        else:
            add_blocks(row["messages"], "assistant", write_answer_blocks(message), draw)
    return row


def add_blocks(messages: list[Json], role: str, blocks: list[Json], draw: random.Random) -> None:
    """Add blocks, those of a turn of the user in one message."""
    is_text = len(blocks) == 1 and blocks[0]["type"] == "text"
    if role == "user" and messages and messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
        messages[-1]["content"] += blocks
    else:
        messages.append({"role": role, "content": blocks[0]["text"] if is_text and draw.random() < 0.5 else blocks})


def write_answer_blocks(message: Json) -> list[Json]:
    blocks: list[Json] = []
    if thought := message.get("reasoning_content"):
        blocks.append({"type": "thinking", "thinking": thought, "signature": "c2ln"})
    if message["content"]:
        blocks.append({"type": "text", "text": message["content"], "citations": None})
    for call in message.get("tool_calls", ()):
        function = call["function"]
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": function["arguments"]})
    return blocks


def write_items(messages: Sequence[Json], draw: random.Random) -> Json:
    """Return a row of items of Responses."""
    items: list[Json] = []
    for message in messages:
        role, content = message["role"], message["content"]
        kind = draw.choice(ITEM_TYPES)
        if role == "tool":
            output = write_text(content, draw, "input_text")
            items.append({"type": "function_call_output", "call_id": message["tool_call_id"], "output": output})
        elif role == "assistant":
            items += write_answer_items(message, draw)
        else:
            shown = draw.choice(["system", "developer"]) if role == "system" else role
            items.append({**kind, "role": shown, "content": write_text(content, draw, "input_text")})
    return {"messages": items}


def write_answer_items(message: Json, draw: random.Random) -> list[Json]:
    items: list[Json] = []
    if thought := message.get("reasoning_content"):
        kinds = {"summary": "summary_text", "content": "reasoning_text"}
        key = draw.choice(list(kinds))
        items.append({"type": "reasoning", "id": "rs", "summary": [], key: [{"type": kinds[key], "text": thought}]})
    if message["content"]:
        part = {"type": "output_text", "text": message["content"], "annotations": [], "logprobs": []}
        items.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]})
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = draw.choice([function["arguments"], json.dumps(function["arguments"])])
        made = {"type": "function_call", "call_id": call["id"], "name": function["name"], "arguments": arguments}
        items.append(made | draw.choice([{}, {"id": "fc", "status": "completed"}]))
    return items


def write_responses(messages: Sequence[Json], draw: random.Random) -> Json:
    """Return a row whose answers are complete responses, among items, as mini-swe-agent stores them."""
    written: list[Json] = []
    for message in messages:
        if message["role"] == "assistant":
            output = write_answer_items(message, draw)
            written.append(
                {"object": "response", "id": "r", "status": "completed", "output": output, "extra": {"cost": 1}}
            )
        else:
            written += write_items([message], draw)["messages"]
    return {"messages": written}


WRITERS: Mapping[str, Callable[[Sequence[Json], random.Random], Json]] = {
    "chat completions": write_chat,
    "chat completions with `function_call` and `function`": write_former_chat,
    "Messages": write_anthropic,
    "items of Responses": write_items,
    "complete responses among items": write_responses,
}
READ: Mapping[str, str] = {
    "chat completions": "content as text, null or parts; arguments as text, object or null; "
    "`reasoning_content`, `reasoning`, `thinking`; `refusal`",
    "chat completions with `function_call` and `function`": "the calls have ids by their places",
    "Messages": "`thinking`, `text`, `tool_use`, `tool_result` with text or blocks, `image`; `system` as a field",
    "items of Responses": "`message`, `function_call`, `function_call_output`, `reasoning`, custom and built-in calls",
    "complete responses among items": "the items of their `output`",
}
"""Form -> the parts of it that are read."""
FORMER = "chat completions with `function_call` and `function`"

USER = {"role": "user", "content": "Go."}
DONE = {"role": "assistant", "content": "Done."}


def make_call_entry(**fields: Any) -> Json:
    return {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "bash", "arguments": "{}"}} | fields]}


def make_parts(role: str, *parts: Any) -> Json:
    return {"role": role, "content": list(parts)}


REFUSED: Mapping[str, tuple[Any, str]] = {
    "roles `ai`, `human`, `environment` and others": (
        {"role": "ai", "content": "x"},
        'message 1: the role "ai" is unknown',
    ),
    "entries without role and type": ({"content": "x"}, "message 1: it has neither a role nor a type"),
    "entries of another library's type": (
        {"type": "human", "content": "x"},
        "message 1: an item of type 'human' is not read",
    ),
    "calls of tools that ran elsewhere": (
        {"type": "web_search_call"},
        "an item of type 'web_search_call' is not read",
    ),
    "fields that are not known": ({**DONE, "toolCalls": [{}]}, "message 1: the field `toolCalls` is not read"),
    "calls of a user": ({**USER, "tool_calls": [{}]}, "message 1: the field `tool_calls` is not read"),
    "encrypted thoughts": (
        make_parts("assistant", {"type": "redacted_thinking", "data": "x"}),
        "'redacted_thinking' is encrypted",
    ),
    "encrypted reasoning": (
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        "its reasoning is encrypted",
    ),
    "audio, files and other parts": (
        make_parts("user", {"type": "input_audio", "input_audio": {}}),
        "content of type 'input_audio' is not read",
    ),
    "images by file id": (
        make_parts("user", {"type": "input_image", "file_id": "f"}),
        "the field `file_id` is not read",
    ),
    "calls of the server": (
        make_parts("assistant", {"type": "server_tool_use", "name": "x"}),
        "content of type 'server_tool_use' is not read",
    ),
    "images of the assistant": (
        make_parts("assistant", {"type": "image_url", "image_url": {}}),
        "content of type 'image_url' is not read in a message of the assistant",
    ),
    "parts without type": (
        make_parts("user", {"image": "x"}),
        "content or calls of message 1 have another form: a part of the content has no type",
    ),
    "content that is a number or an object": (
        {"role": "user", "content": {"a": 1}},
        "the content is neither text nor a list of parts",
    ),
    "arguments that are a list or a number": (
        make_call_entry(function={"name": "bash", "arguments": [1]}),
        "the arguments of a call are neither text nor an object",
    ),
    "input that is not an object": (
        make_parts("assistant", {"type": "tool_use", "name": "bash", "input": "ls"}),
        "the `input` of a call is not an object",
    ),
    "calls without a name": (
        make_call_entry(function={"arguments": "{}"}),
        "content or calls of message 1 have another form: a call has no name",
    ),
    "calls that are no list": ({"role": "assistant", "tool_calls": {"a": 1}}, "the calls are no list"),
    "calls that are text": ({"role": "assistant", "tool_calls": ["bash"]}, "call 0 is not an object"),
    "calls of another type": (make_call_entry(type="computer"), "call 0 of type 'computer' is not read"),
    "fields of a call that are not known": (make_call_entry(result="x"), "the field `result` is not read"),
    "results of functions that were not called": (
        {"role": "function", "name": "f", "content": "x"},
        'it is the result of "f", which was not called',
    ),
    "reasoning that is not text": ({**DONE, "reasoning": {"a": 1}}, "the field `reasoning` is not text"),
    "output that is a number": (
        {"type": "function_call_output", "call_id": "a", "output": 5},
        "the `output` is neither text nor a list of parts",
    ),
}
"""Form of an entry -> the entry, and the words with which the conversation is refused."""
