"""Chunks of chat completions as events of Responses."""

from __future__ import annotations

from collections.abc import Iterator

from backends.llm.conversations.tool_table import ToolTable
from samplers.gateway.json_text import Json
from samplers.gateway.translation.answers import (
    build_reasoning_item,
    build_response_answer,
    build_response_frame,
    build_text_item,
    first_choice,
)
from samplers.gateway.translation.assembly import ChatAssembler
from samplers.gateway.translation.part_order import BLOCK, CALL, REASONING, TEXT, PartOrder, StreamPart


class ChatToResponses:
    """The events of a response. Items are opened and closed in the order of the chunks."""

    def __init__(self, table: ToolTable, request: Json) -> None:
        self._table = table
        self._request = request
        self._assembler = ChatAssembler()
        self._number = -1
        self._index = -1
        self._open: tuple[str, int] | None = None
        self._item_id = ""
        self._text = ""
        self._call: Json = {}
        self._order = PartOrder()
        self._blocks: list[Json] = []
        self._done: list[Json] = []
        self._answer_id = ""

    def feed(self, event: Json) -> Iterator[Json]:
        """Yield the events for a chunk."""
        if self._number < 0:
            self._answer_id = str(event.get("id") or "resp")
            frame = build_response_frame(event, self._request)
            yield self._make("response.created", response=frame)
            yield self._make("response.in_progress", response=frame)
        self._assembler.feed(event)
        for part in self._order.add(first_choice(event).get("delta") or {}):
            yield from self._write_part(part)

    def finish(self) -> Iterator[Json]:
        """Yield the held pieces, the end of the open item and the complete response."""
        for part in self._order.finish():
            yield from self._write_part(part)
        yield from self._close_item()
        response = build_response_answer(self._assembler.build(), self._table, self._request)
        response["output"] = self._done  # in the order of the stream
        yield self._make(f"response.{response['status']}", response=response)

    def _write_part(self, part: StreamPart) -> Iterator[Json]:
        """Yield the events of a part."""
        if part.kind == CALL:
            yield from self._add_call(part.value)
        elif part.kind == BLOCK:
            self._blocks.append(part.value)
        else:
            kind = "response.reasoning_text.delta" if part.kind == REASONING else "response.output_text.delta"
            yield from self._open_item(part.kind, 0)
            yield from self._add_text(kind, part.value)

    def _make(self, kind: str, **fields: object) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}

    def _make_in_item(self, kind: str, **fields: object) -> Json:
        return self._make(kind, item_id=self._item_id, output_index=self._index, **fields)

    def _open_item(self, kind: str, at: int) -> Iterator[Json]:
        if self._open == (kind, at):
            return
        yield from self._close_item()
        self._index += 1
        self._open, self._text = (kind, at), ""
        item, part = self._describe_open(kind)
        if kind != CALL:
            item["id"] = f"{item['id']}_{self._index}"
        self._item_id = str(item["id"])
        yield self._make("response.output_item.added", output_index=self._index, item=item)
        if part:
            yield self._make_in_item("response.content_part.added", content_index=0, part=part)

    def _describe_open(self, kind: str) -> tuple[Json, Json | None]:
        """Return the item in progress and its part without text."""
        if kind == CALL:
            return self._table.build_item(self._call, status="in_progress"), None
        if kind == REASONING:
            item = build_reasoning_item(self._answer_id, "", [])
            return item | {"content": [], "encrypted_content": None, "status": "in_progress"}, item["content"][0]
        item = build_text_item(self._answer_id, "")
        return item | {"content": [], "status": "in_progress"}, item["content"][0]

    def _add_text(self, kind: str, text: str) -> Iterator[Json]:
        self._text += text
        logprobs: Json = {"logprobs": []} if "output_text" in kind else {}
        yield self._make_in_item(kind, content_index=0, delta=text, **logprobs)

    def _add_call(self, piece: Json) -> Iterator[Json]:
        at, function = piece["index"], piece.get("function") or {}
        if self._open != (CALL, at):
            yield from self._close_item()
            name = function.get("name") or ""
            self._call = {"id": piece.get("id") or "", "function": {"name": name, "arguments": ""}}
            yield from self._open_item(CALL, at)
        if arguments := function.get("arguments"):
            self._call["function"]["arguments"] += arguments
            if self._table.is_function(self._call["function"]["name"]):
                yield self._make_in_item("response.function_call_arguments.delta", delta=arguments)

    def _close_item(self) -> Iterator[Json]:
        if not self._open:
            return
        kind = self._open[0]
        self._open = None
        item = self._build_item(kind)
        if kind == CALL:
            yield from self._end_call(item)
        else:
            name = "response.output_text.done" if kind == TEXT else "response.reasoning_text.done"
            logprobs: Json = {"logprobs": []} if kind == TEXT else {}
            yield self._make_in_item(name, content_index=0, text=self._text, **logprobs)
            yield self._make_in_item("response.content_part.done", content_index=0, part=item["content"][0])
        self._done.append(item)
        yield self._make("response.output_item.done", output_index=self._index, item=item)

    def _build_item(self, kind: str) -> Json:
        if kind == CALL:
            return self._table.build_item(self._call)
        if kind == REASONING:
            return build_reasoning_item(self._answer_id, self._text, self._blocks) | {"id": self._item_id}
        return build_text_item(self._answer_id, self._text) | {"id": self._item_id}

    def _end_call(self, item: Json) -> Iterator[Json]:
        if item["type"] == "function_call":
            fields = {"name": item["name"], "arguments": item["arguments"]}
            yield self._make_in_item("response.function_call_arguments.done", **fields)
        elif item["type"] == "custom_tool_call":
            yield self._make_in_item("response.custom_tool_call_input.delta", delta=item["input"])
            yield self._make_in_item("response.custom_tool_call_input.done", input=item["input"])
