"""Streams of chat completions and Messages in every way in which servers cut calls into pieces."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

TOOLS = ("add", "add_all", "mul", "read_file", "bash")
VALUES: tuple[Any, ...] = (
    1,
    -2.5,
    "it's",
    'a "quoted" }',
    "ü\n☃",
    None,
    True,
    [1, {"x": []}],
    {"deep": {"er": "}"}},
    "",
)
KEYS = ("x", "path", "command", "ключ")


@dataclass(frozen=True)
class KnownCall:
    """A call that a stream is made of, and that has to come out of it."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True)
class PieceForm:
    """A way in which a field of the pieces is written. `write` returns its value, or None where it is left out.

    Its arguments are the call's number, the piece's number within the call, and within the stream.
    """

    title: str
    write: Callable[[int, int, int], int | None]
    is_null: bool = False
    """Whether a value that is left out stands as null."""
    tells_calls_apart: bool = False
    """Whether pieces of several calls may come in turns."""
    needs_id: bool = False
    """Whether a call begins with its id, as its index differs within a call."""


INDICES = (
    PieceForm("that of its call", lambda call, _, __: call, tells_calls_apart=True),
    PieceForm("that of its call, from 1", lambda call, _, __: call + 1, tells_calls_apart=True),
    PieceForm("left out", lambda *_: None),
    PieceForm("null", lambda *_: None, is_null=True),
    PieceForm("0 in all pieces", lambda *_: 0),
    PieceForm("another in every piece", lambda _, __, piece: piece, needs_id=True),
    PieceForm("0 and 1 alternating", lambda _, __, piece: piece % 2, needs_id=True),
    PieceForm("in the first piece of a call alone", lambda call, piece, _: None if piece else call),
)
IDS = ("in the first piece", "in every piece", "in none", "empty in all but the first", "null in all but the first")
NAMES = ("whole in the first piece", "in every piece", "in two pieces")
ARGUMENTS = (
    "cut anywhere",
    "a character a piece",
    "whole, with the name",
    "an object",
    "whole, in a piece without name",
)
ORDERS = ("one call after the other", "in turns", "all pieces of a call in one chunk", "all calls in one chunk")


@dataclass(frozen=True, kw_only=True)
class StreamForm:
    """A form of a stream: how index, id, name and arguments are written, and the order of the pieces."""

    index: PieceForm
    ids: str
    names: str
    arguments: str
    order: str

    @property
    def is_published(self) -> bool:
        """Whether the calls can be distinguished at all, and servers write such pieces."""
        has_ids = self.ids == "in every piece"
        if self.order == "in turns" and not (self.index.tells_calls_apart or has_ids):
            return False
        is_new = self.index.title == "another in every piece"
        is_plain = is_new and self.names == "whole in the first piece" and self.ids != "in none"
        if self.index.needs_id and not (has_ids or is_plain):
            return False
        if self.arguments in ("an object", "whole, with the name") and self.names == "in two pieces":
            return False
        return not (self.index.title == "in the first piece of a call alone" and self.ids == "in none")


def list_forms() -> list[StreamForm]:
    """Return every form that servers write."""
    forms = (
        StreamForm(index=index, ids=ids, names=names, arguments=arguments, order=order)
        for index in INDICES
        for ids in IDS
        for names in NAMES
        for arguments in ARGUMENTS
        for order in ORDERS
    )
    return [form for form in forms if form.is_published]


def draw_calls(draw: random.Random) -> list[KnownCall]:
    """Return one to four calls, of which some have the same tool."""
    names = [draw.choice(TOOLS) for _ in range(draw.randint(1, 4))]
    return [KnownCall(f"id_{draw.randrange(10**6)}_{at}", name, draw_arguments(draw)) for at, name in enumerate(names)]


def draw_arguments(draw: random.Random) -> Json:
    return {key: draw.choice(VALUES) for key in draw.sample(KEYS, draw.randint(0, len(KEYS)))}


def split_text(text: str, form: str, draw: random.Random) -> list[str]:
    """Return the pieces of arguments."""
    if form == "a character a piece":
        return list(text)
    if form.startswith("whole"):
        return [text]
    cuts = sorted(draw.sample(range(1, len(text)), min(len(text) - 1, draw.randint(0, 4))))
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def write_call(call: KnownCall, form: StreamForm, draw: random.Random) -> list[Json]:
    """Return the pieces of a call without id and index: name and arguments."""
    if form.arguments == "an object":
        return [{"name": call.name, "arguments": call.arguments}]
    texts = split_text(json.dumps(call.arguments, ensure_ascii=draw.random() < 0.5), form.arguments, draw)
    if form.arguments == "whole, with the name":
        return [{"name": call.name, "arguments": texts[0]}]
    begins: list[Json] = [{"arguments": ""}, {"arguments": None}, {}]
    begin = draw.choice(begins)
    if form.names == "in two pieces":
        cut = draw.randint(1, len(call.name) - 1)
        return [{"name": call.name[:cut], **begin}, {"name": call.name[cut:]}, *({"arguments": text} for text in texts)]
    again = {"name": call.name} if form.names == "in every piece" else {}
    return [{"name": call.name, **begin}, *({**again, "arguments": text} for text in texts)]


def write_pieces(calls: Sequence[KnownCall], form: StreamForm, draw: random.Random) -> list[list[Json]]:
    """Return the pieces of a stream by chunks."""
    written: list[list[Json]] = []
    functions = [write_call(call, form, draw) for call in calls]
    order = [(at, place) for at, pieces in enumerate(functions) for place in range(len(pieces))]
    if form.order == "in turns":
        order.sort(key=lambda entry: (entry[1], entry[0]))
    for number, (at, place) in enumerate(order):
        piece: Json = {"type": "function", "function": functions[at][place]}
        index = form.index.write(at, place, number)
        piece |= {"index": index} if index is not None or form.index.is_null else {}
        piece |= write_id(calls[at].id, form.ids, place)
        is_joined = form.order == "all calls in one chunk" or (form.order.startswith("all pieces") and place > 0)
        if is_joined and written:
            written[-1].append(piece)
        else:
            written.append([piece])
    return written


