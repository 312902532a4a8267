"""The reader of stored conversations, in the forms of the model APIs: chat completions, Messages, items of Responses.

Everything that a model was given or wrote is read, in the order in which it was written. A form, role or field that is
not known is refused by its name and place: nothing is left out without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.llm.call_pieces import CallPieceError, read_arguments
from backends.llm.conversations.items import CALL_ITEMS, OUTPUT_ITEMS, merge_assistant, read_item
from backends.llm.conversations.messages import read_assistant, read_user
from backends.llm.conversations.parts import (
    LINE_END,
    TEXT_TYPES,
    ConversationError,
    Json,
    join_text,
    open_reasoning,
    read_text,
    refuse,
)

ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Role of a message -> role in which it is read."""
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
ANNOTATIONS = frozenset(
    (
        *("id", "uuid", "message_id", "parent_id", "index", "status", "object", "type", "model", "provider", "agent"),
        *("created", "created_at", "timestamp", "time", "duration", "latency", "seconds", "usage", "cost", "tokens"),
        *("n_tokens", "num_tokens", "token_count", "finish_reason", "stop_reason", "stop_sequence", "logprobs"),
        *("weight", "loss", "train", "trainable", "loss_mask", "mask", "score", "reward", "extra", "metadata"),
        *("cache_control", "citations", "annotations", "provider_specific_fields", "extra_content", "signature"),
        *("parsed", "parsed_arguments", "caller", "media_type", "detail"),
    )
)
"""Fields that no model is given: marks of the source, measures, and marks for training and caches."""
_MESSAGE_FIELDS: Mapping[str, frozenset[str]] = {
    "system": frozenset(("role", "content", "name")),
    "user": frozenset(("role", "content", "name")),
    "tool": frozenset(("role", "content", "name", "tool_call_id")),
    "assistant": frozenset(
        ("role", "content", "name", "tool_calls", "function_call", "refusal", "thinking_blocks", "reasoning_details")
    )
    | frozenset(REASONING_FIELDS),
}
_IMAGE_FIELDS = ("image_url", "source")
_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(TEXT_TYPES, ("text",))
_PART_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "system": _TEXT_FIELDS,
    "user": {
        **_TEXT_FIELDS,
        "image": _IMAGE_FIELDS,
        "image_url": _IMAGE_FIELDS,
        "input_image": _IMAGE_FIELDS,
        "document": ("source",),
        "tool_result": ("tool_use_id", "content", "is_error"),
    },
    "tool": {
        **_TEXT_FIELDS,
        "image": _IMAGE_FIELDS,
        "image_url": _IMAGE_FIELDS,
        "input_image": _IMAGE_FIELDS,
    },
    "assistant": {
        **_TEXT_FIELDS,
        "refusal": ("refusal",),
        "thinking": ("thinking",),
        "tool_use": ("name", "input"),
    },
}
"""Role -> type of a part of its content -> fields of the part."""
_ITEM_FIELDS: Mapping[str, frozenset[str]] = {
    "reasoning": frozenset(("summary", "content", "encrypted_content")),
    **dict.fromkeys(OUTPUT_ITEMS, frozenset(("call_id", "output"))),
    **dict.fromkeys(
        CALL_ITEMS, frozenset(("call_id", "name", "namespace", "arguments", "input", "action", "operation"))
    ),
}
"""Type of an item of Responses -> its fields."""


class _FormError(ConversationError):
    """Content or calls of a message have another type than in any API."""


@dataclass(frozen=True)
class ReadMessage:
    """A message of chat completions. `source`: place of the entry that it was read from, from 0."""

    message: Json
    source: int


