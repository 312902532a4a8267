"""Scripted model server over real HTTP, with the chat completions of OpenAI's API.

A script is a list of responses, the last of which is repeated, or a function of the request. Streams are sent in small
chunks, so that words and tool calls are split.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHUNK_CHARS = 7
"""Characters of text, or of a call's arguments, in one chunk of a stream."""


@dataclass(frozen=True)
class ScriptedToolCall:
    """A tool call of the model; `arguments` is a text where they are malformed."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, kw_only=True)
class ScriptedAnswer:
    """A valid answer, or one that is interrupted or delayed.

    `cut`: the connection breaks after so many pieces. `hang`: seconds of silence before the first. `drip`: seconds
    between two pieces. `usage`: reported token counts; None reports none.
    """

    text: str = ""
    calls: tuple[ScriptedToolCall, ...] = ()
    finish: str = ""
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10})
    cut: int | None = None
    hang: float = 0.0
    drip: float = 0.0
    ends: bool = True
    """Whether it has a finish reason."""

    @property
    def get_finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, kw_only=True)
class ScriptedFailure:
    """An error response: status and message. `raw`: the body as it is, also with status 200."""

    status: int = 500
    message: str = "something is wrong"
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang: float = 0.0

    @property
    def body(self) -> bytes:
        error = {"message": self.message, "type": "error", "code": self.code or None}
        return self.raw if self.raw is not None else json.dumps({"error": error}).encode()


ScriptedResponse = ScriptedAnswer | ScriptedFailure
Script = Sequence[ScriptedResponse] | Callable[[Mapping[str, Any]], ScriptedResponse]


@dataclass
class ModelServer:
    """Received requests and scripted responses. The flags are the features that it accepts; others are a 400."""

    url: str = ""
    script: Script = ()
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    request_times: list[float] = field(default_factory=list)
    models: tuple[str, ...] | None = ("scripted",)
    listing: ScriptedFailure | None = None
    """Response instead of the list of models."""
    supports_tools: bool = True
    supports_schemas: bool = True
    """Whether it accepts response schemas."""
    stream: bool = True
    stream_options: bool = True
    rejected_parameter: str = ""
    """Parameter that it rejects."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set at the end, so that delayed responses end."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def set_answers(self, *answers: ScriptedResponse) -> None:
        self.script = answers

    def next_reply(self, request: dict[str, Any], key: str) -> ScriptedResponse:
        """Return the response to a request."""
        with self.lock:
            self.requests.append(request)
            self.keys.append(key)
            self.request_times.append(time.monotonic())
            if lack := self._find_unsupported(request):
                return ScriptedFailure(status=400, message=lack)
            if callable(self.script):
                return self.script(request)
            answers = list(self.script)
            self.script = answers[1:] or answers
            return answers[0]

    def _find_unsupported(self, request: dict[str, Any]) -> str:
        if "tools" in request and not self.supports_tools:
            return f"registry/{request['model']} does not support tools"
        if "response_format" in request and not self.supports_schemas:
            return "response_format: Extra inputs are not permitted"
        if "stream_options" in request and not self.stream_options:
            return "Unrecognized request argument supplied: stream_options"
        if self.rejected_parameter and self.rejected_parameter in request:
            return (
                f"Unsupported parameter: '{self.rejected_parameter}' is not supported."
                " Use 'max_completion_tokens' instead."
            )
        return ""


def build_whole_response(says: ScriptedAnswer) -> dict[str, Any]:
    """The answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": says.text or None}
    if says.calls:
        message["tool_calls"] = [_render_tool_call(number, call, call.json) for number, call in enumerate(says.calls)]
    choices = [{"index": 0, "message": message, "finish_reason": says.get_finish_reason}]
    return {"id": "1", "object": "chat.completion", "model": "scripted", "choices": choices, "usage": says.usage}


def build_chunks(says: ScriptedAnswer) -> Iterator[dict[str, Any]]:
    """The same as a stream."""
    yield _render_chunk({"role": "assistant", "content": ""})
    for start in range(0, len(says.text), CHUNK_CHARS):
        yield _render_chunk({"content": says.text[start : start + CHUNK_CHARS]})
    for number, call in enumerate(says.calls):
        yield _render_chunk({"tool_calls": [_render_tool_call(number, call, "")]})
        for start in range(0, len(call.json), CHUNK_CHARS):
            part = {"index": number, "function": {"arguments": call.json[start : start + CHUNK_CHARS]}}
            yield _render_chunk({"tool_calls": [part]})
    if says.ends:
        yield _render_chunk({}, says.get_finish_reason)
        if says.usage is not None:
            yield {
                "id": "1",
                "object": "chat.completion.chunk",
                "model": "scripted",
                "choices": [],
                "usage": says.usage,
            }


def _render_tool_call(number: int, call: ScriptedToolCall, arguments: str) -> dict[str, Any]:
    about = {"name": call.name, "arguments": arguments}
    return {"index": number, "id": f"c{number}", "type": "function", "function": about}


def _render_chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "1", "object": "chat.completion.chunk", "model": "scripted", "choices": choices}


class ModelRequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: ModelServer

    def do_GET(self) -> None:
        if self.model.listing is not None:
            self._send_body(self.model.listing.status, self.model.listing.body)
        elif self.model.models is None:
            self._send_body(404, b"{}")
        else:
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in self.model.models]
            self._send_body(200, json.dumps({"object": "list", "data": listed}).encode())

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        answer = self.model.next_reply(request, self.headers.get("Authorization", "").removeprefix("Bearer "))
        self.model.released.wait(answer.hang)
        if isinstance(answer, ScriptedFailure):
            self._send_body(answer.status, answer.body, answer.headers)
        elif request.get("stream") and self.model.stream:
            self._send_stream(answer)
        else:
            body = json.dumps(build_whole_response(answer)).encode()
            self._send_body(200, body if answer.cut is None else body[: answer.cut], length=len(body))

    def _send_body(self, status: int, body: bytes, headers: Mapping[str, str] | None = None, length: int = 0) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = length > len(body)

    def _send_stream(self, says: ScriptedAnswer) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(build_chunks(says)):
            if number == says.cut:
                self.close_connection = True
                return
            self._send_chunk(f"data: {json.dumps(piece)}\n\n")
            self.model.released.wait(says.drip)
        self._send_chunk("data: [DONE]\n\n" if says.ends else ": bye\n\n")
        self._send_chunk("")

    def _send_chunk(self, text: str) -> None:
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing."""


class QuietHttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that hung up."""


@contextmanager
def run_model_server(script: Script = (), **about: Any) -> Iterator[ModelServer]:
    """A model on a free port, gone afterwards."""
    model = ModelServer(script=script, **about)
    handler = type("Handler", (ModelRequestHandler,), {"model": model})
    with QuietHttpServer(("127.0.0.1", 0), handler) as http:
        model.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield model
        finally:
            model.released.set()
            http.shutdown()
            thread.join()