def write_id(call_id: str, form: str, place: int) -> Json:
    """Return the id of a piece, as far as the form has it."""
    if form == "in none":
        return {}
    if place == 0 or form == "in every piece":
        return {"id": call_id}
    return {"id": "" if form.startswith("empty") else None} if form.endswith("but the first") else {}


def write_chunks(calls: Sequence[KnownCall], form: StreamForm, draw: random.Random) -> Iterator[Json]:
    """Yield the chunks of a stream of chat completions."""
    text, thought = draw.choice(["", "I call."]), draw.choice(["", "Hm."])
    yield make_chunk({"role": "assistant", "content": draw.choice(["", None])})
    if thought:
        yield make_chunk({draw.choice(["reasoning", "reasoning_content"]): thought})
    if text:
        listed = [{"type": "text", "text": text}]
        yield make_chunk({"content": draw.choice([text, listed])})
    *chunks, last = write_pieces(calls, form, draw)
    for pieces in chunks:
        yield make_chunk({"tool_calls": pieces})
    if draw.random() < 0.3:
        yield make_chunk({"tool_calls": last}, "tool_calls")
    else:
        yield make_chunk({"tool_calls": last})
        yield make_chunk({}, "tool_calls")
    yield {**make_chunk({}), "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}}


def make_chunk(delta: Json, finish: str | None = None) -> Json:
    frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


BLOCK_INDICES = ("that of its block", "left out", "null", "0 in all events")
INPUTS = (
    "cut anywhere",
    "a character a piece",
    "whole, in a piece without name",
    "an object",
    "in the begin of the block",
)


def write_events(calls: Sequence[KnownCall], index: str, form: str, draw: random.Random) -> Iterator[Json]:
    """Yield the events of a stream of Messages, whose blocks come in turns where their index distinguishes them."""
    usage = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 0}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    events = [
        (at, place, event) for at, call in enumerate(calls) for place, event in enumerate(write_block(call, form, draw))
    ]
    if index == "that of its block" and draw.random() < 0.5:
        events.sort(key=lambda entry: (entry[1], entry[0]))
    for at, _, event in events:
        shown: dict[str, Json] = {"that of its block": {"index": at}, "null": {"index": None}, "left out": {}}
        yield {**event, **shown.get(index, {"index": 0})}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 7},
    }
    yield {"type": "message_stop"}


def write_block(call: KnownCall, form: str, draw: random.Random) -> Iterator[Json]:
    """Yield the events of a block."""
    is_begin = form == "in the begin of the block"
    begun = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments if is_begin else {}}
    yield {"type": "content_block_start", "content_block": begun}
    pieces: list[Any] = [] if is_begin else split_text(json.dumps(call.arguments), form, draw)
    for piece in [call.arguments] if form == "an object" else pieces:
        yield {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": piece}}
    yield {"type": "content_block_stop"}


def make_call_chunk(piece: Any) -> Json:
    return make_chunk({"tool_calls": [piece]})


REFUSED_CHUNKS: dict[str, tuple[Json, str]] = {
    "arguments that are a list or a number": (
        make_call_chunk({"index": 0, "id": "a", "function": {"name": "add", "arguments": [1]}}),
        "the arguments of a call are neither text nor an object",
    ),
    "arguments with NaN": (
        make_call_chunk({"index": 0, "id": "a", "function": {"name": "add", "arguments": {"x": float("nan")}}}),
        "the arguments of a call hold a number that JSON does not have",
    ),
    "an index that is text": (
        make_call_chunk({"index": "0", "id": "a", "function": {"name": "add"}}),
        "the `index` of a tool call is not a whole number",
    ),
    "a name that is not text": (
        make_call_chunk({"index": 0, "id": "a", "function": {"name": ["add"]}}),
        "the `name` of a tool call is not text",
    ),
    "a call that is not an object": (make_call_chunk("add"), "a tool call is not an object"),
    "a function that is not an object": (
        make_call_chunk({"index": 0, "id": "a", "function": "add"}),
        "the `function` of a tool call is not an object",
    ),
    "calls that are no list": (make_chunk({"tool_calls": {"0": {}}}), "`tool_calls` are no list"),
    "a choice that is not an object": ({**make_chunk({}), "choices": [None]}, "`choices` of a chunk are no list"),
    "a delta that is not an object": (make_chunk(["x"]), "the `delta` of a chunk is no object"),  # type: ignore[arg-type]
    "content with an image or audio": (
        make_chunk({"content": [{"type": "audio", "data": ""}]}),
        'content of type "audio" cannot be given on',
    ),
    "log-probs that are a number": (
        {**make_chunk({}), "choices": [{"index": 0, "delta": {}, "logprobs": 5}]},
        "a field of an event has another type than in the API",
    ),
    "content that is a number": (make_chunk({"content": 5}), "the `content` is not text or a list"),
}
"""Form of a chunk of chat completions -> the chunk, and the sentence of the error."""
REFUSED_EVENTS: dict[str, tuple[Json, str]] = {
    "input that is a list": (
        {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "add", "input": [1]}},
        "the `input` of a tool call is no object",
    ),
    "a block that is not an object": (
        {"type": "content_block_start", "content_block": "text"},
        "the `content_block` of an event is no object",
    ),
    "a delta before there is a block": (
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}},
        "an event continues a block before there is one",
    ),
}
"""Form of an event of Messages -> the event, and the sentence of the error."""
