"""A gateway without its server: the events of an upstream go in, the record and the bytes of the client come out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from openai.lib.streaming._deltas import accumulate_delta

from samplers.gateway.access import RolloutAccess
from samplers.gateway.client_stream import render_event
from samplers.gateway.collector import AnswerCollector, make_client_stream
from samplers.gateway.dialects import Dialect
from samplers.gateway.policy import UpstreamRequest, build_upstream_request
from samplers.gateway.translation import to_chat_answer
from tests.samplers.forms.streams import TOOLS, Json
from tests.samplers.gateway.clients import STREAM_READERS, iterate_events, read_messages, read_responses

Call = tuple[str, str, Any]
"""Id, name and arguments, which are an object where they are JSON."""
SCHEMA = {"type": "object", "properties": {}}


def make_request(client: Dialect, upstream: Dialect, *, streamed: bool) -> UpstreamRequest:
    """Return a request of a client that offers all tools."""
    body: Json = {"model": "m", "stream": streamed, "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    tools = [{"name": name, "description": ""} for name in TOOLS]
    if client is Dialect.RESPONSES:
        body = {"model": "m", "stream": streamed, "input": "go"}
        body["tools"] = [{"type": "function", **tool, "parameters": SCHEMA} for tool in tools]
    elif client is Dialect.MESSAGES:
        body["tools"] = [{**tool, "input_schema": SCHEMA} for tool in tools]
    else:
        body["tools"] = [{"type": "function", "function": {**tool, "parameters": SCHEMA}} for tool in tools]
    return build_upstream_request(
        json.dumps(body).encode(),
        body,
        client=client,
        upstream=upstream,
        access=RolloutAccess(secret="s"),
        wants_token_ids=False,
    )


def play_stream(events: Iterable[Json], client: Dialect, upstream: Dialect) -> tuple[list[Call], list[Call], bytes]:
    """Return the calls of the record, those that the client reads, and the bytes that it gets."""
    request = make_request(client, upstream, streamed=True)
    stream = make_client_stream(request)
    collector = AnswerCollector(request, stream)
    content = b""
    for event in events:
        name = event["type"] if upstream is Dialect.MESSAGES else ""
        content += collector.feed(event, render_event(name, event).rstrip(b"\n"))
    recorded = list_calls(to_chat_answer(collector.build(), upstream))
    content += stream.finish()
    sent = list(iterate_events(content.decode()))
    if client is Dialect.CHAT:
        return recorded, read_chunks(sent), content
    if client is Dialect.MESSAGES and upstream is Dialect.CHAT:
        check_blocks(sent)
    return recorded, STREAM_READERS[client](sent).calls, content


def play_answer(answer: Json, client: Dialect, upstream: Dialect) -> tuple[list[Call], list[Call], Json]:
    """Return the calls of the record, those that the client reads, and the answer that it gets; nothing is streamed."""
    request = make_request(client, upstream, streamed=False)
    recorded = AnswerCollector(request, None).read_plain(answer)
    sent = request.translation.translate_answer(recorded)
    calls = list_calls(to_chat_answer(recorded, upstream))
    if client is Dialect.CHAT:
        return calls, list_calls(sent["choices"][0]["message"]), sent
    read = read_messages if client is Dialect.MESSAGES else read_responses
    return calls, read(sent).calls, sent


def read_chunks(chunks: Iterable[Json]) -> list[Call]:
    """Return the calls that OpenAI's own client makes of a stream: by index, and texts are joined."""
    message: dict[object, object] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            message = accumulate_delta(message, choice["delta"])
    return list_calls(message)  # type: ignore[arg-type]


def list_calls(message: Json) -> list[Call]:
    """Return the calls of a message of chat completions."""
    calls = message.get("tool_calls") or ()
    return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def check_blocks(events: Iterable[Json]) -> None:
    """Check that each block of a stream of Messages ends before the next begins."""
    open_block = None
    for event in events:
        if event["type"] == "content_block_start":
            assert open_block is None
            open_block = event["index"]
        elif event["type"].startswith("content_block"):
            assert event["index"] == open_block
            open_block = None if event["type"] == "content_block_stop" else open_block
    assert open_block is None