def read_conversation(entries: object, *, system: object = None) -> list[ReadMessage]:
    """Return the messages of a stored conversation in the form of chat completions.

    Contents are text, or a list of parts where there are images; arguments are JSON text; reasoning is in
    `reasoning_content`; results of tools are messages of their own.

    Args:
        entries: messages, or items of Responses, which may stand in complete responses.
        system: text or blocks of the system, where they stand outside of the messages.

    Raises:
        ConversationError: a form, role or field is not known; the text names it and its place.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise refuse("the messages are no list of objects")
    reader = _ConversationReader(has_items=any(entry.get("role") is None for entry in entries))
    made = _read_system(system, entries)
    for source, entry in enumerate(entries):
        try:
            for message in reader.read(dict(entry), source):
                reader.append(made, ReadMessage(message, source))
        except (_FormError, CallPieceError) as error:
            raise refuse(f"content or calls of message {source} have another form: {error}") from error
        except ConversationError as error:
            raise refuse(f"message {source}: {error}") from error
    return made


def _read_system(system: object, entries: Sequence[Mapping[str, Any]]) -> list[ReadMessage]:
    if not system:
        return []
    text = _read_plain(system, "system")
    # Some rows have the text in both places.
    first = entries[0] if entries else {}
    is_repeated = first.get("role") in ("system", "developer") and join_text(first.get("content")) == text
    return [] if is_repeated else [ReadMessage({"role": "system", "content": text}, 0)]


class _ConversationReader:
    """Reads the entries of a conversation in their order. `has_items`: whether it consists of items of Responses."""

    def __init__(self, *, has_items: bool) -> None:
        self._has_items = has_items
        self._open_calls: list[tuple[str, str]] = []
        """Name and id of the calls in the earlier form that have no result yet."""

    def read(self, entry: Json, source: int) -> Iterator[Json]:
        """Yield the messages of an entry."""
        if entry.get("role") is not None:
            yield from self._read_message(entry, source)
        elif isinstance(entry.get("output"), list) and entry.get("type") is None:
            for item in entry["output"]:
                if not isinstance(item, Mapping):
                    raise _FormError("an item of the `output` is not an object")
                yield from self.read(dict(item), source)
        else:
            yield from _read_checked_item(entry)

    def append(self, messages: list[ReadMessage], read: ReadMessage) -> None:
        """Add a message; items of the assistant that follow each other are a message."""
        last = messages[-1].message if messages else {}
        if self._has_items and read.message["role"] == "assistant" == last.get("role"):
            merge_assistant(last, read.message)
        else:
            messages.append(read)

    def _read_message(self, entry: Json, source: int) -> Iterator[Json]:
        role = ROLES.get(entry["role"]) if isinstance(entry["role"], str) else None
        if role is None:
            raise refuse(f"the role {json.dumps(entry['role'])} is unknown")
        check_fields(entry, _MESSAGE_FIELDS[role])
        parts = read_parts(entry.get("content"), role)
        name = {"name": entry["name"]} if entry.get("name") and role != "tool" else {}
        if role == "system":
            yield {"role": role, "content": join_text(parts), **name}
        elif role == "user":
            messages = list(read_user(parts)) or [{"role": "user", "content": ""}]
            yield from (message | (name if message["role"] == "user" else {}) for message in messages)
        elif role == "tool":
            yield from self._read_result(entry, parts)
        else:
            yield self._read_answer(entry, parts, source) | name

    def _read_result(self, entry: Json, parts: list[Json]) -> Iterator[Json]:
        call_id = entry.get("tool_call_id")
        if not call_id and (entry["role"] == "function" or self._open_calls):
            name = entry.get("name")
            known = [pair for pair in self._open_calls if name in (None, pair[0])]
            if not known:
                raise refuse(f"it is the result of {json.dumps(name)}, which was not called")
            self._open_calls.remove(known[0])
            call_id = known[0][1]
        for message in read_user([{"type": "tool_result", "tool_use_id": str(call_id or ""), "content": parts}]):
            # A result without id belongs to the call before it.
            yield {key: value for key, value in message.items() if key != "tool_call_id" or value}

    def _read_answer(self, entry: Json, parts: list[Json], source: int) -> Json:
        """Return the assistant's message."""
        refusal = entry.get("refusal")
        if refusal:
            parts = [*parts, {"type": "refusal", "refusal": refusal}]
        texts = [{"type": "text", "text": read_text(part)} if _is_text(part) else part for part in parts]
        message = read_assistant(texts)
        message.pop("thinking_blocks", None)
        if reasoning := read_all_reasoning(entry, message.get("reasoning_content", "")):
            message["reasoning_content"] = reasoning
        calls = list(message.get("tool_calls", ()))
        # Some clients store the calls in both forms.
        calls += [call for call in read_calls(entry.get("tool_calls")) if not call["id"] or call not in calls]
        if former := entry.get("function_call"):
            call = read_call_entry({"id": f"call_{source}", "function": former}, 0)
            self._open_calls.append((call["function"]["name"], call["id"]))
            calls.append(call)
        return message | ({"tool_calls": calls} if calls else {})


def check_fields(entry: Mapping[str, Any], known: frozenset[str] | tuple[str, ...]) -> None:
    """Check that all fields of an entry are read, or annotate it alone; empty fields may have any name.

    Raises:
        ConversationError: a field is not known.
    """
    for key, value in entry.items():
        if key not in known and key not in ANNOTATIONS and value not in (None, "", False, [], {}):
            raise refuse(f"the field `{key}` is not read")


def read_parts(content: object, role: str) -> list[Json]:
    """Return the parts of a content of any form.

    Raises:
        ConversationError: it has another type, or a part that a message of the role cannot have.
    """
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise _FormError("the content is neither text nor a list of parts")
    return [_read_part(part, role) for part in content]


