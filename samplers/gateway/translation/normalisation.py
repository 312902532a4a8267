"""Answers of upstreams in the published form of their dialect, before they are recorded and given to clients.

Servers differ in how they send calls: without index, all with the same index, with arguments that are an object, with
a content that is a list. The record and the clients of all dialects read the same normalised answer. An event of the
published form passes unchanged, so that it reaches clients of the same dialect byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol

from backends.llm.call_pieces import CallJoiner, CallPiece, CallPieceError, read_piece
from backends.llm.conversations.parts import LINE_END, TEXT_TYPES, read_reasoning, read_text
from samplers.gateway.answer_shape import refuse_answer
from samplers.gateway.dialects import Dialect
from samplers.gateway.json_text import Json

_PART_TYPES = frozenset(("refusal", "thinking", *TEXT_TYPES))


class StreamNormaliser(Protocol):
    """Brings the events of a stream into the published form."""

    def feed(self, event: Json) -> Iterator[Json]:
        """Yield the events that stand for an event: the same object where it has the published form.

        Raises:
            GatewayFailure: it has a form that cannot be read.
        """
        ...


def make_normaliser(dialect: Dialect, tools: Collection[str], *, keeps_function_call: bool) -> StreamNormaliser:
    """Return the normaliser of a stream.

    Args:
        dialect: dialect of the upstream.
        tools: names of the tools that the model was offered.
        keeps_function_call: whether the client reads `function_call`, the earlier form of a call.
    """
    if dialect is Dialect.MESSAGES:
        return MessagesNormaliser()
    return ChatNormaliser(tools, keeps_function_call=keeps_function_call)


def list_tool_names(tools: object) -> list[str]:
    """Return the names of the tools of a request of any dialect."""
    if not isinstance(tools, list):
        return []
    functions = [tool.get("function") or tool for tool in tools if isinstance(tool, Mapping)]
    names = [function.get("name") for function in functions if isinstance(function, Mapping)]
    return [name for name in names if isinstance(name, str)]


class ChatNormaliser:
    """Brings chunks of chat completions into the published form; its arguments are those of `make_normaliser`."""

    def __init__(self, tools: Collection[str] = (), *, keeps_function_call: bool = False) -> None:
        self._tools = tools
        self._keeps_function_call = keeps_function_call
        self._joiners: dict[Any, CallJoiner] = {}

    def feed(self, event: Json) -> Iterator[Json]:
        """Yield the chunk."""
        choices = event.get("choices") or ()
        if not isinstance(choices, list | tuple) or not all(isinstance(choice, dict) for choice in choices):
            raise refuse_answer("`choices` of a chunk are no list of objects")
        normalised = [self._normalise_choice(choice) for choice in choices]
        is_same = all(made is choice for made, choice in zip(normalised, choices, strict=True))
        yield event if is_same else event | {"choices": normalised}

    def _normalise_choice(self, choice: Json) -> Json:
        given = choice.get("delta") or {}
        if not isinstance(given, dict):
            raise refuse_answer("the `delta` of a chunk is no object")
        delta = _flatten_content(given, "")
        if not self._keeps_function_call:
            delta = replace_function_call(delta)
        index = choice.get("index") or 0
        if not delta.get("tool_calls") and not (choice.get("finish_reason") and index in self._joiners):
            return choice if delta is given else choice | {"delta": delta}
        joiner = self._joiners.setdefault(index, CallJoiner(self._tools))
        raw = _list_calls(delta.get("tool_calls"))
        pieces = [_read_piece(call) for call in raw]
        for piece in pieces:
            joiner.add(piece)
        released = joiner.release(is_end=bool(choice.get("finish_reason")))
        # A chunk of the published form is given on as it is, with whatever else the server wrote into it.
        if released == pieces and all(_has_published_form(call) for call in raw):
            return choice if delta is given else choice | {"delta": delta}
        kept = {key: value for key, value in delta.items() if key != "tool_calls"}
        calls = [_write_piece(piece) for piece in released]
        return choice | {"delta": kept | ({"tool_calls": calls} if calls else {})}


class MessagesNormaliser:
    """Brings events of Messages into the published form: each block has its place as index."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}
        self._n_blocks = 0
        self._inputs: dict[int, Json] = {}
        """Place of an open block -> input that stands in its begin."""

    def feed(self, event: Json) -> Iterator[Json]:
        """Yield the event; the input of a call that stands in its begin becomes an event of its own."""
        kind = event.get("type")
        if kind == "content_block_start":
            yield from self._begin_block(event)
        elif kind in ("content_block_delta", "content_block_stop"):
            yield from self._continue_block(event, is_end=kind == "content_block_stop")
        else:
            yield event

    def _begin_block(self, event: Json) -> Iterator[Json]:
        block = event.get("content_block")
        if not isinstance(block, dict):
            raise refuse_answer("the `content_block` of an event is no object")
        place, self._n_blocks = self._n_blocks, self._n_blocks + 1
        if _is_index(event.get("index")):
            self._places[event["index"]] = place
        made = block
        if block.get("type") == "tool_use":
            self._inputs[place] = _read_input(block.get("input"))
            has_form = block.get("input") == {} and block.get("id")
            made = block if has_form else block | {"input": {}, "id": block.get("id") or f"call_{place}"}
        is_same = made is block and event.get("index") == place
        yield event if is_same else event | {"index": place, "content_block": made}

    def _continue_block(self, event: Json, *, is_end: bool) -> Iterator[Json]:
        if not self._n_blocks:
            raise refuse_answer("an event continues a block before there is one")
        index = event.get("index")
        place = self._places.get(index, self._n_blocks - 1) if _is_index(index) else self._n_blocks - 1
        delta = event.get("delta") or {}
        if not isinstance(delta, dict):
            raise refuse_answer("the `delta` of an event is no object")
        given = self._inputs.pop(place, {}) if is_end or delta.get("partial_json") else {}
        if is_end and given:
            written = {"type": "input_json_delta", "partial_json": json.dumps(given, ensure_ascii=False)}
            yield {"type": "content_block_delta", "index": place, "delta": written}
        if isinstance(delta.get("partial_json"), dict):
            delta = delta | {"partial_json": json.dumps(delta["partial_json"], ensure_ascii=False)}
        is_same = index == place and _is_index(index) and delta is (event.get("delta") or delta)
        yield event if is_same else event | {"index": place} | ({"delta": delta} if delta else {})


