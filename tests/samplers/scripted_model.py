"""A model server over real HTTP whose answers are scripted: OpenAI's chat completions and Anthropic's Messages.

In a test::

    with ScriptedModel([Turn(text="hello"), Turn(calls=(Call("bash", {"command": "ls"}),))]) as model:
        ...  # model.url is the base URL with /v1; model.requests what came in; model.paid what a provider would charge

Of a list of turns, the answer to a request is the one at the place of the conversation (its number of assistant
messages; the last turn repeats). So it depends on the request alone: it is the same for many rollouts at once, and
after the server was killed. A callable `answer(request) -> Turn` decides freely; a list of `Script`s is searched for
the first whose `match` (a regular expression) is found in the request's text.

As a process, with the same in a file, or with a callable::

    python -m tests.samplers.scripted_model --port 8001 --script turns.json --paid paid.jsonl [--key KEY] [--token-ids]
    python -m tests.samplers.scripted_model --port 8001 --answer package.module:function

`turns.json` is a list of turns, `[{"text": "..", "calls": [{"name": "bash", "arguments": {..}}]}]`, or a list of
scripts, `[{"match": "title", "turns": [..]}, {"turns": [..]}]`. The address is printed on standard output.

A request whose `Idempotency-Key` was answered before gets that answer again and is not paid again, also after the
server was killed when it keeps its counts in a file (`paid`). `Turn.fault` names what goes wrong, see FAULTS; with
`Turn.times` only the first requests of the same content fail.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import re
import socket
import struct
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

FAULTS = {
    "429": "too many requests, with Retry-After: 0",
    "500": "an internal error",
    "refuse": "the connection is reset before anything is answered",
    "hang": "nothing is answered until the server closes",
    "cut": "half of the answer, then the connection is reset",
    "unfinished": "half of the answer, then an orderly end (of a stream; a plain answer is whole)",
    "html": "a page with status 200 instead of JSON",
    "broken-json": "JSON that ends in the middle, with status 200",
    "no-answer": "JSON without an answer, with status 200",
    "huge": "an answer of 5 MB of text",
    "enormous": "an answer of 20 MB of text",
    "401": "the key is wrong",
    "400": "the request is rejected",
    "context": "the conversation exceeds the context length (400)",
}
NONSENSE = {
    "html": b"<html><body>Bad gateway</body></html>",
    "broken-json": b'{"id": "x", "choices": [{"mes',
    "no-answer": b'{"id": "x"}',
    "null-choice": b'{"id": "x", "choices": [null]}',
    "odd-usage": b'{"id": "x", "choices": [{"message": {"content": "x"}}], "usage": "much"}',
    "odd-calls": b'{"id": "x", "choices": [{"message": {"content": null, "tool_calls": ["bash"]}}]}',
    "deep": b'{"choices": %s%s}' % (b"[" * 20_000, b"]" * 20_000),
    "odd-event": b'data: {"id": "x", "choices": [null]}\n\n',
}
NONSENSE_TYPES = {"html": "text/html", "odd-event": "text/event-stream"}
PIECE_TOKENS = 2
"""Tokens of one piece of a stream."""


@dataclass(frozen=True)
class Call:
    """A tool call. Arguments that are a string are sent as they are, also where they are no JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One answer. `delay`: seconds before each piece of a stream, and before a plain answer. `times`: of the fault."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    fault: str = ""
    times: int = 1_000_000
    delay: float = 0.0
    finish: str = ""
    """Finish reason as of chat completions; empty for `stop` or `tool_calls`."""
    cached_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    raw: bytes
    at: float

    @property
    def is_chat(self) -> bool:
        """Whether it is in the dialect of chat completions; else it is in that of Messages."""
        return self.path.endswith("/chat/completions")

    @property
    def place(self) -> int:
        """Number of assistant messages in the conversation."""
        return sum(message.get("role") == "assistant" for message in self.body.get("messages", ()))

    @property
    def tools(self) -> list[str]:
        """Names of the tools offered."""
        return [tool.get("function", tool).get("name", "") for tool in self.body.get("tools") or ()]

    @property
    def fingerprint(self) -> str:
        """Sha256 of the body."""
        return hashlib.sha256(self.raw).hexdigest()