def _read_part(part: object, role: str) -> Json:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, Mapping):
        raise _FormError("a part of the content is not an object")
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str):
        raise _FormError("a part of the content has no type")
    if kind == "redacted_thinking":
        raise refuse("content of type 'redacted_thinking' is encrypted and cannot be read")
    fields = _PART_FIELDS[role].get(kind)
    if fields is None:
        raise refuse(f"content of type {kind!r} is not read in a message of the {role}")
    check_fields(part, fields)
    if kind == "tool_use":
        arguments = part.get("input")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise _FormError("the `input` of a call is not an object")
        return {**part, "input": dict(arguments or {}), "name": _read_name(part)}
    if kind == "tool_result":
        return {**part, "content": read_parts(part.get("content"), "tool")}
    text = part.get(fields[0])
    if kind not in ("image", "image_url", "input_image", "document") and not isinstance(text, str | None):
        raise _FormError(f"the `{fields[0]}` of a part is not text")
    return {**part, "type": kind}


def _is_text(part: Json) -> bool:
    return part["type"] in TEXT_TYPES or part["type"] == "refusal"


def _read_plain(content: object, role: str) -> str:
    try:
        return join_text(read_parts(content, role))
    except ConversationError as error:
        raise refuse(f"`system`: {error}") from error


def read_all_reasoning(entry: Mapping[str, Any], beginning: str = "") -> str:
    """Return the reasoning of a message under any of its names, each text once.

    Raises:
        ConversationError: it is not text, or encrypted.
    """
    texts = [beginning] if beginning else []
    for name in REASONING_FIELDS:
        value = entry.get(name)
        if not isinstance(value, str | None):
            raise _FormError(f"the field `{name}` is not text")
        if value and value not in texts:
            texts.append(value)
    if texts:
        # Blocks and details repeat the text with signatures.
        return LINE_END.join(texts)
    details = [*(entry.get("thinking_blocks") or ()), *(entry.get("reasoning_details") or ())]
    for detail in details:
        text = detail.get("thinking") or detail.get("text") or detail.get("summary")
        if not isinstance(text, str):
            raise refuse("its reasoning is encrypted and cannot be read")
        texts.append(text)
    return LINE_END.join(texts)


def read_calls(calls: object) -> list[Json]:
    """Return the calls of a message.

    Raises:
        ConversationError: a call has another form; the text has its number.
    """
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise _FormError("the calls are no list")
    return [read_call_entry(call, at) for at, call in enumerate(calls)]


def read_call_entry(call: object, at: int) -> Json:
    """Return a call whose name and arguments stand in `function`, in `custom`, or in the call itself.

    Raises:
        ConversationError: it has another form.
    """
    if not isinstance(call, Mapping):
        raise _FormError(f"call {at} is not an object")
    kind = call.get("type") or "function"
    if kind not in ("function", "custom", "tool_use"):
        raise refuse(f"call {at} of type {kind!r} is not read")
    is_nested = call.get(kind) is not None
    check_fields(call, ("id", kind) if is_nested else ("id", "name", "arguments", "input"))
    function = call[kind] if is_nested else call
    if not isinstance(function, Mapping):
        raise _FormError(f"the `{kind}` of call {at} is not an object")
    if is_nested:
        check_fields(function, ("name", "arguments", "input"))
    name = _read_name(function)
    if kind == "custom":
        arguments = json.dumps({"input": function.get("input", "")}, ensure_ascii=False)
    else:
        value = function.get("arguments", function.get("input"))
        arguments = "{}" if value is None else read_arguments(value)
    call_id = call.get("id")
    return {
        "id": "" if call_id is None else str(call_id),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _read_name(function: Mapping[str, Any]) -> str:
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise _FormError("a call has no name")
    return name


def _read_checked_item(item: Json) -> Iterator[Json]:
    """Yield the messages of an item of Responses."""
    kind = item.get("type")
    fields = _ITEM_FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise refuse(f"an item of type {kind!r} is not read" if kind else "it has neither a role nor a type")
    check_fields(item, fields)
    if kind == "reasoning":
        yield from _read_reasoning_item(item)
        return
    if kind in ("function_call", "custom_tool_call"):
        _read_name(item)
        item = {**item, "arguments": read_arguments(item.get("arguments"))}
    elif kind in OUTPUT_ITEMS and isinstance(item.get("output"), list):
        outputs = item["output"]
        has_types = all(isinstance(part, Mapping) and "type" in part for part in outputs)
        item = {**item, "output": read_parts(outputs, "tool") if has_types else outputs}
    elif kind in OUTPUT_ITEMS and not isinstance(item.get("output"), str | None):
        raise _FormError("the `output` is neither text nor a list of parts")
    yield from read_item(item)


def _read_reasoning_item(item: Json) -> Iterator[Json]:
    parts = read_parts(item.get("content") or item.get("summary"), "system")
    text, _ = open_reasoning(item.get("encrypted_content"))
    if item.get("encrypted_content") and not text and not parts:
        raise refuse("its reasoning is encrypted and cannot be read")
    if text or parts:
        yield {"role": "assistant", "content": "", "reasoning_content": text or join_text(parts)}
