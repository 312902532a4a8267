"""Streams of a dialect as streams of another, event by event: the text that comes in goes out at once.

The event that ends an answer is given by `finish`, so that the caller can record the answer before the client has all
of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from samplers.gateway.json_text import Json
from samplers.gateway.translation.answers import (
    FINISH_REASONS,
    choose_stop_reason,
    dump_arguments,
    first_choice,
    translate_chat_usage,
    translate_messages_usage,
)
from samplers.gateway.translation.part_order import BLOCK, CALL, REASONING, PartOrder, StreamPart


class StreamTranslator(Protocol):
    """Translates a stream."""

    def feed(self, event: Json) -> Iterator[Json]:
        """Yield the events that an event leads to."""
        ...

    def finish(self) -> Iterator[Json]:
        """Yield the events that end the answer."""
        ...


class ChatToMessages:
    """Chunks of chat completions as events of Messages."""

    def __init__(self) -> None:
        self._index = -1
        self._open: tuple[str, int] | None = None
        self._order = PartOrder()
        self._has_calls = False
        self._choice: Json = {}
        self._usage: Json | None = None
        self._has_begun = False

    def feed(self, event: Json) -> Iterator[Json]:
        """Yield the events for a chunk."""
        if not self._has_begun:
            self._has_begun = True
            yield self._begin(event)
        self._usage = event.get("usage") or self._usage
        choice = first_choice(event)
        for part in self._order.add(choice.get("delta") or {}):
            yield from self._write_part(part)
        self._choice |= {key: choice[key] for key in ("finish_reason", "stop_reason") if choice.get(key) is not None}

    def finish(self) -> Iterator[Json]:
        """Yield the held pieces, the end of the open block and of the message."""
        for part in self._order.finish():
            yield from self._write_part(part)
        yield from self._close_block()
        reason, sequence = choose_stop_reason(self._choice | {"message": {"tool_calls": self._has_calls}})
        usage = translate_chat_usage(self._usage)
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": usage,
        }
        yield {"type": "message_stop"}

    def _write_part(self, part: StreamPart) -> Iterator[Json]:
        """Yield the events of a part."""
        if part.kind == CALL:
            yield from self._add_call(part.value)
        elif part.kind == BLOCK:
            yield from self._sign(part.value)
        elif part.kind == REASONING:
            yield from self._open_block("thinking", 0, {"type": "thinking", "thinking": "", "signature": ""})
            yield self._make_delta({"type": "thinking_delta", "thinking": part.value})
        else:
            yield from self._open_block("text", 0, {"type": "text", "text": ""})
            yield self._make_delta({"type": "text_delta", "text": part.value})

    def _begin(self, event: Json) -> Json:
        message: Json = {
            "id": event.get("id") or "msg",
            "type": "message",
            "role": "assistant",
            "model": event.get("model") or "",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": translate_chat_usage(event.get("usage")),
        }
        return {"type": "message_start", "message": message}

    def _open_block(self, kind: str, at: int, block: Json) -> Iterator[Json]:
        if self._open == (kind, at):
            return
        yield from self._close_block()
        self._index += 1
        self._open = (kind, at)
        yield {"type": "content_block_start", "index": self._index, "content_block": block}

    def _close_block(self) -> Iterator[Json]:
        if self._open:
            yield {"type": "content_block_stop", "index": self._index}
            self._open = None

    def _make_delta(self, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _add_call(self, call: Json) -> Iterator[Json]:
        at, function = call["index"], call.get("function") or {}
        self._has_calls = True
        block: Json = {"type": "tool_use", "id": call.get("id") or "", "name": function.get("name") or "", "input": {}}
        yield from self._open_block("tool_use", at, block)
        if function.get("arguments"):
            yield self._make_delta({"type": "input_json_delta", "partial_json": function["arguments"]})

    def _sign(self, block: Json) -> Iterator[Json]:
        if block.get("type") == "thinking" and self._open == ("thinking", 0):
            yield self._make_delta({"type": "signature_delta", "signature": block.get("signature") or ""})
            yield from self._close_block()
        elif block.get("type") == "redacted_thinking":
            yield from self._open_block("redacted_thinking", self._index, block)
            yield from self._close_block()


class MessagesToChat:
    """Events of Messages as chunks of chat completions."""

    def __init__(self) -> None:
        self._frame: Json = {"id": "chatcmpl", "object": "chat.completion.chunk", "created": 0, "model": ""}
        self._usage: Json = {}
        self._reason = "end_turn"
        self._calls: dict[int, int] = {}
        """Index of a block -> index of its call."""
        self._has_arguments: set[int] = set()
        """Blocks whose call has arguments."""
        self._thinking: dict[int, Json] = {}

    def feed(self, event: Json) -> Iterator[Json]:
        """Yield the chunks for an event."""
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message") or {}
            self._frame |= {"id": message.get("id") or "chatcmpl", "model": message.get("model") or ""}
            self._usage = message.get("usage") or {}
            yield self._make_chunk({"role": "assistant", "content": ""})
        elif kind == "content_block_start":
            yield from self._begin_block(event["index"], event.get("content_block") or {})
        elif kind == "content_block_delta":
            yield from self._add_delta(event["index"], event.get("delta") or {})
        elif kind == "content_block_stop" and event["index"] in self._calls:
            yield from self._end_call(event["index"])
        elif kind == "content_block_stop" and event["index"] in self._thinking:
            yield self._make_chunk({"thinking_blocks": [self._thinking.pop(event["index"])]})
        elif kind == "message_delta":
            self._reason = (event.get("delta") or {}).get("stop_reason") or self._reason
            self._usage |= {key: value for key, value in (event.get("usage") or {}).items() if value is not None}

    def finish(self) -> Iterator[Json]:
        """Yield the finish reason and the usage."""
        yield self._make_chunk({}, finish_reason=FINISH_REASONS.get(self._reason, "stop"))
        yield self._frame | {"choices": [], "usage": translate_messages_usage(self._usage)}

    def _make_chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        return self._frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    def _begin_block(self, index: int, block: Json) -> Iterator[Json]:
        kind = block.get("type")
        if kind == "tool_use":
            at = self._calls[index] = len(self._calls)
            function = {"name": block.get("name") or "", "arguments": ""}
            call = {"index": at, "id": block.get("id") or "", "type": "function", "function": function}
            yield self._make_chunk({"tool_calls": [call]})
        elif kind in ("thinking", "redacted_thinking"):
            self._thinking[index] = dict(block)
        elif block.get("text"):
            yield self._make_chunk({"content": block["text"]})

    def _end_call(self, index: int) -> Iterator[Json]:
        """Yield the arguments of a call that has none: an empty object, as in an answer that is not streamed."""
        if index not in self._has_arguments:
            yield self._make_chunk({"tool_calls": [{"index": self._calls[index], "function": {"arguments": "{}"}}]})

    def _add_delta(self, index: int, delta: Json) -> Iterator[Json]:
        kind = delta.get("type")
        thinking = self._thinking.get(index)
        if kind == "text_delta":
            yield self._make_chunk({"content": delta.get("text") or ""})
        elif kind == "input_json_delta":
            function = {"arguments": delta.get("partial_json") or ""}
            self._has_arguments |= {index} if function["arguments"] else set()
            yield self._make_chunk({"tool_calls": [{"index": self._calls[index], "function": function}]})
        elif kind == "thinking_delta" and thinking is not None:
            thinking["thinking"] = thinking.get("thinking", "") + (delta.get("thinking") or "")
            yield self._make_chunk({"reasoning_content": delta.get("thinking") or ""})
        elif kind == "signature_delta" and thinking is not None:
            thinking["signature"] = thinking.get("signature", "") + (delta.get("signature") or "")


def split_chat_answer(answer: Json) -> Iterator[Json]:
    """Yield a complete answer of chat completions as chunks, for clients that stream answers that were not."""
    frame = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    frame["object"] = "chat.completion.chunk"
    for choice in answer.get("choices") or ():
        delta = {key: value for key, value in (choice.get("message") or {}).items() if value is not None}
        calls = [call | {"index": at} for at, call in enumerate(delta.get("tool_calls") or ())]
        delta |= {"tool_calls": calls} if calls else {}
        given = {key: value for key, value in choice.items() if key not in ("message", "finish_reason")}
        yield frame | {"choices": [given | {"delta": delta, "finish_reason": None}]}
        end = {"index": choice.get("index", 0), "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield frame | {"choices": [end]}
    if answer.get("usage"):
        yield frame | {"choices": [], "usage": answer["usage"]}


def split_message_answer(answer: Json) -> Iterator[Json]:
    """Yield a complete answer of Messages as its events."""
    start = answer | {"content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(answer.get("content") or ()):
        empty, deltas = _split_block(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": answer.get("stop_reason"), "stop_sequence": answer.get("stop_sequence")}
    yield {"type": "message_delta", "delta": ending, "usage": answer.get("usage") or {}}
    yield {"type": "message_stop"}


def _split_block(block: Json) -> tuple[Json, list[Json]]:
    """Return a block without its content, and the content as deltas."""
    kind = block.get("type")
    if kind == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": block.get("text") or ""}]
    if kind == "tool_use":
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": dump_arguments(block.get("input"))}]
    if kind == "thinking":
        return block | {"thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block.get("thinking") or ""},
            {"type": "signature_delta", "signature": block.get("signature") or ""},
        ]
    return block, []