Answer = Callable[[ModelRequest], Turn]
Embed = Callable[[str], Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Script:
    """Turns of the conversations whose text has `match`."""

    turns: tuple[Turn, ...]
    match: str = ""


class ScriptedModel:
    """The server, in a thread. `paid` counts answers begun, each `Idempotency-Key` once.

    Args:
        answer: turns, scripts or a callable.
        key: the only key accepted; empty accepts any.
        token_ids: give token ids and log-probs, in vLLM's form, where the request wants them.
        paid_log: file to which a line is appended for each paid request.
        port: 0 for a free one.
        host: address to listen at.
        embed: text -> vector, for the embeddings API; texts with the same words have near vectors without one.
    """

    def __init__(
        self,
        answer: Answer | Sequence[Turn] | Sequence[Script],
        *,
        key: str = "",
        token_ids: bool = False,
        paid_log: Path | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        embed: Embed | None = None,
    ) -> None:
        self.embed = embed or embed_words
        self.answer = answer if callable(answer) else _choose_turn(answer)
        self.key = key
        self.token_ids = token_ids
        self.paid_log = paid_log
        self.requests: list[ModelRequest] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._paid_keys: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._turns: dict[str, Turn] = {}
        if paid_log and paid_log.exists():
            self._paid_keys.update(json.loads(line)["key"] for line in paid_log.read_text().splitlines())
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = _Server((host, port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def paid(self) -> int:
        """Requests a provider would have charged."""
        return sum(self._paid_keys.values())

    @property
    def paid_keys(self) -> Counter[str]:
        """Idempotency-Key -> times it was paid: 1, or more where no key was sent (key '')."""
        return Counter(self._paid_keys)

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.close_connections()
        self._thread.join()

    def admit(self, request: ModelRequest) -> int:
        """Keep a request; return how many of the same content came before."""
        with self._lock:
            self.requests.append(request)
            self._seen[request.fingerprint] += 1
            return self._seen[request.fingerprint] - 1

    def find_turn(self, request: ModelRequest) -> Turn:
        """Return the answer: the one given before, where the key is that of an earlier request."""
        key = request.headers.get("idempotency-key", "")
        turn = self._turns.get(key) or self.answer(request)
        if key:
            self._turns[key] = turn
        return turn

    def repair(self, answer: Answer) -> None:
        """Answer by another script from now on, also requests whose key was answered before."""
        self.answer = answer
        self._turns.clear()

    def charge(self, request: ModelRequest) -> None:
        """Count a request as paid unless its key was."""
        key = request.headers.get("idempotency-key", "")
        with self._lock:
            if key and self._paid_keys[key]:
                return
            self._paid_keys[key] += 1
            if self.paid_log:
                with self.paid_log.open("a") as log:
                    log.write(json.dumps({"key": key, "fingerprint": request.fingerprint}) + "\n")


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True
    block_on_close = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """End every connection, as the end of a process does."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        """A client that went away is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    model: ClassVar[ScriptedModel]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        given = self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
        if self.model.key and given != self.model.key:
            self.send_json(401, {"error": {"type": "scripted_error", "message": "Incorrect API key provided"}})
            return
        self.send_json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ModelRequest(
            path=self.path.partition("?")[0], headers=headers, body=json.loads(raw), raw=raw, at=time.time()
        )
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self.model.key and given != self.model.key:
            self.send_fault(request, "401")
            return
        if request.path.endswith("/count_tokens"):
            self.send_json(200, {"input_tokens": len(tokenize_prompt(request.body))})
            return
        earlier = self.model.admit(request)
        if request.path.endswith("/embeddings"):
            self.model.charge(request)
            self.send_json(200, build_embeddings(request, self.model.embed))
            return
        turn = self.model.find_turn(request)
        if turn.fault and earlier < turn.times and turn.fault not in ("cut", "unfinished", "huge", "enormous"):
            self.send_fault(request, turn.fault)
            return
        self.model.charge(request)
        if turn.fault in ("huge", "enormous"):
            turn = Turn(text="word " * (1_000_000 if turn.fault == "huge" else 4_000_000))
        self.send_turn(request, turn, fault=turn.fault if earlier < turn.times else "")

    def send_turn(self, request: ModelRequest, turn: Turn, *, fault: str) -> None:
        streamed = bool(request.body.get("stream"))
        build = (stream_chat if streamed else build_chat) if request.is_chat else None
        build = build or (stream_messages if streamed else build_messages)
        made: Any = build(request, turn, self.model.token_ids)
        if not streamed:
            self.model.closing.wait(turn.delay)
            self.send_json(200, made, cut=fault == "cut")
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        events = list(made)
        for event in events[: len(events) // 2] if fault in ("cut", "unfinished") else events:
            self.model.closing.wait(turn.delay)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        if fault == "cut":
            self.reset()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def send_fault(self, request: ModelRequest, fault: str) -> None:
        if fault == "hang":
            self.model.closing.wait()
            self.close_connection = True
        elif fault == "refuse":
            self.reset()
        elif fault in NONSENSE:
            self.send_content(200, NONSENSE[fault], NONSENSE_TYPES.get(fault, "application/json"))
        else:
            status = 400 if fault == "context" else int(fault)
            message = {
                "429": "Rate limit reached",
                "500": "The server had an error",
                "401": f"Incorrect API key provided: {self.headers.get('authorization', '')}",
                "400": "This request has no right form",
                "context": "This model's maximum context length is 4096 tokens",
            }[fault]
            error = {"type": "scripted_error", "message": message}
            self.send_json(
                status,
                {"error": error | {"code": "context_length_exceeded" if fault == "context" else None}}
                if request.is_chat
                else {"type": "error", "error": error},
                {"retry-after": "0"} if status == 429 else {},
            )

    def send_json(
        self, status: int, value: object, headers: Mapping[str, str] | None = None, *, cut: bool = False
    ) -> None:
        self.send_content(status, json.dumps(value).encode(), "application/json", headers or {}, cut=cut)

    def send_content(
        self, status: int, content: bytes, kind: str, headers: Mapping[str, str] | None = None, *, cut: bool = False
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.reset()

    def reset(self) -> None:
        """End the connection with a reset."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


# ------------------------------------------------------------------------------------------------------- answers


def build_chat(request: ModelRequest, turn: Turn, token_ids: bool) -> dict[str, Any]:
    """Return a plain answer as of chat completions."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [_format_call(call, at, request) for at, call in enumerate(turn.calls)]
    completion = tokenize_message(message)
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": _finish(turn)}
    made = _begin_chat(request, "chat.completion")
    if token_ids and request.body.get("return_token_ids"):
        made["prompt_token_ids"] = _to_ids(tokenize_prompt(request.body))
        choice["token_ids"] = _to_ids(completion)
    if token_ids and request.body.get("logprobs"):
        choice["logprobs"] = {"content": _make_logprobs(completion)}
    return made | {"choices": [choice], "usage": _count_usage(request, turn, completion)}


def stream_chat(request: ModelRequest, turn: Turn, token_ids: bool) -> Iterator[bytes]:
    """Yield a streamed answer as of chat completions, event by event."""
    plain = build_chat(request, turn, token_ids)
    choice, message = plain["choices"][0], plain["choices"][0]["message"]
    start = _begin_chat(request, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], **more: Any) -> bytes:
        return _format_event(start | {"choices": [{"index": 0, "delta": delta, "finish_reason": None} | more]})

    first = {"role": "assistant", "content": ""}
    if "prompt_token_ids" in plain:
        given = {"prompt_token_ids": plain["prompt_token_ids"]}
        yield _format_event(start | given | {"choices": [{"index": 0, "delta": first, "finish_reason": None}]})
    else:
        yield chunk(first)
    deltas: list[dict[str, Any]] = [{"reasoning_content": piece} for piece in _cut(turn.reasoning)]
    deltas += [{"content": piece} for piece in _cut(turn.text)]
    for at, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        deltas.append({"tool_calls": [call | {"index": at, "function": function | {"arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": at, "function": {"arguments": piece}}]} for piece in _cut(function["arguments"])
        ]
    ids, probs = choice.get("token_ids"), choice.get("logprobs", {}).get("content")
    for at, delta in enumerate(deltas):
        more: dict[str, Any] = {}
        share = slice(at * PIECE_TOKENS, (at + 1) * PIECE_TOKENS if at < len(deltas) - 1 else None)
        if ids is not None:
            more["token_ids"] = ids[share]
        if probs is not None:
            more["logprobs"] = {"content": probs[share]}
        yield chunk(delta, **more)
    yield chunk({}, finish_reason=choice["finish_reason"])
    if (request.body.get("stream_options") or {}).get("include_usage"):
        yield _format_event(start | {"choices": [], "usage": plain["usage"]})
    yield b"data: [DONE]\n\n"


def build_embeddings(request: ModelRequest, embed: Embed) -> dict[str, Any]:
    """Return a response of the embeddings API."""
    texts = request.body["input"]
    entries = [{"object": "embedding", "index": at, "embedding": list(embed(text))} for at, text in enumerate(texts)]
    n_tokens = sum(len(_split(text)) for text in texts)
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "model": request.body["model"], "data": entries, "usage": usage}


def embed_words(text: str) -> list[float]:
    """Return a vector of 32 numbers: how often words of each hash are in a text."""
    vector = [0.0] * 32
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % 32] += 1.0
    return vector


def build_messages(request: ModelRequest, turn: Turn, _token_ids: bool) -> dict[str, Any]:
    """Return a plain answer as of Messages."""
    content: list[dict[str, Any]] = []
    if turn.reasoning:
        content.append({"type": "thinking", "thinking": turn.reasoning, "signature": "c2lnbmVk"})
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    for at, call in enumerate(turn.calls):
        parsed = json.loads(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)
        content.append({"type": "tool_use", "id": _name_call(call, at, request), "name": call.name, "input": parsed})
    reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
    usage = _count_usage(request, turn, tokenize_message({"content": content}))
    return {
        "id": f"msg_{request.fingerprint[:12]}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", ""),
        "content": content,
        "stop_reason": reasons[_finish(turn)],
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage["prompt_tokens"] - turn.cached_tokens,
            "cache_read_input_tokens": turn.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": usage["completion_tokens"],
        },
    }


def stream_messages(request: ModelRequest, turn: Turn, token_ids: bool) -> Iterator[bytes]:
    """Yield a streamed answer as of Messages, event by event."""
    plain = build_messages(request, turn, token_ids)
    start = plain | {"content": [], "stop_reason": None, "usage": plain["usage"] | {"output_tokens": 1}}
    yield _format_event({"type": "message_start", "message": start}, named=True)
    yield _format_event({"type": "ping"}, named=True)
    for at, block in enumerate(plain["content"]):
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
        begin = {"type": "content_block_start", "index": at, "content_block": block | empty[block["type"]]}
        yield _format_event(begin, named=True)
        for delta in _split_block(block):
            yield _format_event({"type": "content_block_delta", "index": at, "delta": delta}, named=True)
        yield _format_event({"type": "content_block_stop", "index": at}, named=True)
    delta = {"stop_reason": plain["stop_reason"], "stop_sequence": None}
    yield _format_event({"type": "message_delta", "delta": delta, "usage": plain["usage"]}, named=True)
    yield _format_event({"type": "message_stop"}, named=True)


def _split_block(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in _cut(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in _cut(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        for piece in _cut(json.dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}


def _begin_chat(request: ModelRequest, kind: str) -> dict[str, Any]:
    model = request.body.get("model", "")
    return {"id": f"chatcmpl-{request.fingerprint[:12]}", "object": kind, "created": 1_700_000_000, "model": model}


def _format_event(value: Mapping[str, Any], *, named: bool = False) -> bytes:
    name = f"event: {value['type']}\n" if named else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()


def _format_call(call: Call, at: int, request: ModelRequest) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))
    function = {"name": call.name, "arguments": arguments}
    return {"id": _name_call(call, at, request), "type": "function", "function": function}


def _name_call(call: Call, at: int, request: ModelRequest) -> str:
    return call.id or f"call_{request.fingerprint[:8]}_{at}"


def _finish(turn: Turn) -> str:
    return turn.finish or ("tool_calls" if turn.calls else "stop")


def _count_usage(request: ModelRequest, turn: Turn, completion: Sequence[str]) -> dict[str, Any]:
    prompt = len(tokenize_prompt(request.body))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": len(completion),
        "total_tokens": prompt + len(completion),
        "prompt_tokens_details": {"cached_tokens": turn.cached_tokens},
    }


# -------------------------------------------------------------------------------------------------------- tokens


def tokenize_message(message: Mapping[str, Any]) -> list[str]:
    """Return the tokens of an assistant's message, the end of the turn included."""
    calls = "".join(
        f"<call>{c['function']['name']} {c['function']['arguments']}" for c in message.get("tool_calls") or ()
    )
    return [
        *_split(message.get("reasoning_content") or ""),
        *_split(_flatten(message.get("content"))),
        *_split(calls),
        "<end>",
    ]


def tokenize_prompt(body: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a prompt. It begins with the prompt and the answer of each turn before."""
    tokens = _split(json.dumps([tool.get("function", tool) for tool in body.get("tools") or ()], sort_keys=True))
    if body.get("system"):
        tokens += ["<system>", *_split(_flatten(body["system"])), "<end>"]
    for message in body.get("messages", ()):
        tokens += [f"<{message.get('role')}>", *tokenize_message(message)]
    return [*tokens, "<assistant>"]


def _flatten(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or json.dumps(part, sort_keys=True) for part in content)
    return str(content or "")


def _split(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def _cut(text: str) -> list[str]:
    """Return a text in pieces of a stream; a long one in about 500 larger pieces."""
    tokens = _split(text)
    size = max(PIECE_TOKENS, len(tokens) // 500)
    return ["".join(tokens[at : at + size]) for at in range(0, len(tokens), size)]


def _to_ids(tokens: Sequence[str]) -> list[int]:
    return [zlib.crc32(token.encode()) % 50_000 for token in tokens]


def _make_logprobs(tokens: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"token": token, "logprob": -(zlib.crc32(token.encode()) % 1000) / 500, "bytes": None, "top_logprobs": []}
        for token in tokens
    ]


# ------------------------------------------------------------------------------------------------------- scripts


def _choose_turn(answer: Sequence[Turn] | Sequence[Script]) -> Answer:
    scripts = [part if isinstance(part, Script) else Script(turns=(part,)) for part in answer]
    if not any(isinstance(part, Script) for part in answer):
        scripts = [Script(turns=tuple(part for part in answer if isinstance(part, Turn)))]

    def choose(request: ModelRequest) -> Turn:
        text = request.raw.decode(errors="replace")
        turns = next((script.turns for script in scripts if re.search(script.match, text)), (Turn(text="done"),))
        return turns[min(request.place, len(turns) - 1)]

    return choose


def read_script(path: Path) -> list[Script]:
    """Return the scripts of a file; see the module."""
    entries = json.loads(path.read_text())
    if entries and "turns" not in entries[0]:
        entries = [{"turns": entries}]
    return [
        Script(match=entry.get("match", ""), turns=tuple(_parse_turn(turn) for turn in entry["turns"]))
        for entry in entries
    ]


def _parse_turn(entry: Mapping[str, Any]) -> Turn:
    return Turn(**{**entry, "calls": tuple(Call(**call) for call in entry.get("calls", ()))})


def _import_answer(name: str) -> Answer:
    module, _, function = name.partition(":")
    answer: Answer = getattr(importlib.import_module(module), function)
    return answer


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description="Serve scripted answers as a model.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--script", type=Path)
    parser.add_argument("--answer", type=_import_answer)
    parser.add_argument("--paid", type=Path)
    parser.add_argument("--key", default="")
    parser.add_argument("--token-ids", action="store_true")
    options = parser.parse_args()
    answer = options.answer or (read_script(options.script) if options.script else [Turn(text="done")])
    model = ScriptedModel(
        answer,
        key=options.key,
        token_ids=options.token_ids,
        paid_log=options.paid,
        port=options.port,
        host=options.host,
    )
    with model:
        sys.stdout.write(f"{model.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
