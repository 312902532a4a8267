"""Small clients of the gateway: one of each dialect, plain and streamed. They return text, reasoning and calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from samplers.gateway.process import GatewayProcess

PATHS = {"chat": "chat/completions", "responses": "responses", "messages": "messages"}
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


@dataclass
class Reply:
    """What a client made of an answer."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Id, name, arguments."""
    tokens: tuple[int, int] = (0, 0)
    reason: str = ""


def make_url(gateway: GatewayProcess, secret: str, dialect: str) -> str:
    return f"http://127.0.0.1:{gateway.port}/r/{secret}/v1/{PATHS[dialect]}"


def make_body(dialect: str, text: str, *, streamed: bool = False, **more: Any) -> dict[str, Any]:
    """Return a request with one user message and the tool `bash`."""
    body: dict[str, Any] = {"model": "agents-own", **({"stream": True} if streamed else {})}
    if dialect == "responses":
        body |= {"input": text, "tools": [{"type": "function", "name": "bash", "parameters": SCHEMA}]}
    else:
        body["messages"] = [{"role": "user", "content": text}]
        tool = {"name": "bash", "description": "run"}
        chat_tool = {"type": "function", "function": tool | {"parameters": SCHEMA}}
        body["tools"] = [chat_tool if dialect == "chat" else tool | {"input_schema": SCHEMA}]
    if dialect == "messages":
        body["max_tokens"] = 1000
    if dialect == "chat" and streamed:
        body["stream_options"] = {"include_usage": True}
    return body | more


def post(gateway: GatewayProcess, secret: str, dialect: str, text: str = "hi", **more: Any) -> httpx.Response:
    """Send a request and return the whole answer."""
    return httpx.post(make_url(gateway, secret, dialect), json=make_body(dialect, text, **more), timeout=60)


def iterate_events(content: str) -> Iterator[dict[str, Any]]:
    for event in content.split("\n\n"):
        data = "".join(line[5:].strip() for line in event.splitlines() if line.startswith("data:"))
        if data and data != "[DONE]":
            yield json.loads(data)


def read_reply(dialect: str, response: httpx.Response) -> Reply:
    """Return what a client of a dialect makes of an answer, plain or streamed."""
    response.raise_for_status()
    if "event-stream" in response.headers["content-type"]:
        return STREAM_READERS[dialect](list(iterate_events(response.text)))
    return READERS[dialect](response.json())


def read_chat(answer: dict[str, Any]) -> Reply:
    message = answer["choices"][0]["message"]
    calls = [
        (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in message.get("tool_calls", [])
    ]
    usage = answer["usage"]
    return Reply(
        text=message["content"] or "",
        reasoning=message.get("reasoning_content", ""),
        calls=calls,
        tokens=(usage["prompt_tokens"], usage["completion_tokens"]),
        reason=answer["choices"][0]["finish_reason"],
    )


def read_messages(answer: dict[str, Any]) -> Reply:
    blocks = answer["content"]
    usage = answer["usage"]
    return Reply(
        text="".join(b["text"] for b in blocks if b["type"] == "text"),
        reasoning="".join(b["thinking"] for b in blocks if b["type"] == "thinking"),
        calls=[(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"],
        tokens=(usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]),
        reason=answer["stop_reason"],
    )


def read_responses(answer: dict[str, Any]) -> Reply:
    items = answer["output"]
    parts = [p for item in items if item["type"] in ("message", "reasoning") for p in item["content"]]
    return Reply(
        text="".join(p["text"] for p in parts if p["type"] == "output_text"),
        reasoning="".join(p["text"] for p in parts if p["type"] == "reasoning_text"),
        calls=[(i["call_id"], i["name"], json.loads(i["arguments"])) for i in items if i["type"] == "function_call"],
        tokens=(answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]),
        reason=answer["status"],
    )


def stream_chat(events: list[dict[str, Any]]) -> Reply:
    reply = Reply()
    arguments: dict[int, list[str]] = {}
    for event in events:
        for choice in event["choices"]:
            delta = choice["delta"]
            reply.text += delta.get("content") or ""
            reply.reasoning += delta.get("reasoning_content") or ""
            reply.reason = choice["finish_reason"] or reply.reason
            for call in delta.get("tool_calls", ()):
                known = arguments.setdefault(call["index"], [call.get("id", ""), call["function"].get("name", ""), ""])
                known[2] += call["function"].get("arguments", "")
        if event.get("usage"):
            reply.tokens = (event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"])
    reply.calls = [(call_id, name, json.loads(text)) for call_id, name, text in arguments.values()]
    return reply


def stream_messages(events: list[dict[str, Any]]) -> Reply:
    message: dict[str, Any] = {}
    inputs: dict[int, str] = {}
    for event in events:
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], message["content"][event["index"]]
            for key in ("text", "thinking", "signature"):
                if key in delta:
                    block[key] += delta[key]
            inputs[event["index"]] = inputs.get(event["index"], "") + delta.get("partial_json", "")
        elif event["type"] == "message_delta":
            message |= event["delta"]
            message["usage"] |= event["usage"]
    for index, text in inputs.items():
        if text:
            message["content"][index]["input"] = json.loads(text)
    assert events[-1]["type"] == "message_stop"
    return read_messages(message)


def stream_responses(events: list[dict[str, Any]]) -> Reply:
    """Return the last event's response, after the deltas were compared with it."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    reply = read_responses(events[-1]["response"])
    deltas = {
        kind: "".join(e["delta"] for e in events if e["type"] == kind)
        for kind in {e["type"] for e in events}
        if kind.endswith(".delta")
    }
    assert deltas.get("response.output_text.delta", "") == reply.text
    assert deltas.get("response.reasoning_text.delta", "") == reply.reasoning
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    return reply


READERS = {"chat": read_chat, "messages": read_messages, "responses": read_responses}
STREAM_READERS = {"chat": stream_chat, "messages": stream_messages, "responses": stream_responses}