def normalise_answer(answer: Json, dialect: Dialect, *, keeps_function_call: bool) -> Json:
    """Return a complete answer in the published form of its dialect; the same object where it has it.

    Raises:
        GatewayFailure: it has a form that cannot be read.
    """
    if dialect is Dialect.MESSAGES:
        blocks = answer["content"]
        made = [_normalise_block(block, at) for at, block in enumerate(blocks)]
        is_same = all(one is block for one, block in zip(made, blocks, strict=True))
        return answer if is_same else answer | {"content": made}
    choices = answer["choices"]
    normalised = [_normalise_whole_choice(choice, keeps_function_call=keeps_function_call) for choice in choices]
    is_same = all(made is choice for made, choice in zip(normalised, choices, strict=True))
    return answer if is_same else answer | {"choices": normalised}


def _normalise_whole_choice(choice: object, *, keeps_function_call: bool) -> object:
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        return choice  # `check_shape` names it
    given = choice["message"]
    message = _flatten_content(given, LINE_END)
    if not keeps_function_call:
        message = replace_function_call(message)
    raw = _list_calls(message.get("tool_calls"))
    joiner = CallJoiner()
    pieces = [_read_piece(call) for call in raw]
    for piece in pieces:
        joiner.begin(piece)
    released = [_write_piece(piece) for piece in joiner.release(is_end=True)]
    for call in released:
        del call["index"]
    if not all(map(_is_published_call, raw, released)):
        message = message | {"tool_calls": released}
    return choice if message is given else choice | {"message": message}


def _is_published_call(call: Json, made: Json) -> bool:
    """Return whether a whole call has the published form, in which it may have further fields."""
    function = call.get("function") or {}
    return call.get("id") == made["id"] and all(
        function.get(key) == made["function"][key] for key in ("name", "arguments")
    )


def _normalise_block(block: Any, place: int) -> Any:
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        return block
    if isinstance(block.get("input"), dict) and block.get("id"):
        return block
    return block | {"input": _read_input(block.get("input")), "id": block.get("id") or f"call_{place}"}


def _read_input(value: object) -> Json:
    """Return the input of a call, which some servers write as JSON text."""
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise refuse_answer("the `input` of a tool call is neither an object nor JSON") from error
    if value in (None, ""):
        return {}
    if not isinstance(value, dict):
        raise refuse_answer("the `input` of a tool call is no object")
    return value


def _list_calls(calls: object) -> list[Any]:
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise refuse_answer("`tool_calls` are no list")
    return calls


def _read_piece(call: object) -> CallPiece:
    try:
        return read_piece(call)
    except CallPieceError as error:
        raise refuse_answer(str(error)) from error


def _write_piece(piece: CallPiece) -> Json:
    begin = {"id": piece.id, "type": "function"} if piece.id else {}
    name = {"name": piece.name} if piece.id else {}
    return {"index": piece.index, **begin, "function": {**name, "arguments": piece.arguments}, **piece.extras}


def _has_published_form(call: Json) -> bool:
    """Return whether the fields of a piece have the types of the API; its values were compared as a piece."""
    texts = (call.get("id"), (call.get("function") or {}).get("arguments"))
    return _is_index(call.get("index")) and all(text is None or isinstance(text, str) for text in texts)


def _is_index(value: object) -> bool:
    return type(value) is int


def _flatten_content(message: Json, separator: str) -> Json:
    """Return a message or delta whose content is text, where it was a list of text, refusals and thoughts.

    Raises:
        GatewayFailure: the list has a part of another type.
    """
    content = message.get("content")
    if content is None or isinstance(content, str):
        return message
    if not isinstance(content, list):
        raise refuse_answer("the `content` is not text or a list")
    for part in content:
        kind = part.get("type", "text") if isinstance(part, dict) else "text" if isinstance(part, str) else None
        if kind not in _PART_TYPES:
            raise refuse_answer(f"content of type {json.dumps(kind)} cannot be given on")
    thoughts = [part for part in content if isinstance(part, dict) and part.get("type") == "thinking"]
    texts = [read_text(part) for part in content if part not in thoughts]
    made = message | {"content": separator.join(text for text in texts if text)}
    thought = separator.join(filter(None, map(_read_thought, thoughts)))
    if thought and not read_reasoning(message):
        made["reasoning_content"] = thought
    return made


def _read_thought(part: Json) -> str:
    """Return the text of a thought, which Mistral's servers write as a list of texts."""
    thinking = part.get("thinking")
    return "".join(map(read_text, thinking)) if isinstance(thinking, list) else str(thinking or "")


def replace_function_call(message: Json) -> Json:
    """Return a message or delta in which the earlier form of a call, without id and list, is a call."""
    call = message.get("function_call")
    if not call:
        return message
    if not isinstance(call, dict):
        raise refuse_answer("the `function_call` is no object")
    kept = {key: value for key, value in message.items() if key != "function_call"}
    return kept | {"tool_calls": [*_list_calls(message.get("tool_calls")), {"type": "function", "function": call}]}
